-- Concurrency keys with a free slot behind which somebody waits. Every commit gives its freed slots on, so there are none
-- unless a limit was raised. From each key straight to the next one, however many wait behind it.
-- Index: taskbell_tasks_gate, taskbell_tasks_slot.
WITH RECURSIVE tenants (tenant) AS (
    SELECT MIN(t.tenant) FROM taskbell_tasks t WHERE t.gated = 1
    UNION ALL
    SELECT (SELECT MIN(n.tenant) FROM taskbell_tasks n WHERE n.gated = 1 AND n.tenant > tenants.tenant)
    FROM tenants WHERE tenants.tenant IS NOT NULL
), keys (tenant, concurrency_key) AS (
    SELECT tenants.tenant, (SELECT MIN(f.concurrency_key) FROM taskbell_tasks f
        WHERE f.gated = 1 AND f.tenant = tenants.tenant)
    FROM tenants WHERE tenants.tenant IS NOT NULL
    UNION ALL
    SELECT keys.tenant, (SELECT MIN(n.concurrency_key) FROM taskbell_tasks n
        WHERE n.gated = 1 AND n.tenant = keys.tenant AND n.concurrency_key > keys.concurrency_key)
    FROM keys WHERE keys.concurrency_key IS NOT NULL
)
SELECT keys.tenant, keys.concurrency_key FROM keys
WHERE keys.concurrency_key IS NOT NULL AND (SELECT COUNT(*) FROM taskbell_tasks s
        WHERE s.slot_held = 1 AND s.tenant = keys.tenant AND s.concurrency_key = keys.concurrency_key)
    < (SELECT w.concurrency_limit FROM taskbell_tasks w
        WHERE w.gated = 1 AND w.tenant = keys.tenant AND w.concurrency_key = keys.concurrency_key
        ORDER BY w.priority DESC, w.due_at, w.id LIMIT 1)
LIMIT $1
