-- What changes of tasks as they go their way, the id first. Half the values of update_tasks.sql. OR FAIL as in
-- insert_tasks.sql.
UPDATE OR FAIL taskbell_tasks SET @set_often
FROM (VALUES @rows) v
WHERE taskbell_tasks.id = v.column1
