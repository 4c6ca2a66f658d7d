-- Workers outside that fetch chunks over the API.

-- Until when the chunk under way may take, where such a worker runs it. Null where a node runs it. An older version leaves it
-- as it is when it ends a chunk; it is set anew with each claim.
ALTER TABLE taskbell_tasks ADD COLUMN chunk_until BIGINT;

-- When workers last asked for an action, so that every node can tell of a task that nobody will fetch. The tenant is `*` for
-- workers of all tenants.
CREATE TABLE taskbell_worker_asks (
    action TEXT COLLATE "C" NOT NULL,
    tenant TEXT COLLATE "C" NOT NULL,
    asked_at BIGINT NOT NULL,
    PRIMARY KEY (action, tenant)
);
