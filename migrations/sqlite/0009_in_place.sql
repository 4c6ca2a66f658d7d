-- What changes of a task while a chunk of it is under way (progress, leases, chunk after chunk) is in no index, so that only
-- its row is written.

-- A chunk is under way: a lease that is lengthened moves nothing.
ALTER TABLE taskbell_tasks ADD COLUMN under_way INTEGER NOT NULL DEFAULT 0;
-- The owner's head at the last change that left no chunk under way. A file has one process, which hears of everything itself:
-- there is no index for it here.
ALTER TABLE taskbell_tasks ADD COLUMN log_head INTEGER NOT NULL DEFAULT 0;
UPDATE taskbell_tasks SET log_head = head, under_way = CASE WHEN lease_until IS NULL THEN 0 ELSE 1 END;

DROP INDEX taskbell_tasks_lease;
CREATE INDEX taskbell_tasks_under_way ON taskbell_tasks (under_way, id) WHERE under_way = 1;
-- When the next task is due is read off the claim's index.
DROP INDEX taskbell_tasks_due;
