-- Concurrency keys behind which somebody waits. Index: taskbell_tasks_gate.
SELECT DISTINCT t.tenant, t.concurrency_key FROM taskbell_tasks t WHERE t.gated = 1 LIMIT $1
