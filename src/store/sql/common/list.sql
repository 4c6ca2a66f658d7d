-- A page of tasks by keyset. @sort is one of four columns, @direction ASC or DESC; @reach, @record, @parent, @after and
-- @active (only unfinished tasks) are written for what is given; all come from enums. Other filters that are NULL (or an empty
-- list) do not filter; $16 is 0 where the state is to be none of those listed.
-- Index: taskbell_tasks_owner, _tenant or _record for the default order, from the place where the page begins; of unfinished
-- tasks taskbell_tasks_active, so that the ended ones cost nothing, and named for it in @through where those of one owner are
-- wanted; of a parent taskbell_tasks_parent.
SELECT @columns FROM taskbell_tasks t @through
WHERE @reach AND @record AND @parent AND @after @active
    AND (@empty($3) OR (t.state @in($3)) = ($16 = 1))
    AND (CAST($4 AS TEXT) IS NULL OR t.action = $4)
    AND (CAST($14 AS TEXT) IS NULL OR t.pack = $14)
    AND (CAST($7 AS TEXT) IS NULL OR lower(coalesce(t.title, '')) LIKE $7 ESCAPE '!'
        OR lower(t.action) LIKE $7 ESCAPE '!' OR t.id LIKE $7 ESCAPE '!'
        OR lower(coalesce(t.record_id, '')) LIKE $7 ESCAPE '!')
    AND (CAST($8 AS BIGINT) IS NULL OR t.created_at >= $8) AND (CAST($9 AS BIGINT) IS NULL OR t.created_at < $9)
    AND ($10 = 1 OR t.archived_at IS NULL)
ORDER BY @sort @direction, t.id @direction LIMIT $13
