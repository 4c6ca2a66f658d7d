-- Deletes by task.
DELETE FROM taskbell_events WHERE task_id @in($1)
