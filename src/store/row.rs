//! Rows: a task as columns and back, once for all drivers.
//!
//! [`COLUMNS`] is the one list of the columns of `taskbell_tasks`; statements are made from it, [`encode_new`] and
//! [`encode_changed`] write them in this order, [`decode`] reads them in this order. To add a column: the migrations, this
//! file, a case in the store suite.

mod lines;
mod usual;

use super::value::Batch;
use super::value::Kind::{self, Int, Text};
use super::{Result, SortBy, StoreError};
use crate::core::eta::Estimator;
use crate::core::family::{OnFailure, Parent};
use crate::core::ids::{FencingToken, Head, Revision, TaskId};
use crate::core::progress::Progress;
use crate::core::task::{Concurrency, Hold, RecordRef, Rows, State, StopRequest, Task, WaitReason};
use crate::core::time::Millis;
pub(crate) use lines::{EVENT_COLUMNS, POINT_COLUMNS, decode_event, decode_point, encode_event, encode_point};
pub(crate) use usual::usual;

/// The columns of a task, in the order in which statements name them. The first fifteen never change after the insert; the
/// next ones change where somebody or something interferes, and the last [`OFTEN`] as a task goes its way.
pub(crate) const COLUMNS: &[(&str, Kind)] = &[
    ("id", Text),
    ("tenant", Text),
    ("action", Text),
    ("title", Text),
    ("owner", Text),
    ("started_by", Text),
    ("record_type", Text),
    ("record_id", Text),
    ("idempotency_key", Text),
    ("created_at", Int),
    ("retry_of", Text),
    ("pack", Text),
    ("parent", Text),
    ("depth", Int),
    ("weight", Int),
    ("suppressed", Int),
    ("superseded", Int),
    ("concurrency_key", Text),
    ("concurrency_limit", Int),
    ("concurrency_hold", Text),
    ("gated", Int),
    ("priority", Int),
    ("run_at", Int),
    ("max_attempts", Int),
    ("failures", Int),
    ("reclaims", Int),
    ("takeovers", Int),
    ("chunk_until", Int),
    ("timeout_ms", Int),
    ("blocked_by", Text),
    ("stop_actor", Text),
    ("stop_reason", Text),
    ("stop_at", Int),
    ("progress_unit", Text),
    ("progress_phase", Text),
    ("rows_ok", Int),
    ("rows_skipped", Int),
    ("rows_failed", Int),
    ("warnings", Text),
    ("error", Text),
    ("seen_at", Int),
    ("read_at", Int),
    ("archived_at", Int),
    ("awaits", Text),
    ("family", Text),
    ("state", Text),
    ("revision", Int),
    ("head", Int),
    ("slot_held", Int),
    ("due_at", Int),
    ("started_at", Int),
    ("finished_at", Int),
    ("updated_at", Int),
    ("attempts", Int),
    ("chunks", Int),
    ("idle_chunks", Int),
    ("checkpoint_hash", Int),
    ("fencing_token", Int),
    ("lease_owner", Text),
    ("lease_until", Int),
    ("deadline", Int),
    ("wait", Text),
    ("progress_current", Int),
    ("progress_total", Int),
    ("progress_message", Text),
    ("progress_at", Int),
    ("estimator", Text),
    ("has_result", Int),
    ("event_count", Int),
];

/// How many of [`COLUMNS`] never change.
pub(crate) const FIXED: usize = 15;

/// How many of [`COLUMNS`], from the end, change as a task goes its way: with a claim, a report, or a chunk that ends well.
pub(crate) const OFTEN: usize = 24;

/// Columns that are derived at each write and read by indexes only. The last one is written as the head, and stays as it is
/// while a chunk is under way ([`kept`]).
pub(crate) const DERIVED: &[(&str, Kind)] =
    &[("claimable", Int), ("rank", Int), ("active", Int), ("under_way", Int), ("log_head", Int)];

/// What a new row has in a column, the `n`-th of the row that is bound.
pub(crate) fn given(column: &str, n: usize) -> String {
    match column {
        "head" | "log_head" => format!("@head(v.column{n})"),
        _ => format!("v.column{n}"),
    }
}

