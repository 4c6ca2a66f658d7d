-- The nodes that share this database. A row is written with each beat of its node; one that is silent for longer than its
-- lease counts as gone, and its row goes an hour after its last beat.

-- tenants, actions, packs: lists in JSON; no tenants = all. standing: what changes from beat to beat, an object in JSON whose
-- unknown fields are passed over.
CREATE TABLE taskbell_nodes (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    role TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    parallelism BIGINT NOT NULL,
    lease_ms BIGINT NOT NULL,
    tenants TEXT COLLATE "C" NOT NULL,
    actions TEXT COLLATE "C" NOT NULL,
    packs TEXT COLLATE "C" NOT NULL,
    started_at BIGINT NOT NULL,
    beat_at BIGINT NOT NULL,
    standing TEXT COLLATE "C" NOT NULL
);
