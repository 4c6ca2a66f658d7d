-- Children of a task after an id, by id. Index: taskbell_tasks_parent; a page is sorted out of all of them.
SELECT @columns FROM taskbell_tasks t
WHERE t.parent = $1 AND (CAST($2 AS TEXT) IS NULL OR t.id > $2) ORDER BY t.id LIMIT $3
