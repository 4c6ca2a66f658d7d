-- Ends that an owner has not seen and that have not changed after a head, that the filters fit
-- (an empty list and NULL = any), locked: what an opened panel marks. An archived one counts as seen.
-- Index: taskbell_tasks_unseen.
SELECT @columns FROM taskbell_tasks t
WHERE t.tenant = $1 AND t.owner = $2 AND t.active = 0 AND t.head <= $3
    AND t.seen_at IS NULL AND t.archived_at IS NULL AND $4 = 'seen'
    AND (@empty($5) OR t.state @in($5))
    AND (CAST($6 AS TEXT) IS NULL OR t.action = $6)
    AND (CAST($8 AS TEXT) IS NULL OR (t.record_type = $8 AND t.record_id = $9))
    AND (CAST($10 AS TEXT) IS NULL OR lower(coalesce(t.title, '')) LIKE $10 ESCAPE '!'
        OR lower(t.action) LIKE $10 ESCAPE '!' OR t.id LIKE $10 ESCAPE '!'
        OR lower(coalesce(t.record_id, '')) LIKE $10 ESCAPE '!')
    AND (CAST($11 AS BIGINT) IS NULL OR t.created_at >= $11) AND (CAST($12 AS BIGINT) IS NULL OR t.created_at < $12)
ORDER BY t.id LIMIT $7 @lock
