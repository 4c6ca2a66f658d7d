-- The schema of a fresh database, as PostgreSQL tells it: a migration shows as a difference here.
-- Written anew by: TASKBELL_WRITE_SCHEMA=1 cargo test --test it fresh_database

CREATE TABLE taskbell_api_keys (
    hash text COLLATE C NOT NULL,
    tenant text COLLATE C NOT NULL,
    user_name text COLLATE C NOT NULL,
    role text COLLATE C NOT NULL,
    scopes text COLLATE C NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    PRIMARY KEY (hash)
);

CREATE TABLE taskbell_documents (
    task_id text COLLATE C NOT NULL,
    kind text COLLATE C NOT NULL,
    body text COLLATE C NOT NULL,
    PRIMARY KEY (task_id, kind)
);

CREATE TABLE taskbell_events (
    task_id text COLLATE C NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    from_state text COLLATE C,
    to_state text COLLATE C NOT NULL,
    reason text COLLATE C NOT NULL,
    actor text COLLATE C,
    node text COLLATE C,
    attempt bigint NOT NULL,
    chunk bigint NOT NULL,
    failure text COLLATE C,
    PRIMARY KEY (task_id, seq)
);

CREATE TABLE taskbell_files (
    id text COLLATE C NOT NULL,
    tenant text COLLATE C NOT NULL,
    owner text COLLATE C NOT NULL,
    task_id text COLLATE C,
    name text COLLATE C NOT NULL,
    content_type text COLLATE C NOT NULL,
    size_bytes bigint NOT NULL,
    sha256 text COLLATE C NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    PRIMARY KEY (id)
);

CREATE INDEX taskbell_files_expiry ON public.taskbell_files USING btree (expires_at) WHERE (expires_at IS NOT NULL);

CREATE INDEX taskbell_files_task ON public.taskbell_files USING btree (task_id) WHERE (task_id IS NOT NULL);

CREATE TABLE taskbell_heads (
    tenant text COLLATE C NOT NULL,
    owner text COLLATE C NOT NULL,
    head bigint NOT NULL,
    deleted_head bigint NOT NULL,
    PRIMARY KEY (tenant, owner)
) WITH (fillfactor=50);

CREATE TABLE taskbell_keys (
    tenant text COLLATE C NOT NULL,
    action text COLLATE C NOT NULL,
    kind text COLLATE C NOT NULL,
    idempotency_key text COLLATE C NOT NULL,
    task_id text COLLATE C NOT NULL,
    keep_ms bigint NOT NULL,
    fingerprint text COLLATE C NOT NULL,
    PRIMARY KEY (tenant, action, kind, idempotency_key)
);

CREATE INDEX taskbell_keys_task ON public.taskbell_keys USING btree (task_id);

