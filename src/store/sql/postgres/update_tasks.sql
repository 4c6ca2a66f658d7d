-- All that may change of tasks, the id first; their rows are locked. Documents live apart, so a change of state never
-- rewrites them. Arrays, one a column. By primary key.
UPDATE taskbell_tasks SET @set FROM @rows WHERE taskbell_tasks.id = v.column1
