-- The schema of a fresh database, as SQLite tells it: a migration shows as a difference here.
-- Written anew by: TASKBELL_WRITE_SCHEMA=1 cargo test --test it fresh_database

CREATE TABLE taskbell_api_keys (
    hash TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    user_name TEXT NOT NULL,
    role TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER
) WITHOUT ROWID;

CREATE TABLE taskbell_documents (
    task_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (task_id, kind)
);

CREATE TABLE taskbell_events (
    task_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    from_state TEXT,
    to_state TEXT NOT NULL,
    reason TEXT NOT NULL,
    actor TEXT,
    node TEXT,
    attempt INTEGER NOT NULL,
    chunk INTEGER NOT NULL, failure TEXT,
    PRIMARY KEY (task_id, seq)
) WITHOUT ROWID;

CREATE TABLE taskbell_files (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    task_id TEXT,
    name TEXT NOT NULL,
    content_type TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER
) WITHOUT ROWID;

CREATE INDEX taskbell_files_expiry ON taskbell_files (expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX taskbell_files_task ON taskbell_files (task_id) WHERE task_id IS NOT NULL;

CREATE TABLE taskbell_heads (
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    head INTEGER NOT NULL, deleted_head INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, owner)
) WITHOUT ROWID;

CREATE TABLE taskbell_keys (
    tenant TEXT NOT NULL,
    action TEXT NOT NULL,
    kind TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    task_id TEXT NOT NULL,
    keep_ms INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    PRIMARY KEY (tenant, action, kind, idempotency_key)
) WITHOUT ROWID;

CREATE INDEX taskbell_keys_task ON taskbell_keys (task_id);

