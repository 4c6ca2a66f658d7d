-- Tenants with tasks that may be claimed: one index step a tenant (a loose scan), however many tasks wait.
-- Index: taskbell_tasks_claim.
WITH RECURSIVE tenants (tenant) AS (
    SELECT MIN(t.tenant) FROM taskbell_tasks t WHERE t.claimable = 1
    UNION ALL
    SELECT (SELECT MIN(n.tenant) FROM taskbell_tasks n WHERE n.claimable = 1 AND n.tenant > tenants.tenant)
    FROM tenants WHERE tenants.tenant IS NOT NULL
)
SELECT tenant FROM tenants WHERE tenant IS NOT NULL
