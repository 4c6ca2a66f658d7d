-- Drops the lines of a task up to a number. One range of the primary key.
DELETE FROM taskbell_log_line WHERE task = $1 AND seq <= $2
