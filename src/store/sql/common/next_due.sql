-- When the next task that may be claimed is due, of the first 64 in claim order of each tenant. Those are the first ones due
-- but where priorities differ much; whatever lies behind them is found by the poll. Index: taskbell_tasks_claim.
WITH RECURSIVE tenants (tenant) AS (
    SELECT MIN(t.tenant) FROM taskbell_tasks t WHERE t.claimable = 1
    UNION ALL
    SELECT (SELECT MIN(n.tenant) FROM taskbell_tasks n WHERE n.claimable = 1 AND n.tenant > tenants.tenant)
    FROM tenants WHERE tenants.tenant IS NOT NULL
)
SELECT MIN(first.due_at) FROM (
    SELECT (SELECT MIN(c.due_at) FROM (
        SELECT f.due_at FROM taskbell_tasks f WHERE f.claimable = 1 AND f.tenant = tenants.tenant
        ORDER BY f.rank, f.id LIMIT 64) c) AS due_at
    FROM tenants WHERE tenants.tenant IS NOT NULL
) first
