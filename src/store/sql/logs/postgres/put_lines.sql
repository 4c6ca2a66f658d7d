-- Stores lines of many tasks, one statement for all. The number of a line was given under the same transaction, so the
-- primary key is never met twice. Arrays, one a column.
INSERT INTO taskbell_log_line (task, seq, at, level, source, chunk, bytes, message)
SELECT * FROM UNNEST(CAST($1 AS TEXT[]), CAST($2 AS BIGINT[]), CAST($3 AS BIGINT[]), CAST($4 AS BIGINT[]),
    CAST($5 AS TEXT[]), CAST($6 AS BIGINT[]), CAST($7 AS BIGINT[]), CAST($8 AS TEXT[]))
