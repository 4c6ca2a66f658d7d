-- Unfinished tasks that wait for children of which none is open; not locked. The end of the last child wakes its parent in
-- its own commit, so there are none, unless a version ended it that knows no parents. Index: taskbell_tasks_awaits.
SELECT t.id FROM taskbell_tasks t
WHERE t.awaits IS NOT NULL AND t.active = 1
    AND NOT EXISTS (SELECT 1 FROM taskbell_tasks c WHERE c.parent = t.id AND c.active = 1)
LIMIT $1
