-- Descendants of tasks that ended without success, or are about to, each by way of such ones; not locked. One step of the
-- index a child: taskbell_tasks_parent (SQLite keeps the order of a CROSS JOIN).
WITH RECURSIVE below (id) AS (
    SELECT t.id FROM taskbell_tasks t WHERE t.parent @in($1) AND t.state IN ('failed', 'cancelled', 'cancelling')
    UNION
    SELECT c.id FROM below CROSS JOIN taskbell_tasks c
    WHERE c.parent = below.id AND c.state IN ('failed', 'cancelled', 'cancelling')
)
SELECT below.id FROM below
