-- Appends to timelines. Arrays, one a column: one prepared statement for batches of any size.
INSERT INTO taskbell_events (@events) SELECT * FROM @rows
