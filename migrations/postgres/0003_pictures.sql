-- The picture of a task: how far it was when, and which finish was told at that moment; at most 120 points a task.
-- And why an attempt failed, which the task itself forgets with its next committed chunk.

CREATE TABLE taskbell_points (
    task_id TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    progress_current BIGINT NOT NULL,
    progress_total BIGINT,
    low_at BIGINT,
    finish_at BIGINT,
    high_at BIGINT,
    attempt BIGINT NOT NULL,
    PRIMARY KEY (task_id, at)
);

ALTER TABLE taskbell_events ADD COLUMN failure TEXT COLLATE "C";
