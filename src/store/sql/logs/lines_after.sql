-- A part of a task's log from its old end. The text is found literally, letters A to Z in either case. Locks nothing; walks
-- the primary key and stops at the limit.
SELECT seq, at, level, source, chunk, message
FROM taskbell_log_line
WHERE task = $1 AND seq > $2 AND seq < $3 AND level >= $4
    AND (CAST($5 AS TEXT) IS NULL OR lower(message) LIKE $5 ESCAPE '!')
ORDER BY seq LIMIT $6
