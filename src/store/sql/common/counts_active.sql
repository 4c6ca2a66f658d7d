-- Unfinished tasks by state inside a reach. Index: taskbell_tasks_active (holds unfinished rows only).
SELECT t.state, COUNT(*) FROM taskbell_tasks t @by_active
WHERE t.active = 1 AND @reach
GROUP BY t.state
