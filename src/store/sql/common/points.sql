-- The picture of a task, by primary key.
SELECT p.at, p.progress_current, p.progress_total, p.low_at, p.finish_at, p.high_at, p.attempt
FROM taskbell_points p WHERE p.task_id = $1 ORDER BY p.at
