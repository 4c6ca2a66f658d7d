-- A page of tasks by keyset. @sort is one of four columns, @direction ASC or DESC; @reach, @record and @after are written
-- for what is given; all come from enums. Other filters that are NULL (or '[]') do not filter.
-- Index: taskbell_tasks_owner, _tenant or _record for the default order, from the place where the page begins.
SELECT @columns FROM taskbell_tasks t
WHERE @reach AND @record AND @after
    AND ($3 = '[]' OR t.state IN (SELECT j.value FROM json_each($3) j))
    AND ($4 IS NULL OR t.action = $4)
    AND ($7 IS NULL OR lower(coalesce(t.title, '')) LIKE lower($7) ESCAPE '!'
        OR lower(t.action) LIKE lower($7) ESCAPE '!' OR t.id LIKE lower($7) ESCAPE '!'
        OR lower(coalesce(t.record_id, '')) LIKE lower($7) ESCAPE '!')
    AND ($8 IS NULL OR t.created_at >= $8) AND ($9 IS NULL OR t.created_at < $9)
    AND ($10 = 1 OR t.archived_at IS NULL)
ORDER BY @sort @direction, t.id @direction LIMIT $13
