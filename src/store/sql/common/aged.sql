-- The tasks after an id, in the order of ids, which is that in which they were accepted: a slice of all, so that retention
-- needs no index of its own and costs those who end tasks nothing. By primary key; of each, the longest time for which it
-- answers for an idempotency key (taskbell_keys_task).
SELECT t.id, t.state, t.created_at, t.finished_at,
    (SELECT MAX(k.keep_ms) FROM taskbell_keys k WHERE k.task_id = t.id)
FROM taskbell_tasks t WHERE t.id > $1 ORDER BY t.id LIMIT $2
