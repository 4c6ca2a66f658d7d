//! What goes to a handler and what comes back, the same whoever runs it: a node itself, or a worker outside.
//!
//! Must never decide what becomes of a task: that is the core's affair, in the commit.

use super::logbook::{Logbook, Origin};
use crate::core::child::Child;
use crate::core::chunk::{Failure, Outcome};
use crate::core::ids::TaskId;
use crate::core::lifecycle::{ChunkEnd, Ended};
use crate::core::progress::{FieldFault, Reported};
use crate::core::resolve::Resolver;
use crate::core::submit::Submit;
use crate::core::task::{ErrorKind, Task};
use crate::core::view::{Catalogue, Documents};
use crate::handler::{ChunkIn, Counted, TaskInfo};
use crate::store::Committed;
use crate::store::logs::Level;

/// The chunk of a claimed task on its way in.
pub(super) fn chunk_in(catalogue: &Catalogue, task: &Task, documents: &Documents) -> ChunkIn {
    let action = catalogue.actions.get(&task.action);
    let title = task.title.clone().or_else(|| action.map(|a| a.title.get("en").to_owned()));
    ChunkIn {
        task: TaskInfo {
            id: task.id,
            tenant: task.tenant.clone(),
            action: task.action.clone(),
            title: title.unwrap_or_else(|| task.action.clone()),
            owner: task.owner.clone(),
            record: task.record.clone(),
            params: documents.params.clone(),
            idempotency_key: task.idempotency_key.clone(),
            created_at: task.created_at,
            schedule: None,
        },
        chunk: task.chunks + 1,
        attempt: task.attempt(),
        fencing_token: task.fencing_token,
        checkpoint: documents.checkpoint.clone(),
        last_error: task.error.as_ref().map(|e| e.code.clone()),
        progress: own_progress(task),
        deadline: task.deadline,
    }
}

/// What the handler has counted itself; what its children add is taskbell's affair.
fn own_progress(task: &Task) -> Counted {
    match &task.family {
        Some(family) => Counted { current: family.own_current, total: family.own_total },
        None => Counted { current: task.progress.current, total: task.progress.total },
    }
}

/// Takes the children of a chunk out of what it answered: those that it submitted while it ran, then those of its outcome.
/// One that cannot be taken fails the chunk.
pub(super) fn with_children(
    resolver: &Resolver,
    task: &Task,
    mut outcome: Outcome,
    mut children: Vec<(TaskId, Child)>,
) -> (Outcome, Vec<Submit>) {
    let Some(told) = outcome.told_mut() else { return (outcome, Vec::new()) };
    children.extend(told.submit.drain(..).map(|child| (TaskId::new(), child)));
    match resolver.children(task, children) {
        Ok(clicks) => (outcome, clicks),
        Err(failure) => (Outcome::Fail(failure), Vec::new()),
    }
}

/// Whose lines a chunk writes that is under way.
pub(super) fn origin(task: &Task) -> Origin {
    Origin { tenant: task.tenant.as_str().into(), task: task.id, token: task.fencing_token, chunk: task.chunks + 1 }
}

/// Holds an outcome against its limits, puts what was reported last under what it tells, and takes its log lines out of it.
pub(super) fn settled(outcome: Outcome, reported: impl FnOnce() -> Option<Reported>) -> (Outcome, Vec<String>) {
    let mut outcome = match outcome.check() {
        Ok(()) => outcome,
        Err(bad) => bad_outcome(bad.to_string()),
    };
    let Some(told) = outcome.told_mut() else { return (outcome, Vec::new()) };
    if let Some(older) = reported() {
        told.report = std::mem::take(&mut told.report).over(older);
    }
    let lines = std::mem::take(&mut told.log);
    (outcome, lines)
}

/// An answer that is no outcome.
pub(super) fn bad_outcome(why: String) -> Outcome {
    Outcome::Fail(Failure::new(ErrorKind::BadOutcome, "bad-outcome", why))
}

/// Writes a line about each number that was dropped.
pub(super) fn tell_faults(logbook: &Logbook, origin: &Origin, faults: &[FieldFault]) {
    for fault in faults {
        logbook.log(origin, Level::Warn, "taskbell", &format!("dropped from the progress: {fault}"));
    }
}

/// Writes why an attempt failed, once it is committed.
pub(super) fn tell_failure(logbook: &Logbook, origin: &Origin, end: &ChunkEnd, committed: &Committed) {
    let failed = matches!(end, ChunkEnd::Answered(outcome) if matches!(**outcome, Outcome::Fail(_)));
    let Some(task) = committed.task.as_ref().filter(|_| failed && committed.ended != Ended::Stale) else { return };
    if let Some(error) = &task.error {
        let text = format!("Attempt {} failed ({}): {}", task.attempts, error.code, error.message);
        let detail = error.detail.as_ref().map(|d| format!("\n{d}")).unwrap_or_default();
        logbook.log(origin, Level::Error, "taskbell", &(text + &detail));
    }
}
