-- How many children of tasks are in each state. Index: taskbell_tasks_parent, and nothing else.
SELECT t.parent, t.state, COUNT(*) FROM taskbell_tasks t WHERE t.parent @in($1) GROUP BY t.parent, t.state
