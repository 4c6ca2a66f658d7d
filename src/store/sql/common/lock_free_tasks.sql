-- Tasks by id, locked without waiting: those that somebody else has locked are left out. By primary key.
SELECT @columns FROM taskbell_tasks t WHERE t.id @in($1) ORDER BY t.id @skip_locked