CREATE TABLE taskbell_meta (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE taskbell_migrations (number BIGINT NOT NULL PRIMARY KEY, checksum VARCHAR(64) NOT NULL);

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

CREATE TABLE taskbell_packs (
    name TEXT NOT NULL PRIMARY KEY,
    version TEXT NOT NULL,
    serial INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    changed_at INTEGER,
    changed_by TEXT
) WITHOUT ROWID;

CREATE TABLE taskbell_points (
    task_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    progress_current INTEGER NOT NULL,
    progress_total INTEGER,
    low_at INTEGER,
    finish_at INTEGER,
    high_at INTEGER,
    attempt INTEGER NOT NULL,
    PRIMARY KEY (task_id, at)
) WITHOUT ROWID;

CREATE TABLE taskbell_sessions (
    hash TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    user_name TEXT NOT NULL,
    role TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
, used_at INTEGER NOT NULL DEFAULT 0, rests_on INTEGER) WITHOUT ROWID;

CREATE TABLE taskbell_tasks (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    action TEXT NOT NULL,
    title TEXT,
    owner TEXT NOT NULL,
    started_by TEXT NOT NULL,
    state TEXT NOT NULL,
    revision INTEGER NOT NULL,
    head INTEGER NOT NULL,
    record_type TEXT,
    record_id TEXT,
    idempotency_key TEXT,
    suppressed INTEGER NOT NULL,
    superseded INTEGER NOT NULL,
    concurrency_key TEXT,
    concurrency_limit INTEGER,
    concurrency_hold TEXT,
    slot_held INTEGER NOT NULL,
    gated INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    updated_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    chunks INTEGER NOT NULL,
    idle_chunks INTEGER NOT NULL,
    checkpoint_hash INTEGER,
    reclaims INTEGER NOT NULL,
    takeovers INTEGER NOT NULL,
    fencing_token INTEGER NOT NULL,
    lease_owner TEXT,
    lease_until INTEGER,
    timeout_ms INTEGER,
    deadline INTEGER,
    wait TEXT,
    blocked_by TEXT,
    stop_actor TEXT,
    stop_reason TEXT,
    stop_at INTEGER,
    progress_current INTEGER NOT NULL,
    progress_total INTEGER,
    progress_unit TEXT,
    progress_phase TEXT,
    progress_message TEXT,
    progress_at INTEGER,
    estimator TEXT NOT NULL,
    rows_ok INTEGER NOT NULL,
    rows_skipped INTEGER NOT NULL,
    rows_failed INTEGER NOT NULL,
    warnings TEXT NOT NULL,
    error TEXT,
    has_result INTEGER NOT NULL,
    retry_of TEXT,
    seen_at INTEGER,
    read_at INTEGER,
    archived_at INTEGER,
    event_count INTEGER NOT NULL,
    -- Derived by the core and stored, so that indexes can be partial: may be claimed; order of claims; not ended.
    claimable INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    active INTEGER NOT NULL, parent TEXT, depth INTEGER, weight INTEGER, awaits TEXT, family TEXT, pack TEXT, chunk_until INTEGER, under_way INTEGER NOT NULL DEFAULT 0, log_head INTEGER NOT NULL DEFAULT 0,
    -- An ended task has an end and no lease; an unfinished one has none.
    CHECK ((active = 0) = (finished_at IS NOT NULL)),
    CHECK (active = 1 OR (lease_until IS NULL AND slot_held = 0 AND gated = 0))
) WITHOUT ROWID;

CREATE INDEX taskbell_tasks_active ON taskbell_tasks (active, tenant, owner, created_at, id, state) WHERE active = 1;

CREATE INDEX taskbell_tasks_attention ON taskbell_tasks (state, read_at, archived_at, tenant, owner)
    WHERE state = 'failed' AND read_at IS NULL AND archived_at IS NULL;

CREATE INDEX taskbell_tasks_awaits ON taskbell_tasks (active, id) WHERE awaits IS NOT NULL;

CREATE INDEX taskbell_tasks_claim ON taskbell_tasks (tenant, rank, id, due_at, action) WHERE claimable = 1;

CREATE INDEX taskbell_tasks_deadline ON taskbell_tasks (active, deadline) WHERE active = 1 AND deadline IS NOT NULL;

CREATE INDEX taskbell_tasks_gate ON taskbell_tasks (tenant, concurrency_key, priority DESC, due_at, id) WHERE gated = 1;

CREATE INDEX taskbell_tasks_held ON taskbell_tasks (pack) WHERE wait = 'pack-disabled';

CREATE INDEX taskbell_tasks_open_children ON taskbell_tasks (parent, state, id) WHERE parent IS NOT NULL AND active = 1;

CREATE INDEX taskbell_tasks_owner ON taskbell_tasks (tenant, owner, created_at, id);

CREATE INDEX taskbell_tasks_pack ON taskbell_tasks (pack, state) WHERE active = 1 AND pack IS NOT NULL;

CREATE INDEX taskbell_tasks_parent ON taskbell_tasks (parent, active, state, id) WHERE parent IS NOT NULL;

CREATE INDEX taskbell_tasks_record ON taskbell_tasks (tenant, record_type, record_id, created_at, id)
    WHERE record_type IS NOT NULL;

CREATE INDEX taskbell_tasks_slot ON taskbell_tasks (tenant, concurrency_key) WHERE slot_held = 1;

CREATE INDEX taskbell_tasks_tenant ON taskbell_tasks (tenant, created_at, id);

CREATE INDEX taskbell_tasks_under_way ON taskbell_tasks (under_way, id) WHERE under_way = 1;

CREATE INDEX taskbell_tasks_unseen ON taskbell_tasks (active, seen_at, archived_at, tenant, owner, finished_at, id)
    WHERE active = 0 AND seen_at IS NULL AND archived_at IS NULL;

CREATE INDEX taskbell_tasks_usual ON taskbell_tasks (tenant, action, finished_at) WHERE state = 'succeeded';

CREATE TABLE taskbell_users (
    name TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    role TEXT NOT NULL,
    password TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE taskbell_worker_asks (
    action TEXT NOT NULL,
    tenant TEXT NOT NULL,
    asked_at INTEGER NOT NULL,
    PRIMARY KEY (action, tenant)
) WITHOUT ROWID;
