-- The last 20 successes of an action. Index: taskbell_tasks_usual.
SELECT t.finished_at - t.started_at, t.progress_current, t.estimator FROM taskbell_tasks t
WHERE t.tenant = $1 AND t.action = $2 AND t.state = 'succeeded' AND t.started_at IS NOT NULL
ORDER BY t.finished_at DESC LIMIT 20