/// What an update sets a column to, the `n`-th of the row that is bound.
pub(crate) fn kept(column: &str, n: usize) -> String {
    let given = given(column, n);
    match column {
        "log_head" => format!("CASE WHEN v.column{} = 1 THEN taskbell_tasks.log_head ELSE {given} END", n - 1),
        _ => given,
    }
}

/// Writes all columns of a task: those of [`COLUMNS`], then those of [`DERIVED`], in their order.
pub(crate) fn encode_new(task: &Task, to: &mut Batch) {
    to.text(Some(&task.id.to_string()));
    to.text(Some(&task.tenant));
    to.text(Some(&task.action));
    to.text(task.title.as_deref());
    to.text(Some(&task.owner));
    to.text(Some(&task.started_by));
    to.text(task.record.as_ref().map(|r| r.kind.as_str()));
    to.text(task.record.as_ref().map(|r| r.id.as_str()));
    to.text(task.idempotency_key.as_deref());
    to.int(Some(task.created_at.0));
    to.text(task.retry_of.map(|id| id.to_string()).as_deref());
    to.text(task.pack.as_deref());
    let parent = task.parent.as_ref();
    to.text(parent.map(|p| p.id.to_string()).as_deref());
    to.int(parent.map(|p| p.depth));
    to.int(parent.map(|p| p.weight));
    encode_seldom(task, to);
    encode_often(task, to);
}

/// Writes the id and then all that may change.
pub(crate) fn encode_changed(task: &Task, to: &mut Batch) {
    to.text(Some(&task.id.to_string()));
    encode_seldom(task, to);
    encode_often(task, to);
}

/// Writes the id and then what changes as a task goes its way.
pub(crate) fn encode_advanced(task: &Task, to: &mut Batch) {
    to.text(Some(&task.id.to_string()));
    encode_often(task, to);
}

/// Whether nothing has changed of a task but what [`encode_advanced`] writes.
pub(crate) fn only_advanced(before: &Task, after: &Task) -> bool {
    let marks = |t: &Task| (t.seen_at, t.read_at, t.archived_at);
    let counts = |t: &Task| (t.failures, t.reclaims, t.takeovers, t.max_attempts, t.suppressed);
    let terms =
        |t: &Task| (t.priority, t.run_at, t.timeout_ms, t.chunk_until, t.superseded, t.gated, t.blocked_by, t.awaits);
    marks(before) == marks(after)
        && counts(before) == counts(after)
        && terms(before) == terms(after)
        && before.rows == after.rows
        && before.concurrency == after.concurrency
        && before.stop == after.stop
        && before.progress.unit == after.progress.unit
        && before.progress.phase == after.progress.phase
        && before.warnings == after.warnings
        && before.error == after.error
        && before.family == after.family
}

/// The columns between the first [`FIXED`] and the last [`OFTEN`].
fn encode_seldom(task: &Task, to: &mut Batch) {
    let ms = |at: Option<Millis>| at.map(|m| m.0);
    let (concurrency, progress) = (task.concurrency.as_ref(), &task.progress);
    to.int(Some(task.suppressed));
    to.int(Some(task.superseded.into()));
    to.text(concurrency.map(|c| c.key.as_str()));
    to.int(concurrency.map(|c| c.limit.into()));
    to.text(concurrency.map(|c| if c.hold == Hold::Task { "task" } else { "chunk" }));
    to.int(Some(task.gated.into()));
    to.int(Some(task.priority.into()));
    to.int(Some(task.run_at.0));
    to.int(Some(task.max_attempts.into()));
    to.int(Some(task.failures.into()));
    to.int(Some(task.reclaims));
    to.int(Some(task.takeovers));
    to.int(ms(task.chunk_until));
    to.int(task.timeout_ms);
    to.text(task.blocked_by.map(|id| id.to_string()).as_deref());
    to.text(task.stop.as_ref().map(|s| s.actor.as_str()));
    to.text(task.stop.as_ref().and_then(|s| s.reason.as_deref()));
    to.int(task.stop.as_ref().map(|s| s.at.0));
    to.text(progress.unit.as_deref());
    to.text(progress.phase.as_deref());
    to.int(Some(task.rows.ok));
    to.int(Some(task.rows.skipped));
    to.int(Some(task.rows.failed));
    to.text(Some(&json_text(&task.warnings)));
    to.text(task.error.as_ref().map(json_text).as_deref());
    to.int(ms(task.seen_at));
    to.int(ms(task.read_at));
    to.int(ms(task.archived_at));
    to.text(task.awaits.map(OnFailure::as_str));
    to.text(task.family.as_ref().map(json_text).as_deref());
}

