-- Unfinished tasks by state inside a reach. Index: taskbell_tasks_active (holds unfinished rows only).
SELECT t.state, COUNT(*) FROM taskbell_tasks t
WHERE t.active = 1 AND ($1 IS NULL OR t.tenant = $1) AND ($2 IS NULL OR t.owner = $2)
GROUP BY t.state
