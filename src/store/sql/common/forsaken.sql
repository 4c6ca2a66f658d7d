-- Open children, not asked to stop yet, of parents that were cancelled, or failed while they waited; not locked. Only open
-- children are looked at. Index: taskbell_tasks_open_children, then primary key.
SELECT c.id FROM taskbell_tasks c @by_open_children JOIN taskbell_tasks p ON p.id = c.parent
WHERE c.parent IS NOT NULL AND c.active = 1 AND c.state <> 'cancelling'
    AND (p.state IN ('cancelling', 'cancelled') OR (p.state = 'failed' AND p.awaits IS NOT NULL))
LIMIT $1
