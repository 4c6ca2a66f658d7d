-- Children of a task that ended without success; not locked. Index: taskbell_tasks_parent.
SELECT t.id FROM taskbell_tasks t WHERE t.parent = $1 AND t.active = 0 AND t.state IN ('failed', 'cancelled') LIMIT $2
