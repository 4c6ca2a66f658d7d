-- The same of certain parents. Index: taskbell_tasks_parent, then primary key.
SELECT c.id FROM taskbell_tasks c JOIN taskbell_tasks p ON p.id = c.parent
WHERE c.parent @in($1) AND c.active = 1 AND c.state <> 'cancelling'
    AND (p.state IN ('cancelling', 'cancelled') OR (p.state = 'failed' AND p.awaits IS NOT NULL))
LIMIT $2
