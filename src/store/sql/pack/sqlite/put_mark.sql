-- Marks a chunk as ended, in the transaction of its changes. Changes no row when this chunk, or a later one, was marked
-- already; then the transaction is rolled back. The clock is SQLite's own name for the machine's.
INSERT INTO taskbell_chunks (task, chunk, token, outcome, ended_at)
VALUES ($1, $2, $3, $4, CAST(unixepoch('subsec') * 1000 AS INTEGER))
ON CONFLICT (task) DO UPDATE SET
    chunk = excluded.chunk, token = excluded.token, outcome = excluded.outcome, ended_at = excluded.ended_at
WHERE taskbell_chunks.chunk < excluded.chunk
