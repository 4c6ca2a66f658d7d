-- The table of marks in a pack's own database: the last chunk of each task that changed something there, and its answer.
CREATE TABLE IF NOT EXISTS taskbell_chunks (
    task TEXT NOT NULL PRIMARY KEY,
    chunk BIGINT NOT NULL,
    token BIGINT NOT NULL,
    outcome TEXT NOT NULL,
    ended_at BIGINT NOT NULL
)
