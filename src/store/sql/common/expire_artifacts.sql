-- Files of deleted tasks end with them: the next clean-up takes them. Index: taskbell_files_task.
UPDATE taskbell_files SET expires_at = 0 WHERE task_id @in($1)
