-- How many unfinished tasks of each pack have no chunk under way, of a tenant ($1) or of all. Index: taskbell_tasks_pack.
SELECT t.pack, COUNT(*) FROM taskbell_tasks t @by_pack
WHERE t.active = 1 AND t.pack IS NOT NULL AND t.lease_until IS NULL
    AND (CAST($1 AS TEXT) IS NULL OR t.tenant = $1)
GROUP BY t.pack
