-- The change log between nodes: what another node changed is read off the tasks, by the owner's head at their last change.

-- Tasks of an owner that changed after a head.
CREATE INDEX taskbell_tasks_head ON taskbell_tasks (tenant, owner, head);
-- A deleted task leaves no row that could tell of it: the head of the last commit that deleted tasks of the owner. A version
-- that does not know it leaves it behind, and what that one deletes shows at the next snapshot.
ALTER TABLE taskbell_heads ADD COLUMN deleted_head BIGINT NOT NULL DEFAULT 0;
