-- Tasks by state inside a reach. Index: taskbell_tasks_owner or _tenant.
SELECT t.state, COUNT(*) FROM taskbell_tasks t
WHERE @reach
GROUP BY t.state
