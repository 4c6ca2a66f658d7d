-- Ends that an owner has not seen and that have not changed after a head, of the states and the action that are asked for
-- (an empty list and NULL = any), locked: what an opened panel marks. An archived one counts as seen.
-- Index: taskbell_tasks_unseen.
SELECT @columns FROM taskbell_tasks t
WHERE t.tenant = $1 AND t.owner = $2 AND t.active = 0 AND t.head <= $3
    AND t.seen_at IS NULL AND t.archived_at IS NULL AND $4 = 'seen'
    AND (@empty($5) OR t.state @in($5))
    AND (CAST($6 AS TEXT) IS NULL OR t.action = $6)
ORDER BY t.id LIMIT $7 @lock
