//! Insert or return: what a click means whose idempotency key somebody holds already.
//!
//! Identity of a key is (tenant, action, kind, key), compared byte by byte. A holder that failed, was cancelled or deleted
//! holds nothing; one that succeeded holds its key until `keep` after its END; an unfinished one holds it.

use super::action::OnConflict;
use super::principal::{Principal, Scope};
use super::submit::{KeyClaim, SubmitRefusal};
use super::task::{RecordRef, State, Task, limits};
use super::time::Millis;
use serde_json::Value;

/// How long a success holds a key that the caller sent, ms, unless the action says otherwise.
pub const KEEP_CALLER_MS: i64 = 24 * 3_600_000;
/// How long a success holds a key made from `fields`, ms: a double click is caught, a later click runs again.
pub const KEEP_FIELDS_MS: i64 = 10_000;

/// What to do with a click.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody holds the key: make a task and give it the key.
    Free,
    /// Answer with the holder.
    Return,
    /// The holder carries another fingerprint.
    Mismatch,
    /// Cancel the holder, which has not started, and make a task.
    Replace,
    /// Refuse.
    Conflict,
}

/// Whether a holder still holds a key whose `keep` is given.
#[must_use]
pub fn holds(holder: &Task, keep_ms: i64, now: Millis) -> bool {
    match (holder.state, holder.finished_at) {
        (State::Failed | State::Cancelled, _) => false,
        (State::Succeeded, Some(end)) => now < end.plus(keep_ms),
        _ => true,
    }
}

/// The verdict, in the promised order of tests: is the key held, may the caller see the holder, replace while it is still
/// queued, then the fingerprint, then the policy.
#[must_use]
pub fn decide(
    holder: &Task,
    holder_keep_ms: i64,
    same_fingerprint: bool,
    claim: &KeyClaim,
    caller: &Principal,
    now: Millis,
) -> Verdict {
    if !holds(holder, holder_keep_ms, now) {
        return Verdict::Free;
    }
    // A key that submits for its users gets its own click back when it repeats it, though it does not see their tasks.
    let own_click = caller.has(Scope::SubmitAs) && caller.user == holder.started_by && caller.tenant == holder.tenant;
    if !caller.sees(holder) && !own_click {
        return Verdict::Conflict;
    }
    let unstarted = holder.started_at.is_none() && matches!(holder.state, State::Queued | State::Blocked);
    if claim.on_conflict == OnConflict::ReplacePending && unstarted {
        return Verdict::Replace;
    }
    if !same_fingerprint {
        return Verdict::Mismatch;
    }
    if claim.on_conflict == OnConflict::Reject && !holder.state.is_final() {
        return Verdict::Conflict;
    }
    Verdict::Return
}

/// Makes the key of an action's `fields`, joined without ambiguity. A missing field is an error that names its path.
pub fn key_from_fields(fields: &[String], params: &Value, record: Option<&RecordRef>) -> Result<String, String> {
    let mut parts = Vec::new();
    for path in fields {
        let value = match (path.as_str(), record) {
            ("record.id", Some(r)) => Value::from(r.id.clone()),
            ("record.type", Some(r)) => Value::from(r.kind.clone()),
            _ => path
                .strip_prefix("params.")
                .and_then(|p| p.split('.').try_fold(params, |v, name| v.get(name)))
                .filter(|v| !v.is_null())
                .cloned()
                .ok_or_else(|| path.clone())?,
        };
        parts.push(value);
    }
    let text = super::canonical::canonical(&Value::Array(parts));
    Ok(if text.len() > limits::KEY_BYTES {
        format!("sha256:{}", super::canonical::fingerprint(&text.into(), None))
    } else {
        text
    })
}

/// Why a submit with the same key is not the same submit.
#[must_use]
pub fn mismatch(holder: &Task, holder_params: &Value, params: &Value, record: Option<&RecordRef>) -> SubmitRefusal {
    let mut paths = super::canonical::differing_paths("params", holder_params, params);
    if holder.record.as_ref().map(|r| &r.kind) != record.map(|r| &r.kind) {
        paths.push("record.type".into());
    }
    if holder.record.as_ref().map(|r| &r.id) != record.map(|r| &r.id) {
        paths.push("record.id".into());
    }
    SubmitRefusal::IdempotencyMismatch { task: holder.id, paths }
}
