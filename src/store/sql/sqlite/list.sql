-- A page of tasks by keyset. @sort is one of four columns, @direction ASC or DESC, @beyond < or >; all come from an enum.
-- Filters that are NULL (or '[]') do not filter. Index: taskbell_tasks_owner, _tenant or _record for the default order.
SELECT @columns FROM taskbell_tasks t
WHERE ($1 IS NULL OR t.tenant = $1) AND ($2 IS NULL OR t.owner = $2)
    AND ($3 = '[]' OR t.state IN (SELECT j.value FROM json_each($3) j))
    AND ($4 IS NULL OR t.action = $4)
    AND ($5 IS NULL OR (t.record_type = $5 AND t.record_id = $6))
    AND ($7 IS NULL OR lower(coalesce(t.title, '')) LIKE $7 ESCAPE '!' OR lower(t.action) LIKE $7 ESCAPE '!'
        OR t.id LIKE $7 ESCAPE '!' OR lower(coalesce(t.record_id, '')) LIKE $7 ESCAPE '!')
    AND ($8 IS NULL OR t.created_at >= $8) AND ($9 IS NULL OR t.created_at < $9)
    AND ($10 = 1 OR t.archived_at IS NULL)
    AND ($11 IS NULL OR (@sort, t.id) @beyond ($11, $12))
ORDER BY @sort @direction, t.id @direction LIMIT $13
