-- Marks a chunk as ended, in the transaction of its changes. Waits for another transaction that marks the same task, and
-- changes no row when this chunk, or a later one, was marked already; then the transaction is rolled back. The clock has
-- another name than SQLite's.
INSERT INTO taskbell_chunks (task, chunk, token, outcome, ended_at)
VALUES ($1, $2, $3, $4, CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT))
ON CONFLICT (task) DO UPDATE SET
    chunk = excluded.chunk, token = excluded.token, outcome = excluded.outcome, ended_at = excluded.ended_at
WHERE taskbell_chunks.chunk < excluded.chunk
