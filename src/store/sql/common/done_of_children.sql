-- What is done of the children of tasks, in thousandths of their weight (see core/family.rs). Index: taskbell_tasks_parent.
SELECT t.parent, CAST(SUM(CASE
    WHEN t.active = 0 THEN t.weight * 1000
    WHEN t.progress_total > 0 AND t.progress_current >= t.progress_total THEN t.weight * 1000
    WHEN t.progress_total > 0
        THEN CAST(t.weight * 1000 * (CAST(t.progress_current AS DOUBLE PRECISION) / t.progress_total) AS BIGINT)
    ELSE 0 END) AS BIGINT)
FROM taskbell_tasks t WHERE t.parent @in($1) GROUP BY t.parent
