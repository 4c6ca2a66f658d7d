-- New tasks. Arrays, one a column: one prepared statement for batches of any size.
INSERT INTO taskbell_tasks (@names) SELECT * FROM @rows
