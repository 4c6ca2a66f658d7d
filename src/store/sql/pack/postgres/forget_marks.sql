-- Forgets marks of tasks that nothing runs any more: a mark is looked for until the chunk after it, within the lease times of a
-- day at most. Reads the whole table, once a start.
DELETE FROM taskbell_chunks WHERE ended_at < CAST((EXTRACT(EPOCH FROM clock_timestamp()) - 7776000) * 1000 AS BIGINT)
