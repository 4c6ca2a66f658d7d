-- The picture of a task: how far it was when, and which finish was told at that moment; at most 120 points a task.
-- And why an attempt failed, which the task itself forgets with its next committed chunk.

CREATE TABLE taskbell_points (
    task_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    progress_current INTEGER NOT NULL,
    progress_total INTEGER,
    low_at INTEGER,
    finish_at INTEGER,
    high_at INTEGER,
    attempt INTEGER NOT NULL,
    PRIMARY KEY (task_id, at)
) WITHOUT ROWID;

ALTER TABLE taskbell_events ADD COLUMN failure TEXT;
