-- The oldest lines of a task with their sizes, to find how many have to go. Walks the primary key from its start and stops
-- at the limit, so its cost follows what is dropped and not what is there.
SELECT seq, bytes FROM taskbell_log_line WHERE task = $1 AND seq > $2 ORDER BY seq LIMIT $3
