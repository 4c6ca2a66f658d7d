-- The ends that an owner has not seen, newest first. Index: taskbell_tasks_unseen.
SELECT @columns FROM taskbell_tasks t
WHERE t.tenant = $1 AND t.owner = $2 AND t.active = 0 AND t.seen_at IS NULL AND t.archived_at IS NULL
ORDER BY t.finished_at DESC, t.id DESC LIMIT $3
