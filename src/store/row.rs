//! Rows: a task as columns and back, once for all drivers.
//!
//! [`COLUMNS`] is the one list of the columns of `taskbell_tasks`; statements are made from it, [`encode`] writes a row as a
//! JSON object with these names, [`decode`] reads them in this order. To add a column: the migrations, this file, a case in
//! the store suite.

use super::{Result, StoreError};
use crate::core::ids::{FencingToken, Head, Revision, TaskId};
use crate::core::progress::Progress;
use crate::core::task::{Concurrency, Hold, RecordRef, Rows, State, StopRequest, Task, TimelineEvent, WaitReason};
use crate::core::time::Millis;
use serde::Serialize;
use serde_json::{Value, json};

/// The columns of a task, in the order in which statements name them. The first eleven never change after the insert.
pub(crate) const COLUMNS: &[&str] = &[
    "id",
    "tenant",
    "action",
    "title",
    "owner",
    "started_by",
    "record_type",
    "record_id",
    "idempotency_key",
    "created_at",
    "retry_of",
    "state",
    "revision",
    "head",
    "suppressed",
    "concurrency_key",
    "concurrency_limit",
    "concurrency_hold",
    "slot_held",
    "gated",
    "priority",
    "run_at",
    "due_at",
    "started_at",
    "finished_at",
    "updated_at",
    "attempts",
    "max_attempts",
    "failures",
    "chunks",
    "idle_chunks",
    "checkpoint_hash",
    "reclaims",
    "takeovers",
    "fencing_token",
    "lease_owner",
    "lease_until",
    "timeout_ms",
    "deadline",
    "wait",
    "blocked_by",
    "stop_actor",
    "stop_reason",
    "stop_at",
    "progress_current",
    "progress_total",
    "progress_unit",
    "progress_phase",
    "progress_message",
    "progress_at",
    "estimator",
    "rows_ok",
    "rows_skipped",
    "rows_failed",
    "warnings",
    "error",
    "has_result",
    "seen_at",
    "read_at",
    "archived_at",
    "event_count",
];

/// How many of [`COLUMNS`] never change.
pub(crate) const FIXED: usize = 11;

/// Columns that are derived at each write and read by indexes only.
pub(crate) const DERIVED: &[&str] = &["claimable", "rank", "active"];

/// A row as a JSON object, for the statements that open a batch in SQL: the names are those of [`COLUMNS`] and
/// [`DERIVED`].
#[derive(Serialize)]
pub(crate) struct TaskRow<'a> {
    id: TaskId,
    tenant: &'a str,
    action: &'a str,
    title: Option<&'a str>,
    owner: &'a str,
    started_by: &'a str,
    record_type: Option<&'a String>,
    record_id: Option<&'a String>,
    idempotency_key: Option<&'a str>,
    created_at: i64,
    retry_of: Option<TaskId>,
    state: &'static str,
    revision: i64,
    head: i64,
    suppressed: i64,
    concurrency_key: Option<&'a String>,
    concurrency_limit: Option<u32>,
    concurrency_hold: Option<&'static str>,
    slot_held: i64,
    gated: i64,
    priority: i32,
    run_at: i64,
    due_at: i64,
    started_at: Option<i64>,
    finished_at: Option<i64>,
    updated_at: i64,
    attempts: u32,
    max_attempts: u32,
    failures: u32,
    chunks: i64,
    idle_chunks: i64,
    checkpoint_hash: Option<i64>,
    reclaims: i64,
    takeovers: i64,
    fencing_token: i64,
    lease_owner: Option<&'a str>,
    lease_until: Option<i64>,
    timeout_ms: Option<i64>,
    deadline: Option<i64>,
    wait: Option<&'static str>,
    blocked_by: Option<TaskId>,
    stop_actor: Option<&'a String>,
    stop_reason: Option<&'a String>,
    stop_at: Option<i64>,
    progress_current: i64,
    progress_total: Option<i64>,
    progress_unit: Option<&'a str>,
    progress_phase: Option<&'a str>,
    progress_message: Option<&'a str>,
    progress_at: Option<i64>,
    estimator: String,
    rows_ok: i64,
    rows_skipped: i64,
    rows_failed: i64,
    warnings: String,
    error: Option<String>,
    has_result: i64,
    seen_at: Option<i64>,
    read_at: Option<i64>,
    archived_at: Option<i64>,
    event_count: i64,
    claimable: i64,
    rank: i64,
    active: i64,
}

