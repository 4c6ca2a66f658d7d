-- What changes of tasks as they go their way, the id first; their rows are locked. Half the columns of update_tasks.sql: an
-- array a column is to be opened for each row. By primary key.
UPDATE taskbell_tasks SET @set_often FROM @rows WHERE taskbell_tasks.id = v.column1
