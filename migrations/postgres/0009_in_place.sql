-- What changes of a task while a chunk of it is under way (progress, leases, chunk after chunk) is in no index, so that the
-- server can write the new row beside the old one and leave all indexes as they are.

-- A chunk is under way: a lease that is lengthened moves nothing.
ALTER TABLE taskbell_tasks ADD COLUMN under_way BIGINT NOT NULL DEFAULT 0;
-- The owner's head at the last change that left no chunk under way. What changed since is found among those that are.
ALTER TABLE taskbell_tasks ADD COLUMN log_head BIGINT NOT NULL DEFAULT 0;
UPDATE taskbell_tasks SET log_head = head, under_way = CASE WHEN lease_until IS NULL THEN 0 ELSE 1 END;

DROP INDEX taskbell_tasks_lease;
CREATE INDEX taskbell_tasks_under_way ON taskbell_tasks (tenant, owner, id) WHERE under_way = 1;
DROP INDEX taskbell_tasks_head;
CREATE INDEX taskbell_tasks_log ON taskbell_tasks (tenant, owner, log_head);
-- When the next task is due is read off the claim's index.
DROP INDEX taskbell_tasks_due;

-- Room for the next version of a row on its own page.
ALTER TABLE taskbell_tasks SET (fillfactor = 85);
ALTER TABLE taskbell_heads SET (fillfactor = 50);