CREATE TABLE taskbell_meta (
    name text COLLATE C NOT NULL,
    value text COLLATE C NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE taskbell_migrations (
    number bigint NOT NULL,
    checksum character varying(64) NOT NULL,
    PRIMARY KEY (number)
);

CREATE TABLE taskbell_nodes (
    id text COLLATE C NOT NULL,
    role text COLLATE C NOT NULL,
    version text COLLATE C NOT NULL,
    parallelism bigint NOT NULL,
    lease_ms bigint NOT NULL,
    tenants text COLLATE C NOT NULL,
    actions text COLLATE C NOT NULL,
    packs text COLLATE C NOT NULL,
    started_at bigint NOT NULL,
    beat_at bigint NOT NULL,
    standing text COLLATE C NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE taskbell_packs (
    name text COLLATE C NOT NULL,
    version text COLLATE C NOT NULL,
    serial bigint NOT NULL,
    paused bigint NOT NULL,
    changed_at bigint,
    changed_by text COLLATE C,
    PRIMARY KEY (name)
);

CREATE TABLE taskbell_points (
    task_id text COLLATE C NOT NULL,
    at bigint NOT NULL,
    progress_current bigint NOT NULL,
    progress_total bigint,
    low_at bigint,
    finish_at bigint,
    high_at bigint,
    attempt bigint NOT NULL,
    PRIMARY KEY (task_id, at)
);

CREATE TABLE taskbell_sessions (
    hash text COLLATE C NOT NULL,
    tenant text COLLATE C NOT NULL,
    user_name text COLLATE C NOT NULL,
    role text COLLATE C NOT NULL,
    scopes text COLLATE C NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    used_at bigint NOT NULL,
    rests_on bigint,
    PRIMARY KEY (hash)
);

CREATE TABLE taskbell_tasks (
    id text COLLATE C NOT NULL,
    tenant text COLLATE C NOT NULL,
    action text COLLATE C NOT NULL,
    title text COLLATE C,
    owner text COLLATE C NOT NULL,
    started_by text COLLATE C NOT NULL,
    state text COLLATE C NOT NULL,
    revision bigint NOT NULL,
    head bigint NOT NULL,
    record_type text COLLATE C,
    record_id text COLLATE C,
    idempotency_key text COLLATE C,
    suppressed bigint NOT NULL,
    superseded bigint NOT NULL,
    concurrency_key text COLLATE C,
    concurrency_limit bigint,
    concurrency_hold text COLLATE C,
    slot_held bigint NOT NULL,
    gated bigint NOT NULL,
    priority bigint NOT NULL,
    created_at bigint NOT NULL,
    run_at bigint NOT NULL,
    due_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    updated_at bigint NOT NULL,
    attempts bigint NOT NULL,
    max_attempts bigint NOT NULL,
    failures bigint NOT NULL,
    chunks bigint NOT NULL,
    idle_chunks bigint NOT NULL,
    checkpoint_hash bigint,
    reclaims bigint NOT NULL,
    takeovers bigint NOT NULL,
    fencing_token bigint NOT NULL,
    lease_owner text COLLATE C,
    lease_until bigint,
    timeout_ms bigint,
    deadline bigint,
    wait text COLLATE C,
    blocked_by text COLLATE C,
    stop_actor text COLLATE C,
    stop_reason text COLLATE C,
    stop_at bigint,
    progress_current bigint NOT NULL,
    progress_total bigint,
    progress_unit text COLLATE C,
    progress_phase text COLLATE C,
    progress_message text COLLATE C,
    progress_at bigint,
    estimator text COLLATE C NOT NULL,
    rows_ok bigint NOT NULL,
    rows_skipped bigint NOT NULL,
    rows_failed bigint NOT NULL,
    warnings text COLLATE C NOT NULL,
    error text COLLATE C,
    has_result bigint NOT NULL,
    retry_of text COLLATE C,
    seen_at bigint,
    read_at bigint,
    archived_at bigint,
    event_count bigint NOT NULL,
    claimable bigint NOT NULL,
    rank bigint NOT NULL,
    active bigint NOT NULL,
    parent text COLLATE C,
    depth bigint,
    weight bigint,
    awaits text COLLATE C,
    family text COLLATE C,
    pack text COLLATE C,
    chunk_until bigint,
    under_way bigint NOT NULL,
    log_head bigint NOT NULL,
    PRIMARY KEY (id),
    CHECK (((active = 0) = (finished_at IS NOT NULL))),
    CHECK (((active = 1) OR ((lease_until IS NULL) AND (slot_held = 0) AND (gated = 0))))
) WITH (fillfactor=85, autovacuum_vacuum_scale_factor=0.01, autovacuum_vacuum_threshold=10000);

CREATE INDEX taskbell_tasks_active ON public.taskbell_tasks USING btree (active, tenant, owner, created_at, id, state) WHERE (active = 1);

CREATE INDEX taskbell_tasks_attention ON public.taskbell_tasks USING btree (state, read_at, archived_at, tenant, owner) WHERE ((state = 'failed'::text) AND (read_at IS NULL) AND (archived_at IS NULL));

CREATE INDEX taskbell_tasks_awaits ON public.taskbell_tasks USING btree (active, id) WHERE (awaits IS NOT NULL);

CREATE INDEX taskbell_tasks_claim ON public.taskbell_tasks USING btree (tenant, rank, id, due_at, action) WHERE (claimable = 1);

CREATE INDEX taskbell_tasks_deadline ON public.taskbell_tasks USING btree (active, deadline) WHERE ((active = 1) AND (deadline IS NOT NULL));

CREATE INDEX taskbell_tasks_gate ON public.taskbell_tasks USING btree (tenant, concurrency_key, priority DESC, due_at, id) WHERE (gated = 1);

CREATE INDEX taskbell_tasks_held ON public.taskbell_tasks USING btree (pack) WHERE (wait = 'pack-disabled'::text);

CREATE INDEX taskbell_tasks_log ON public.taskbell_tasks USING btree (tenant, owner, log_head);

CREATE INDEX taskbell_tasks_open_children ON public.taskbell_tasks USING btree (parent, state, id) WHERE ((parent IS NOT NULL) AND (active = 1));

CREATE INDEX taskbell_tasks_owner ON public.taskbell_tasks USING btree (tenant, owner, created_at, id);

CREATE INDEX taskbell_tasks_pack ON public.taskbell_tasks USING btree (pack, state) WHERE ((active = 1) AND (pack IS NOT NULL));

CREATE INDEX taskbell_tasks_parent ON public.taskbell_tasks USING btree (parent, active, state, id) WHERE (parent IS NOT NULL);

CREATE INDEX taskbell_tasks_record ON public.taskbell_tasks USING btree (tenant, record_type, record_id, created_at, id) WHERE (record_type IS NOT NULL);

CREATE INDEX taskbell_tasks_slot ON public.taskbell_tasks USING btree (tenant, concurrency_key) WHERE (slot_held = 1);

CREATE INDEX taskbell_tasks_tenant ON public.taskbell_tasks USING btree (tenant, created_at, id);

CREATE INDEX taskbell_tasks_under_way ON public.taskbell_tasks USING btree (tenant, owner, id) WHERE (under_way = 1);

CREATE INDEX taskbell_tasks_unseen ON public.taskbell_tasks USING btree (active, seen_at, archived_at, tenant, owner, finished_at, id) WHERE ((active = 0) AND (seen_at IS NULL) AND (archived_at IS NULL));

CREATE INDEX taskbell_tasks_usual ON public.taskbell_tasks USING btree (tenant, action, finished_at) WHERE (state = 'succeeded'::text);

CREATE TABLE taskbell_users (
    name text COLLATE C NOT NULL,
    tenant text COLLATE C NOT NULL,
    role text COLLATE C NOT NULL,
    password text COLLATE C NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE taskbell_worker_asks (
    action text COLLATE C NOT NULL,
    tenant text COLLATE C NOT NULL,
    asked_at bigint NOT NULL,
    PRIMARY KEY (action, tenant)
);
