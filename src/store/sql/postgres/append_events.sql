-- Appends to timelines; a place that is taken fails the statement: then the id of a new task is one that is there already.
-- Arrays, one a column: one prepared statement for batches of any size.
INSERT INTO taskbell_events (@events) SELECT * FROM @rows
