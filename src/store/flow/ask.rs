//! What people ask of tasks: cancel, pause, resume, delete, and the marks of their notification center.
//!
//! A task that the caller may not see does not exist here.

use super::super::tx::{Tx, Under};
use super::super::{AskParams, Asked, MARKS_AT_ONCE, Mark, MarkParams, Result, Written};
use super::work::{Work, slot_key};
use crate::core::change::Change;
use crate::core::ids::TaskId;
use crate::core::lifecycle::Ask;
use crate::core::principal::Principal;
use crate::core::task::Task;
use crate::core::transition::Refused;
use std::collections::BTreeSet;

/// The verb.
pub async fn ask(mut tx: Box<dyn Tx>, items: &[AskParams]) -> Result<Written<Vec<Asked>>> {
    let mut work = Work::begin(tx.as_mut()).await?;
    work.load_with_slots(tx.as_mut(), &[], items.iter().map(|i| i.task)).await?;
    let mut verdicts: Vec<Option<std::result::Result<bool, Refusal>>> = Vec::with_capacity(items.len());
    for item in items {
        let visible = work.get(item.task).is_some_and(|t| item.caller.sees(t));
        verdicts.push(if visible { Some(ask_one(tx.as_mut(), &mut work, item).await?) } else { None });
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
        })
        .collect();
    Ok(Written { answer, changes })
}

enum Refusal {
    State(Refused),
    Superseded,
}

async fn ask_one(tx: &mut dyn Tx, work: &mut Work, item: &AskParams) -> Result<std::result::Result<bool, Refusal>> {
    let Some(task) = work.get(item.task) else { return Ok(Ok(false)) };
    let mut key_full = None;
    if item.ask == Ask::Resume {
        if task.state.is_final() && task.superseded {
            return Ok(Err(Refusal::Superseded));
        }
        if let (Some(key), false) = (slot_key(task), task.slot_held) {
            let limit = task.concurrency.as_ref().map_or(0, |c| c.limit);
            if work.must_wait(tx, &key, limit).await? {
                let ahead = work.key_tasks(tx, &key, Under::Holders).await?;
                key_full = Some(ahead.first().copied());
            }
        }
    }
    work.step.actor = Some(item.caller.user.clone());
    let asked = work.apply(item.task, |task, step| task.ask(item.ask, item.reason.as_deref(), key_full, step));
    Ok(asked.map_err(Refusal::State))
}

/// The verb: deletes ended tasks with all that is theirs.
pub async fn delete(mut tx: Box<dyn Tx>, caller: &Principal, ids: &[TaskId]) -> Result<Written<Vec<Option<bool>>>> {
    tx.lock_keys_of(ids).await?;
    let tasks: Vec<Task> = tx.load(ids).await?.into_iter().filter(|t| caller.sees(t)).collect();
    let ended: Vec<&Task> = tasks.iter().filter(|t| t.state.is_final()).collect();
    let owners: BTreeSet<(String, String)> = ended.iter().map(|t| (t.tenant.clone(), t.owner.clone())).collect();
    let owners: Vec<(String, String)> = owners.into_iter().collect();
    let heads = if owners.is_empty() { Vec::new() } else { tx.bump_heads(&owners, true).await? };
    let mut changes = Vec::new();
    for task in &ended {
        let place = owners.iter().position(|(t, o)| *t == task.tenant && *o == task.owner);
        changes.push(Change::Gone {
            tenant: task.tenant.clone(),
            owner: task.owner.clone(),
            id: task.id,
            revision: task.revision.next(),
            head: place.map(|i| heads[i]).unwrap_or_default(),
            record: task.record.clone(),
        });
    }
    let gone: Vec<TaskId> = ended.iter().map(|t| t.id).collect();
    if !gone.is_empty() {
        tx.remove(&gone).await?;
    }
    let answer = ids.iter().map(|id| tasks.iter().find(|t| t.id == *id).map(|t| t.state.is_final())).collect();
    tx.commit().await?;
    Ok(Written { answer, changes })
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
