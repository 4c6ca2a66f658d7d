-- Deletes by task.
DELETE FROM taskbell_documents WHERE task_id IN (SELECT j.value FROM json_each($1) j)