/// The last [`OFTEN`] columns and those of [`DERIVED`].
fn encode_often(task: &Task, to: &mut Batch) {
    let ms = |at: Option<Millis>| at.map(|m| m.0);
    let progress = &task.progress;
    to.text(Some(task.state.as_str()));
    to.int(Some(task.revision.0));
    to.int(Some(task.head.0));
    to.int(Some(task.slot_held.into()));
    to.int(Some(task.due_at.0));
    to.int(ms(task.started_at));
    to.int(ms(task.finished_at));
    to.int(Some(task.updated_at.0));
    to.int(Some(task.attempts.into()));
    to.int(Some(task.chunks));
    to.int(Some(task.idle_chunks));
    to.int(task.checkpoint_hash);
    to.int(Some(task.fencing_token.0));
    to.text(task.lease_owner.as_deref());
    to.int(ms(task.lease_until));
    to.int(ms(task.deadline));
    to.text(task.wait.map(WaitReason::as_str));
    to.int(Some(progress.current));
    to.int(progress.total);
    to.text(progress.message.as_deref());
    to.int(ms(progress.updated_at));
    to.text(Some(&json_text(&task.estimator)));
    to.int(Some(task.has_result.into()));
    to.int(Some(task.event_count));
    to.int(Some(task.claimable().into()));
    to.int(Some(task.rank()));
    to.int(Some((!task.state.is_final()).into()));
    to.int(Some(task.under_way().into()));
    to.int(Some(task.head.0));
}

fn json_text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("our own types are plain data")
}

/// One column after the other of a driver's row.
pub trait Columns {
    /// The next column as a text.
    fn text(&mut self) -> Result<Option<String>>;
    /// The next column as a whole number.
    fn int(&mut self) -> Result<Option<i64>>;
}

