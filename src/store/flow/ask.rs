//! What people ask of tasks: cancel, pause, resume, and the marks of their notification center.
//!
//! A task that the caller may not see does not exist here.

use super::super::tx::{Tx, Under};
use super::super::{AskParams, Asked, MARKS_AT_ONCE, Mark, MarkParams, Result, Written};
use super::work::{Work, slot_key};
use crate::core::ids::TaskId;
use crate::core::lifecycle::Ask;
use crate::core::task::{State, Task};
use crate::core::transition::{Event, Refused};
use std::collections::BTreeMap;

/// Children, by parent, that a resume may bring back.
type Fallen = BTreeMap<TaskId, Vec<TaskId>>;

/// The verb. `again`: an earlier try met somebody who changes a parent.
pub async fn ask(mut tx: Box<dyn Tx>, items: &[AskParams], again: bool) -> Result<Written<Vec<Asked>>> {
    let mut work = Work::begin(tx.as_mut()).await?;
    work.with_ancestors = again;
    let resumed: Vec<TaskId> = items.iter().filter(|i| i.ask == Ask::Resume).map(|i| i.task).collect();
    let (below, above) = match resumed.is_empty() {
        true => (Vec::new(), Vec::new()),
        false => (tx.fallen_below(&resumed).await?, tx.ancestors(&resumed).await?),
    };
    let all = items.iter().map(|i| i.task).chain(below.iter().chain(&above).copied());
    work.load_with_slots(tx.as_mut(), &[], all).await?;
    let mut fallen = Fallen::new();
    for child in below {
        if let Some(parent) = work.get(child).and_then(|t| t.parent) {
            fallen.entry(parent.id).or_default().push(child);
        }
    }
    let mut verdicts: Vec<Option<std::result::Result<bool, Refusal>>> = Vec::with_capacity(items.len());
    for item in items {
        let visible = work.get(item.task).is_some_and(|t| item.caller.sees(t));
        verdicts.push(if visible { Some(ask_one(tx.as_mut(), &mut work, &fallen, item).await?) } else { None });
    }
    let (changes, tasks) = work.finish(tx.as_mut()).await?;
    tx.commit().await?;
    let answer = items
        .iter()
        .zip(verdicts)
        .map(|(item, verdict)| match verdict {
            None => Asked::NotFound,
            Some(Ok(changed)) => Asked::Done { task: Box::new(tasks[&item.task].clone()), changed },
            Some(Err(Refusal::State(refused))) => Asked::Refused(refused),
            Some(Err(Refusal::Superseded)) => Asked::Superseded,
            Some(Err(Refusal::ParentStopped)) => Asked::ParentStopped,
        })
        .collect();
    Ok(Written { answer, changes })
}

enum Refusal {
    State(Refused),
    Superseded,
    ParentStopped,
}

type Verdict = std::result::Result<bool, Refusal>;

async fn ask_one(tx: &mut dyn Tx, work: &mut Work, fallen: &Fallen, item: &AskParams) -> Result<Verdict> {
    work.step.actor = Some(item.caller.user.clone());
    if item.ask == Ask::Resume {
        return resume(tx, work, fallen, item.task).await;
    }
    let asked = work.apply(item.task, |task, step| task.ask(item.ask, item.reason.as_deref(), None, step));
    Ok(asked.map_err(Refusal::State))
}

/// Resumes a task and, of a parent, the children that its end took with it or that ended it, and theirs. Refused while one
/// of those is still stopping: it would end as cancelled, and the parent with it. Refused too for a child of a parent that
/// takes its children down, which the next sweep would cancel again.
async fn resume(tx: &mut dyn Tx, work: &mut Work, fallen: &Fallen, id: TaskId) -> Result<Verdict> {
    let Some(parent) = work.get(id).cloned() else { return Ok(Ok(false)) };
    let children = fallen.get(&id).map(Vec::as_slice).unwrap_or_default();
    let stopping = |child: &TaskId| work.get(*child).is_some_and(|t| t.state == State::Cancelling);
    if parent.takes_children_down() && children.iter().any(stopping) {
        return Ok(Err(Refusal::State(Refused { state: State::Cancelling, event: Event::Resume })));
    }
    let goes_down = parent.parent.and_then(|p| work.get(p.id)).is_some_and(Task::takes_children_down);
    let stands = matches!(parent.state, State::Failed | State::Cancelled | State::Paused | State::Pausing);
    if goes_down && stands && !parent.superseded {
        return Ok(Err(Refusal::ParentStopped));
    }
    let verdict = resume_one(tx, work, id).await?;
    let mut above = vec![parent];
    while let Some(parent) = above.pop().filter(|_| matches!(verdict, Ok(true))) {
        for id in fallen.get(&parent.id).into_iter().flatten() {
            let Some(child) = work.get(*id).filter(|child| parent.brings_back(child)).cloned() else { continue };
            // One that is refused has been superseded: it stays as it is, and the parent's rule decides.
            if matches!(resume_one(tx, work, *id).await?, Ok(true)) {
                above.push(child);
            }
        }
    }
    Ok(verdict)
}

async fn resume_one(tx: &mut dyn Tx, work: &mut Work, id: TaskId) -> Result<Verdict> {
    let Some(task) = work.get(id) else { return Ok(Ok(false)) };
    if task.state.is_final() && task.superseded {
        return Ok(Err(Refusal::Superseded));
    }
    let mut key_full = None;
    if let (Some(key), false) = (slot_key(task), task.slot_held) {
        let limit = task.concurrency.as_ref().map_or(0, |c| c.limit);
        if work.must_wait(tx, &key, limit).await? {
            let ahead = work.key_tasks(tx, &key, Under::Holders).await?;
            key_full = Some(ahead.first().copied());
        }
    }
    Ok(work.apply(id, |task, step| task.ask(Ask::Resume, None, key_full, step)).map_err(Refusal::State))
}

/// The verb: sets a mark. Read implies seen; archived implies both.
pub async fn mark(mut tx: Box<dyn Tx>, params: &MarkParams) -> Result<Written<usize>> {
    let mut work = Work::begin(tx.as_mut()).await?;
    let tasks = tx.markable(params, MARKS_AT_ONCE).await?;
    let ids: Vec<TaskId> = tasks.iter().map(|t| t.id).collect();
    work.take(tasks);
    for id in &ids {
        work.apply(*id, |task, step| {
            let now = step.now;
            task.seen_at.get_or_insert(now);
            if matches!(params.mark, Mark::Read | Mark::Archived) {
                task.read_at.get_or_insert(now);
            }
            if params.mark == Mark::Archived {
                task.archived_at.get_or_insert(now);
            }
        });
    }
    let (changes, _) = work.finish(tx.as_mut()).await?;
    tx.commit().await?;
    Ok(Written { answer: ids.len(), changes })
}
