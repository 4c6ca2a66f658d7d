-- What tells whether a task is still as this process has written it, locked in id order as in lock_tasks.sql; so that a task
-- that it knows is not read anew. By primary key.
SELECT t.id, t.state, t.revision, t.head, t.fencing_token, t.updated_at, t.lease_until
FROM taskbell_tasks t WHERE t.id @in($1) ORDER BY t.id @lock
