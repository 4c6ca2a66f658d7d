-- Packs with a chunk under way, of those that are locked. Index: taskbell_tasks_under_way.
SELECT DISTINCT t.pack FROM taskbell_tasks t WHERE t.under_way = 1 AND t.pack @in($1)
