-- Children of a task that have not ended; not locked. Index: taskbell_tasks_parent.
SELECT t.id FROM taskbell_tasks t WHERE t.parent = $1 AND t.active = 1 LIMIT $2
