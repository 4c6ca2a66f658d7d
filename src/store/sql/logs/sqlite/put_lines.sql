-- Stores lines of many tasks, one statement for all: a JSON array of [task, seq, at, level, source, chunk, bytes, message].
-- The number of a line was given under the same transaction, so the primary key is never met twice.
INSERT INTO taskbell_log_line (task, seq, at, level, source, chunk, bytes, message)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7
FROM json_each($1)
