-- Places in the queue: those ahead in the tenant's claim order, or before it behind the same concurrency key, counted up to
-- 1,000. Index: taskbell_tasks_claim, taskbell_tasks_gate.
SELECT t.id, CASE WHEN t.gated = 1 THEN
    (SELECT COUNT(*) FROM (SELECT 1 FROM taskbell_tasks g WHERE g.gated = 1 AND g.tenant = t.tenant
        AND g.concurrency_key = t.concurrency_key
        AND (-g.priority, g.due_at, g.id) < (-t.priority, t.due_at, t.id) LIMIT 1001) ahead)
ELSE
    (SELECT COUNT(*) FROM (SELECT 1 FROM taskbell_tasks c WHERE c.claimable = 1 AND c.tenant = t.tenant
        AND (c.rank, c.id) < (t.rank, t.id) LIMIT 1001) ahead)
END
FROM taskbell_tasks t
WHERE t.id @in($1) AND (t.gated = 1 OR (t.claimable = 1 AND t.state = 'queued'))
