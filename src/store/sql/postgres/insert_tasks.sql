-- New tasks; one whose id is taken is left as it is, and the count of rows tells. Arrays, one a column: one prepared
-- statement for batches of any size.
INSERT INTO taskbell_tasks (@names) SELECT @given FROM @rows ON CONFLICT (id) DO NOTHING
