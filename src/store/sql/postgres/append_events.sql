-- Appends to timelines; an entry whose place is taken is left as it is, and the count of rows tells: then the id of a new task
-- is one that is there already. Arrays, one a column: one prepared statement for batches of any size.
INSERT INTO taskbell_events (@events) SELECT * FROM @rows ON CONFLICT (task_id, seq) DO NOTHING
