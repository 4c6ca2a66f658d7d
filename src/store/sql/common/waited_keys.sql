-- Concurrency keys with a free slot behind which somebody waits. Every commit gives its freed slots on, so there are none
-- unless a limit was raised. Index: taskbell_tasks_gate, taskbell_tasks_slot.
SELECT k.tenant, k.concurrency_key
FROM (SELECT DISTINCT t.tenant, t.concurrency_key FROM taskbell_tasks t WHERE t.gated = 1) k
WHERE (SELECT COUNT(*) FROM taskbell_tasks s
        WHERE s.slot_held = 1 AND s.tenant = k.tenant AND s.concurrency_key = k.concurrency_key)
    < (SELECT w.concurrency_limit FROM taskbell_tasks w
        WHERE w.gated = 1 AND w.tenant = k.tenant AND w.concurrency_key = k.concurrency_key
        ORDER BY w.priority DESC, w.due_at, w.id LIMIT 1)
LIMIT $1
