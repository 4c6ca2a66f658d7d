-- Tasks by id, locked in id order, so that two batches cannot wait for each other. By primary key.
SELECT @columns FROM taskbell_tasks t WHERE t.id @in($1) ORDER BY t.id @lock
