-- Tasks by id, in id order. By primary key.
SELECT @columns FROM taskbell_tasks t WHERE t.id @in($1) ORDER BY t.id
