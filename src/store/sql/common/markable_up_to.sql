-- Ended tasks of an owner that do not carry a mark yet and have not changed after a head, of the states and the action
-- that are asked for (an empty list and NULL = any), locked. Index: taskbell_tasks_owner.
SELECT @columns FROM taskbell_tasks t
WHERE t.tenant = $1 AND t.owner = $2 AND t.active = 0 AND t.head <= $3
    AND CASE $4 WHEN 'read' THEN t.read_at ELSE t.archived_at END IS NULL
    AND (@empty($5) OR t.state @in($5))
    AND (CAST($6 AS TEXT) IS NULL OR t.action = $6)
ORDER BY t.id LIMIT $7 @lock
