-- Deletes by task.
DELETE FROM taskbell_tasks WHERE id IN (SELECT j.value FROM json_each($1) j)
