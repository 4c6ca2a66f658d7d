-- Locks the idempotency keys that tasks hold, in the order of the keys, before those tasks are locked and removed.
-- Index: taskbell_keys_task.
SELECT k.task_id FROM taskbell_keys k WHERE k.task_id @in($1)
ORDER BY k.tenant, k.action, k.kind, k.idempotency_key FOR UPDATE OF k
