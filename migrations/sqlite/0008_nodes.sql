-- The nodes that share this database. A row is written with each beat of its node; one that is silent for longer than its
-- lease counts as gone, and its row goes an hour after its last beat.

-- tenants, actions, packs: lists in JSON; no tenants = all. standing: what changes from beat to beat, an object in JSON whose
-- unknown fields are passed over.
CREATE TABLE taskbell_nodes (
    id TEXT NOT NULL PRIMARY KEY,
    role TEXT NOT NULL,
    version TEXT NOT NULL,
    parallelism INTEGER NOT NULL,
    lease_ms INTEGER NOT NULL,
    tenants TEXT NOT NULL,
    actions TEXT NOT NULL,
    packs TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    beat_at INTEGER NOT NULL,
    standing TEXT NOT NULL
) WITHOUT ROWID;
