-- How many hold a concurrency key and how many wait for it, the latter counted up to $3. Index: taskbell_tasks_slot,
-- taskbell_tasks_gate.
SELECT
    (SELECT COUNT(*) FROM taskbell_tasks s WHERE s.tenant = $1 AND s.concurrency_key = $2 AND s.slot_held = 1),
    (SELECT COUNT(*) FROM (SELECT 1 FROM taskbell_tasks g
        WHERE g.tenant = $1 AND g.concurrency_key = $2 AND g.gated = 1 LIMIT $3) w)
