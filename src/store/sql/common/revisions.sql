-- The revisions of tasks. By primary key.
SELECT t.id, t.revision FROM taskbell_tasks t WHERE t.id @in($1)
