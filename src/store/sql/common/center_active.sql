-- The unfinished tasks of an owner, newest first. Index: taskbell_tasks_active, named where statistics may mislead.
SELECT @columns FROM taskbell_tasks t @by_active
WHERE t.tenant = $1 AND t.owner = $2 AND t.active = 1
ORDER BY t.created_at DESC, t.id DESC LIMIT $3
