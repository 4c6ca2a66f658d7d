-- How many unfinished tasks of each pack have no chunk under way. Index: taskbell_tasks_pack.
SELECT t.pack, COUNT(*) FROM taskbell_tasks t
WHERE t.active = 1 AND t.pack IS NOT NULL AND t.lease_until IS NULL GROUP BY t.pack
