-- A part of a task's log from its new end, newest first; else as the one from the old end.
SELECT seq, at, level, source, chunk, message
FROM taskbell_log_line
WHERE task = $1 AND seq > $2 AND seq < $3 AND level >= $4 AND ($5 = '' OR instr(lower(message), $5) > 0)
ORDER BY seq DESC LIMIT $6
