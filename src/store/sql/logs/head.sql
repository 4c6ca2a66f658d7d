-- What is known of one task's log. Locks nothing; takes the primary key.
SELECT newest, dropped FROM taskbell_log_head WHERE task = $1
