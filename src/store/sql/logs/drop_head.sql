-- Forgets a task's log. Takes the primary key.
DELETE FROM taskbell_log_head WHERE task = $1
