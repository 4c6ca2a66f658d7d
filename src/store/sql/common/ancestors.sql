-- The parents of tasks, theirs, and so on; not locked. A task's parent never changes. By primary key, at most eight steps.
WITH RECURSIVE up (id, parent) AS (
    SELECT t.id, t.parent FROM taskbell_tasks t WHERE t.id @in($1)
    UNION
    SELECT p.id, p.parent FROM up JOIN taskbell_tasks p ON p.id = up.parent
)
SELECT DISTINCT up.parent FROM up WHERE up.parent IS NOT NULL
