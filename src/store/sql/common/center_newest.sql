-- The newest tasks of an owner. Index: taskbell_tasks_owner.
SELECT @columns FROM taskbell_tasks t
WHERE t.tenant = $1 AND t.owner = $2 AND t.archived_at IS NULL
ORDER BY t.created_at DESC, t.id DESC LIMIT $3
