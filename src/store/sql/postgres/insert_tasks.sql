-- New tasks; an id that is taken fails the statement. Arrays, one a column: one prepared statement for batches of any size.
INSERT INTO taskbell_tasks (@names) SELECT @given FROM @rows
