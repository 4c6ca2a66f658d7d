-- How many ended tasks of an owner a mark would change, by the filters of markable_up_to; no more than the limit.
-- Index: taskbell_tasks_owner.
SELECT COUNT(*) FROM (
    SELECT 1 FROM taskbell_tasks t
    WHERE t.tenant = $1 AND t.owner = $2 AND t.active = 0 AND t.head <= $3
        AND CASE $4 WHEN 'seen' THEN t.seen_at WHEN 'read' THEN t.read_at ELSE t.archived_at END IS NULL
        AND (@empty($5) OR t.state @in($5))
        AND (CAST($6 AS TEXT) IS NULL OR t.action = $6)
        AND (CAST($8 AS TEXT) IS NULL OR (t.record_type = $8 AND t.record_id = $9))
        AND (CAST($10 AS TEXT) IS NULL OR lower(coalesce(t.title, '')) LIKE $10 ESCAPE '!'
            OR lower(t.action) LIKE $10 ESCAPE '!' OR t.id LIKE $10 ESCAPE '!'
            OR lower(coalesce(t.record_id, '')) LIKE $10 ESCAPE '!')
        AND (CAST($11 AS BIGINT) IS NULL OR t.created_at >= $11) AND (CAST($12 AS BIGINT) IS NULL OR t.created_at < $12)
    LIMIT $7
) counted
