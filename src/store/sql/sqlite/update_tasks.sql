-- All that may change of tasks, the id first. Documents live apart, so a change of state never rewrites them. Values are
-- bound one by one: a JSON array that SQL opens costs three times as much. OR FAIL as in insert_tasks.sql.
UPDATE OR FAIL taskbell_tasks SET @set
FROM (VALUES @rows) v
WHERE taskbell_tasks.id = v.column1
