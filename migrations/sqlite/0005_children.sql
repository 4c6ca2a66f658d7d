-- Children: tasks that a chunk of another task submitted, written in its commit. The first three never change.

-- The task whose chunk submitted it; how deep it lies under the first one; how much it counts in its parent's progress.
ALTER TABLE taskbell_tasks ADD COLUMN parent TEXT;
ALTER TABLE taskbell_tasks ADD COLUMN depth INTEGER;
ALTER TABLE taskbell_tasks ADD COLUMN weight INTEGER;
-- It waits for its children (fail, ignore, collect: what one that does not succeed means), and what it knows of them.
ALTER TABLE taskbell_tasks ADD COLUMN awaits TEXT;
ALTER TABLE taskbell_tasks ADD COLUMN family TEXT;

-- The children of a task: which are open, how each of them ended. Only children are in it.
CREATE INDEX taskbell_tasks_parent ON taskbell_tasks (parent, active, state, id) WHERE parent IS NOT NULL;
-- Those that wait for their children.
CREATE INDEX taskbell_tasks_awaits ON taskbell_tasks (active, id) WHERE awaits IS NOT NULL;
