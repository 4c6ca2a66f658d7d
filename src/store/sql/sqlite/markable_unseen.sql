-- Ends that an owner has not seen and that have not changed after a head, of the states and the action that are asked for
-- ('[]' and NULL = any): what an opened panel marks. An archived one counts as seen. Index: taskbell_tasks_unseen.
SELECT @columns FROM taskbell_tasks t
WHERE t.tenant = $1 AND t.owner = $2 AND t.active = 0 AND t.head <= $3
    AND t.seen_at IS NULL AND t.archived_at IS NULL AND $4 = 'seen'
    AND ($5 = '[]' OR t.state IN (SELECT j.value FROM json_each($5) j))
    AND ($6 IS NULL OR t.action = $6)
ORDER BY t.id LIMIT $7
