-- Tasks that wait for a slot, by priority, then first come, locked. Index: taskbell_tasks_gate.
SELECT @columns FROM taskbell_tasks t
WHERE t.tenant = $1 AND t.concurrency_key = $2 AND t.gated = 1
ORDER BY t.priority DESC, t.due_at, t.id LIMIT $3 @lock
