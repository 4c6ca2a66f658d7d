-- Ends that were not seen, and failures that were not read. Index: taskbell_tasks_unseen, taskbell_tasks_attention.
SELECT
    (SELECT COUNT(*) FROM taskbell_tasks t WHERE t.active = 0 AND t.seen_at IS NULL AND t.archived_at IS NULL AND @reach),
    (SELECT COUNT(*) FROM taskbell_tasks t WHERE t.state = 'failed' AND t.read_at IS NULL AND t.archived_at IS NULL AND @reach)