/// A task as a row.
pub(crate) fn encode(task: &Task) -> TaskRow<'_> {
    let c = task.concurrency.as_ref();
    let p = &task.progress;
    let ms = |at: Option<Millis>| at.map(|m| m.0);
    TaskRow {
        id: task.id,
        tenant: &task.tenant,
        action: &task.action,
        title: task.title.as_deref(),
        owner: &task.owner,
        started_by: &task.started_by,
        record_type: task.record.as_ref().map(|r| &r.kind),
        record_id: task.record.as_ref().map(|r| &r.id),
        idempotency_key: task.idempotency_key.as_deref(),
        created_at: task.created_at.0,
        retry_of: task.retry_of,
        state: task.state.as_str(),
        revision: task.revision.0,
        head: task.head.0,
        suppressed: task.suppressed,
        concurrency_key: c.map(|c| &c.key),
        concurrency_limit: c.map(|c| c.limit),
        concurrency_hold: c.map(|c| if c.hold == Hold::Task { "task" } else { "chunk" }),
        slot_held: i64::from(task.slot_held),
        gated: i64::from(task.gated),
        priority: task.priority,
        run_at: task.run_at.0,
        due_at: task.due_at.0,
        started_at: ms(task.started_at),
        finished_at: ms(task.finished_at),
        updated_at: task.updated_at.0,
        attempts: task.attempts,
        max_attempts: task.max_attempts,
        failures: task.failures,
        chunks: task.chunks,
        idle_chunks: task.idle_chunks,
        checkpoint_hash: task.checkpoint_hash,
        reclaims: task.reclaims,
        takeovers: task.takeovers,
        fencing_token: task.fencing_token.0,
        lease_owner: task.lease_owner.as_deref(),
        lease_until: ms(task.lease_until),
        timeout_ms: task.timeout_ms,
        deadline: ms(task.deadline),
        wait: task.wait.map(WaitReason::as_str),
        blocked_by: task.blocked_by,
        stop_actor: task.stop.as_ref().map(|s| &s.actor),
        stop_reason: task.stop.as_ref().and_then(|s| s.reason.as_ref()),
        stop_at: task.stop.as_ref().map(|s| s.at.0),
        progress_current: p.current,
        progress_total: p.total,
        progress_unit: p.unit.as_deref(),
        progress_phase: p.phase.as_deref(),
        progress_message: p.message.as_deref(),
        progress_at: ms(p.updated_at),
        estimator: json_text(&task.estimator),
        rows_ok: task.rows.ok,
        rows_skipped: task.rows.skipped,
        rows_failed: task.rows.failed,
        warnings: json_text(&task.warnings),
        error: task.error.as_ref().map(json_text),
        has_result: i64::from(task.has_result),
        seen_at: ms(task.seen_at),
        read_at: ms(task.read_at),
        archived_at: ms(task.archived_at),
        event_count: task.event_count,
        claimable: i64::from(task.claimable()),
        rank: task.rank(),
        active: i64::from(!task.state.is_final()),
    }
}

/// A batch of rows as the JSON array that a statement opens.
pub(crate) fn encode_all(tasks: &[Task]) -> String {
    json_text(&tasks.iter().map(encode).collect::<Vec<_>>())
}

fn json_text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("our own types are plain data")
}

/// One column after the other of a driver's row.
pub(crate) trait Columns {
    /// The next column as a text.
    fn text(&mut self) -> Result<Option<String>>;
    /// The next column as a whole number.
    fn int(&mut self) -> Result<Option<i64>>;
}

/// Something in a row that cannot be.
pub(crate) fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(format!("column {what} holds what this version does not understand"))
}

fn need<T>(value: Option<T>, what: &str) -> Result<T> {
    value.ok_or_else(|| corrupt(what))
}

/// Reads an id.
pub(crate) fn task_id(text: &str) -> Result<TaskId> {
    text.parse().map_err(|_| corrupt("id"))
}

fn count32(value: Option<i64>, what: &str) -> Result<u32> {
    need(value, what).and_then(|n| u32::try_from(n).map_err(|_| corrupt(what)))
}

