-- Deletes by task.
DELETE FROM taskbell_keys WHERE task_id @in($1)
