-- Tasks, their documents and timelines, the keys they hold, and who may call.
-- Instants are milliseconds UTC, booleans 0/1, JSON is text. Text compares byte by byte, whatever the database's locale.

CREATE TABLE taskbell_meta (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    value TEXT COLLATE "C" NOT NULL
);

-- Names this incarnation of the database. After a restore from a backup, renew it: what clients remember is void then.
INSERT INTO taskbell_meta (name, value) VALUES ('epoch', substr(replace(CAST(gen_random_uuid() AS TEXT), '-', ''), 1, 16));

CREATE TABLE taskbell_tasks (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    title TEXT COLLATE "C",
    owner TEXT COLLATE "C" NOT NULL,
    started_by TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    revision BIGINT NOT NULL,
    head BIGINT NOT NULL,
    record_type TEXT COLLATE "C",
    record_id TEXT COLLATE "C",
    idempotency_key TEXT COLLATE "C",
    suppressed BIGINT NOT NULL,
    superseded BIGINT NOT NULL,
    concurrency_key TEXT COLLATE "C",
    concurrency_limit BIGINT,
    concurrency_hold TEXT COLLATE "C",
    slot_held BIGINT NOT NULL,
    gated BIGINT NOT NULL,
    priority BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    run_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT,
    updated_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    max_attempts BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    chunks BIGINT NOT NULL,
    idle_chunks BIGINT NOT NULL,
    checkpoint_hash BIGINT,
    reclaims BIGINT NOT NULL,
    takeovers BIGINT NOT NULL,
    fencing_token BIGINT NOT NULL,
    lease_owner TEXT COLLATE "C",
    lease_until BIGINT,
    timeout_ms BIGINT,
    deadline BIGINT,
    wait TEXT COLLATE "C",
    blocked_by TEXT COLLATE "C",
    stop_actor TEXT COLLATE "C",
    stop_reason TEXT COLLATE "C",
    stop_at BIGINT,
    progress_current BIGINT NOT NULL,
    progress_total BIGINT,
    progress_unit TEXT COLLATE "C",
    progress_phase TEXT COLLATE "C",
    progress_message TEXT COLLATE "C",
    progress_at BIGINT,
    estimator TEXT COLLATE "C" NOT NULL,
    rows_ok BIGINT NOT NULL,
    rows_skipped BIGINT NOT NULL,
    rows_failed BIGINT NOT NULL,
    warnings TEXT COLLATE "C" NOT NULL,
    error TEXT COLLATE "C",
    has_result BIGINT NOT NULL,
    retry_of TEXT COLLATE "C",
    seen_at BIGINT,
    read_at BIGINT,
    archived_at BIGINT,
    event_count BIGINT NOT NULL,
    -- Derived by the core and stored, so that indexes can be partial: may be claimed; order of claims; not ended.
    claimable BIGINT NOT NULL,
    rank BIGINT NOT NULL,
    active BIGINT NOT NULL,
    -- An ended task has an end and no lease; an unfinished one has none.
    CHECK ((active = 0) = (finished_at IS NOT NULL)),
    CHECK (active = 1 OR (lease_until IS NULL AND slot_held = 0 AND gated = 0))
);

-- Claims: by tenant in claim order; rows with a lease, gated, paused or ended are not in it.
CREATE INDEX taskbell_tasks_claim ON taskbell_tasks (tenant, rank, id, due_at, action) WHERE claimable = 1;
-- The next due instant.
CREATE INDEX taskbell_tasks_due ON taskbell_tasks (due_at) WHERE claimable = 1;
-- The sweep.
CREATE INDEX taskbell_tasks_lease ON taskbell_tasks (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX taskbell_tasks_deadline ON taskbell_tasks (active, deadline) WHERE active = 1 AND deadline IS NOT NULL;
-- Concurrency keys: who holds, who waits.
CREATE INDEX taskbell_tasks_slot ON taskbell_tasks (tenant, concurrency_key) WHERE slot_held = 1;
CREATE INDEX taskbell_tasks_gate ON taskbell_tasks (tenant, concurrency_key, priority DESC, due_at, id) WHERE gated = 1;
-- Lists and the notification center. Where an index is partial, the columns of its condition come first: the planner then
-- prefers it to a longer one, and need not look into the rows.
CREATE INDEX taskbell_tasks_owner ON taskbell_tasks (tenant, owner, created_at, id);
CREATE INDEX taskbell_tasks_tenant ON taskbell_tasks (tenant, created_at, id);
CREATE INDEX taskbell_tasks_active ON taskbell_tasks (active, tenant, owner, created_at, id, state) WHERE active = 1;
CREATE INDEX taskbell_tasks_unseen ON taskbell_tasks (active, seen_at, archived_at, tenant, owner, finished_at, id)
    WHERE active = 0 AND seen_at IS NULL AND archived_at IS NULL;
CREATE INDEX taskbell_tasks_attention ON taskbell_tasks (state, read_at, archived_at, tenant, owner)
    WHERE state = 'failed' AND read_at IS NULL AND archived_at IS NULL;
CREATE INDEX taskbell_tasks_record ON taskbell_tasks (tenant, record_type, record_id, created_at, id)
    WHERE record_type IS NOT NULL;
-- What an action usually takes.
CREATE INDEX taskbell_tasks_usual ON taskbell_tasks (tenant, action, finished_at) WHERE state = 'succeeded';

CREATE TABLE taskbell_documents (
    task_id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    body TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (task_id, kind)
);

CREATE TABLE taskbell_events (
    task_id TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    from_state TEXT COLLATE "C",
    to_state TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    actor TEXT COLLATE "C",
    node TEXT COLLATE "C",
    attempt BIGINT NOT NULL,
    chunk BIGINT NOT NULL,
    PRIMARY KEY (task_id, seq)
);

-- The present holder of each idempotency key. The primary key is what decides a race.
CREATE TABLE taskbell_keys (
    tenant TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    idempotency_key TEXT COLLATE "C" NOT NULL,
    task_id TEXT COLLATE "C" NOT NULL,
    keep_ms BIGINT NOT NULL,
    fingerprint TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, action, kind, idempotency_key)
);

CREATE INDEX taskbell_keys_task ON taskbell_keys (task_id);

-- One row an owner, moved in each commit that changes one of the owner's tasks.
CREATE TABLE taskbell_heads (
    tenant TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    head BIGINT NOT NULL,
    PRIMARY KEY (tenant, owner)
);

CREATE TABLE taskbell_api_keys (
    hash TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    user_name TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL,
    scopes TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT
);

CREATE TABLE taskbell_sessions (
    hash TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    user_name TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL,
    scopes TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE TABLE taskbell_files (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    task_id TEXT COLLATE "C",
    name TEXT COLLATE "C" NOT NULL,
    content_type TEXT COLLATE "C" NOT NULL,
    size_bytes BIGINT NOT NULL,
    sha256 TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT
);

CREATE INDEX taskbell_files_task ON taskbell_files (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX taskbell_files_expiry ON taskbell_files (expires_at) WHERE expires_at IS NOT NULL;