/// Reads the columns of [`COLUMNS`] in their order.
pub(crate) fn decode(row: &mut impl Columns) -> Result<Task> {
    let id = task_id(&need(row.text()?, "id")?)?;
    let tenant = need(row.text()?, "tenant")?;
    let action = need(row.text()?, "action")?;
    let title = row.text()?;
    let owner = need(row.text()?, "owner")?;
    let started_by = need(row.text()?, "started_by")?;
    let record = match (row.text()?, row.text()?) {
        (Some(kind), Some(id)) => Some(RecordRef { kind, id }),
        _ => None,
    };
    let idempotency_key = row.text()?;
    let created_at = Millis(need(row.int()?, "created_at")?);
    let retry_of = row.text()?.as_deref().map(task_id).transpose()?;
    let state = row.text()?.as_deref().and_then(State::parse).ok_or_else(|| corrupt("state"))?;
    let revision = Revision(need(row.int()?, "revision")?);
    let head = Head(need(row.int()?, "head")?);
    let suppressed = need(row.int()?, "suppressed")?;
    let concurrency = match (row.text()?, row.int()?, row.text()?) {
        (Some(key), Some(limit), hold) => Some(Concurrency {
            key,
            limit: count32(Some(limit), "concurrency_limit")?,
            hold: if hold.as_deref() == Some("chunk") { Hold::Chunk } else { Hold::Task },
        }),
        _ => None,
    };
    Ok(Task {
        id,
        tenant,
        action,
        title,
        owner,
        started_by,
        record,
        idempotency_key,
        created_at,
        retry_of,
        state,
        revision,
        head,
        suppressed,
        concurrency,
        slot_held: row.int()? == Some(1),
        gated: row.int()? == Some(1),
        priority: i32::try_from(need(row.int()?, "priority")?).map_err(|_| corrupt("priority"))?,
        run_at: Millis(need(row.int()?, "run_at")?),
        due_at: Millis(need(row.int()?, "due_at")?),
        started_at: row.int()?.map(Millis),
        finished_at: row.int()?.map(Millis),
        updated_at: Millis(need(row.int()?, "updated_at")?),
        attempts: count32(row.int()?, "attempts")?,
        max_attempts: count32(row.int()?, "max_attempts")?,
        failures: count32(row.int()?, "failures")?,
        chunks: need(row.int()?, "chunks")?,
        idle_chunks: need(row.int()?, "idle_chunks")?,
        checkpoint_hash: row.int()?,
        reclaims: need(row.int()?, "reclaims")?,
        takeovers: need(row.int()?, "takeovers")?,
        fencing_token: FencingToken(need(row.int()?, "fencing_token")?),
        lease_owner: row.text()?,
        lease_until: row.int()?.map(Millis),
        timeout_ms: row.int()?,
        deadline: row.int()?.map(Millis),
        wait: row.text()?.as_deref().map(WaitReason::parse),
        blocked_by: row.text()?.as_deref().map(task_id).transpose()?,
        stop: decode_stop(row)?,
        progress: Progress {
            current: need(row.int()?, "progress_current")?,
            total: row.int()?,
            unit: row.text()?,
            phase: row.text()?,
            message: row.text()?,
            updated_at: row.int()?.map(Millis),
        },
        estimator: from_json(row.text()?.as_deref().unwrap_or("{}"), "estimator")?,
        rows: Rows {
            ok: need(row.int()?, "rows_ok")?,
            skipped: need(row.int()?, "rows_skipped")?,
            failed: need(row.int()?, "rows_failed")?,
        },
        warnings: from_json(row.text()?.as_deref().unwrap_or("[]"), "warnings")?,
        error: row.text()?.map(|t| from_json(&t, "error")).transpose()?,
        has_result: row.int()? == Some(1),
        seen_at: row.int()?.map(Millis),
        read_at: row.int()?.map(Millis),
        archived_at: row.int()?.map(Millis),
        event_count: need(row.int()?, "event_count")?,
    })
}

fn decode_stop(row: &mut impl Columns) -> Result<Option<StopRequest>> {
    let (actor, reason, at) = (row.text()?, row.text()?, row.int()?);
    Ok(at.map(|at| StopRequest { actor: actor.unwrap_or_default(), reason, at: Millis(at) }))
}

/// Reads a JSON column.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(text: &str, what: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|_| corrupt(what))
}

/// A timeline entry as a JSON object.
pub(crate) fn encode_event(event: &TimelineEvent) -> Value {
    json!({
        "task_id": event.task.to_string(),
        "seq": event.seq,
        "at": event.at.0,
        "from_state": event.from.map(State::as_str),
        "to_state": event.to.as_str(),
        "reason": event.reason,
        "actor": event.actor,
        "node": event.node,
        "attempt": event.attempt,
        "chunk": event.chunk,
    })
}

/// Reads a timeline entry: task_id, seq, at, from_state, to_state, reason, actor, node, attempt, chunk.
pub(crate) fn decode_event(row: &mut impl Columns) -> Result<TimelineEvent> {
    Ok(TimelineEvent {
        task: task_id(&need(row.text()?, "task_id")?)?,
        seq: need(row.int()?, "seq")?,
        at: Millis(need(row.int()?, "at")?),
        from: row.text()?.as_deref().and_then(State::parse),
        to: row.text()?.as_deref().and_then(State::parse).ok_or_else(|| corrupt("to_state"))?,
        reason: need(row.text()?, "reason")?,
        actor: row.text()?,
        node: row.text()?,
        attempt: count32(row.int()?, "attempt")?,
        chunk: need(row.int()?, "chunk")?,
    })
}
