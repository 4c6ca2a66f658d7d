-- Deletes by task.
DELETE FROM taskbell_documents WHERE task_id @in($1)