/// What a page of a list continues after, beside the id.
pub(crate) fn sort_value(task: &Task, sort: SortBy) -> i64 {
    match sort {
        SortBy::CreatedAt => task.created_at.0,
        SortBy::UpdatedAt => task.updated_at.0,
        SortBy::FinishedAt => task.finished_at.map_or(0, |m| m.0),
        SortBy::Priority => i64::from(task.priority),
    }
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

/// Reads a count.
pub(crate) fn count32(value: Option<i64>, what: &str) -> Result<u32> {
    need(value, what).and_then(|n| u32::try_from(n).map_err(|_| corrupt(what)))
}

/// Reads the columns of [`COLUMNS`] in their order, for whoever may change the task: all of it has to be understood.
pub(crate) fn decode(row: &mut impl Columns) -> Result<Task> {
    let (task, strange) = read(row)?;
    strange.map_or(Ok(task), Err)
}

/// The same for whoever only shows it. What a newer version has written in words of its own makes its state
/// [`State::Unknown`]. It is told as held by nobody, so that no report and no outcome is taken for it.
pub(crate) fn decode_shown(row: &mut impl Columns) -> Result<Task> {
    let (task, strange) = read(row)?;
    let unknown =
        |task| Task { state: State::Unknown, lease_owner: None, lease_until: None, chunk_until: None, ..task };
    Ok(if strange.is_some() { unknown(task) } else { task })
}

/// What was read, else `instead` with a note of what this version does not understand.
fn known<T>(read: Result<T>, instead: T, strange: &mut Option<StoreError>) -> T {
    read.unwrap_or_else(|reason| {
        strange.get_or_insert(reason);
        instead
    })
}

fn read(row: &mut impl Columns) -> Result<(Task, Option<StoreError>)> {
    let mut strange = None;
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
    let pack = row.text()?;
    let parent = decode_parent(row)?;
    let suppressed = need(row.int()?, "suppressed")?;
    let superseded = row.int()? == Some(1);
    let concurrency = match (row.text()?, row.int()?, row.text()?) {
        (Some(key), Some(limit), hold) => Some(Concurrency {
            key,
            limit: count32(Some(limit), "concurrency_limit")?,
            hold: if hold.as_deref() == Some("chunk") { Hold::Chunk } else { Hold::Task },
        }),
        _ => None,
    };
    let gated = row.int()? == Some(1);
    let priority = i32::try_from(need(row.int()?, "priority")?).map_err(|_| corrupt("priority"))?;
    let run_at = Millis(need(row.int()?, "run_at")?);
    let max_attempts = count32(row.int()?, "max_attempts")?;
    let failures = count32(row.int()?, "failures")?;
    let reclaims = need(row.int()?, "reclaims")?;
    let takeovers = need(row.int()?, "takeovers")?;
    let chunk_until = row.int()?.map(Millis);
    let timeout_ms = row.int()?;
    let blocked_by = row.text()?.as_deref().map(task_id).transpose()?;
    let stop = decode_stop(row)?;
    let (unit, phase) = (row.text()?, row.text()?);
    let rows = Rows {
        ok: need(row.int()?, "rows_ok")?,
        skipped: need(row.int()?, "rows_skipped")?,
        failed: need(row.int()?, "rows_failed")?,
    };
    let warnings = from_json(row.text()?.as_deref().unwrap_or("[]"), "warnings");
    let warnings = known(warnings, Vec::new(), &mut strange);
    let error = known(row.text()?.map(|t| from_json(&t, "error")).transpose(), None, &mut strange);
    let (seen_at, read_at, archived_at) = (row.int()?.map(Millis), row.int()?.map(Millis), row.int()?.map(Millis));
    let awaits = row.text()?.map(|word| need(OnFailure::parse(&word), "awaits")).transpose();
    let awaits = known(awaits, None, &mut strange);
    let family = known(row.text()?.map(|t| from_json(&t, "family")).transpose(), None, &mut strange);
    let state = need(State::parse(&need(row.text()?, "state")?), "state");
    let task = Task {
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
        pack,
        parent,
        suppressed,
        superseded,
        concurrency,
        gated,
        priority,
        run_at,
        max_attempts,
        failures,
        reclaims,
        takeovers,
        chunk_until,
        timeout_ms,
        blocked_by,
        stop,
        rows,
        warnings,
        error,
        seen_at,
        read_at,
        archived_at,
        awaits,
        family,
        state: known(state, State::Unknown, &mut strange),
        revision: Revision(need(row.int()?, "revision")?),
        head: Head(need(row.int()?, "head")?),
        slot_held: row.int()? == Some(1),
        due_at: Millis(need(row.int()?, "due_at")?),
        started_at: row.int()?.map(Millis),
        finished_at: row.int()?.map(Millis),
        updated_at: Millis(need(row.int()?, "updated_at")?),
        attempts: count32(row.int()?, "attempts")?,
        chunks: need(row.int()?, "chunks")?,
        idle_chunks: need(row.int()?, "idle_chunks")?,
        checkpoint_hash: row.int()?,
        fencing_token: FencingToken(need(row.int()?, "fencing_token")?),
        lease_owner: row.text()?,
        lease_until: row.int()?.map(Millis),
        deadline: row.int()?.map(Millis),
        wait: row.text()?.as_deref().map(WaitReason::parse),
        progress: Progress {
            current: need(row.int()?, "progress_current")?,
            total: row.int()?,
            unit,
            phase,
            message: row.text()?,
            updated_at: row.int()?.map(Millis),
        },
        estimator: known(
            from_json(row.text()?.as_deref().unwrap_or("{}"), "estimator"),
            Estimator::default(),
            &mut strange,
        ),
        has_result: row.int()? == Some(1),
        event_count: need(row.int()?, "event_count")?,
    };
    Ok((task, strange))
}

fn decode_parent(row: &mut impl Columns) -> Result<Option<Parent>> {
    let (id, depth, weight) = (row.text()?, row.int()?, row.int()?);
    let Some(id) = id else { return Ok(None) };
    Ok(Some(Parent { id: task_id(&id)?, depth: need(depth, "depth")?, weight: need(weight, "weight")? }))
}

fn decode_stop(row: &mut impl Columns) -> Result<Option<StopRequest>> {
    let (actor, reason, at) = (row.text()?, row.text()?, row.int()?);
    Ok(at.map(|at| StopRequest { actor: actor.unwrap_or_default(), reason, at: Millis(at) }))
}

/// Reads a JSON column.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(text: &str, what: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|_| corrupt(what))
}
