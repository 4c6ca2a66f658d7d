-- Packs with a chunk under way, of those that are locked. Index: taskbell_tasks_lease.
SELECT DISTINCT t.pack FROM taskbell_tasks t WHERE t.lease_until IS NOT NULL AND t.pack @in($1)
