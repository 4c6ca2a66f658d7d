-- Adds points to pictures; of two for one instant the later one counts. Arrays, one a column.
INSERT INTO taskbell_points (@points) SELECT * FROM @rows
ON CONFLICT (task_id, at) DO UPDATE SET progress_current = excluded.progress_current, progress_total = excluded.progress_total,
    low_at = excluded.low_at, finish_at = excluded.finish_at, high_at = excluded.high_at, attempt = excluded.attempt
