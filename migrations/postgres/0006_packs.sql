-- Packs: which there are, and which are switched off; and of each task, the pack that declared its button.
CREATE TABLE taskbell_packs (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    version TEXT COLLATE "C" NOT NULL,
    serial BIGINT NOT NULL,
    paused BIGINT NOT NULL,
    changed_at BIGINT,
    changed_by TEXT COLLATE "C"
);

ALTER TABLE taskbell_tasks ADD COLUMN pack TEXT COLLATE "C";

-- Unfinished tasks of a pack, by state: what a switch has to stop.
CREATE INDEX taskbell_tasks_pack ON taskbell_tasks (pack, state) WHERE active = 1 AND pack IS NOT NULL;
-- Tasks that their pack holds: what a switch lets go on.
CREATE INDEX taskbell_tasks_held ON taskbell_tasks (pack) WHERE wait = 'pack-disabled';
