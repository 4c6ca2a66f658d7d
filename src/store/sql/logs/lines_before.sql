-- A part of a task's log from its new end, newest first; else as the one from the old end.
SELECT seq, at, level, source, chunk, message
FROM taskbell_log_line
WHERE task = $1 AND seq > $2 AND seq < $3 AND level >= $4
    AND (CAST($5 AS TEXT) IS NULL OR lower(message) LIKE $5 ESCAPE '!')
ORDER BY seq DESC LIMIT $6
