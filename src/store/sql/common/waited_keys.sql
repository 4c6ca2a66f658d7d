-- Concurrency keys with a free slot behind which somebody waits, among the next $1 steps after a key ($2, $3), and the last step
-- however it stands; how many steps came before each, and whether a slot is free. Every commit gives its freed slots on, so none is
-- unless a limit was raised. From each key straight to the next one, however many wait behind it; after a tenant's last key, which
-- is NULL, to the next tenant. Index: taskbell_tasks_gate, taskbell_tasks_slot.
WITH RECURSIVE keys (n, tenant, concurrency_key) AS (
    SELECT CAST(0 AS BIGINT), CAST($2 AS TEXT) @bytes, CAST($3 AS TEXT) @bytes
    UNION ALL
    SELECT keys.n + 1,
        CASE WHEN keys.concurrency_key IS NOT NULL THEN keys.tenant
            ELSE (SELECT MIN(o.tenant) FROM taskbell_tasks o WHERE o.gated = 1 AND o.tenant > keys.tenant) END,
        CASE WHEN keys.concurrency_key IS NULL THEN ''
            ELSE (SELECT MIN(o.concurrency_key) FROM taskbell_tasks o
                WHERE o.gated = 1 AND o.tenant = keys.tenant AND o.concurrency_key > keys.concurrency_key) END
    FROM keys WHERE keys.tenant IS NOT NULL AND keys.n < $1
), looked (n, tenant, concurrency_key, free) AS (
    SELECT keys.n, keys.tenant, keys.concurrency_key, CASE WHEN
        (SELECT COUNT(*) FROM taskbell_tasks s
            WHERE s.slot_held = 1 AND s.tenant = keys.tenant AND s.concurrency_key = keys.concurrency_key)
        < (SELECT w.concurrency_limit FROM taskbell_tasks w
            WHERE w.gated = 1 AND w.tenant = keys.tenant AND w.concurrency_key = keys.concurrency_key
            ORDER BY w.priority DESC, w.due_at, w.id LIMIT 1) THEN CAST(1 AS BIGINT) ELSE 0 END
    FROM keys WHERE keys.tenant IS NOT NULL
)
SELECT looked.tenant, looked.concurrency_key, looked.free, looked.n FROM looked
WHERE looked.free = 1 OR looked.n = $1
ORDER BY looked.n
