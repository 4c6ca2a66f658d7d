-- Deletes by task.
DELETE FROM taskbell_tasks WHERE id @in($1)
