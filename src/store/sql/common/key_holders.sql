-- Tasks that hold a slot of a concurrency key, locked. Index: taskbell_tasks_slot.
SELECT @columns FROM taskbell_tasks t
WHERE t.tenant = $1 AND t.concurrency_key = $2 AND t.slot_held = 1
ORDER BY t.id LIMIT $3 @lock
