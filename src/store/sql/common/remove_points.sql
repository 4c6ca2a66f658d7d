-- Deletes by task.
DELETE FROM taskbell_points WHERE task_id @in($1)
