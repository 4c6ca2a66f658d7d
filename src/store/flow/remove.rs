//! Taking ended tasks away, with all that is theirs: on a person's word, or because their time is over.
//!
//! What is removed is locked and ended, so nobody is about to write it: a completion that is under way holds the row until
//! it has committed, and then the row is judged as that left it. Its neighbours of the same batch do not hear of it.

use super::super::tx::{Kin, Tx};
use super::super::{Result, RetainParams, Written};
use crate::core::change::Change;
use crate::core::ids::TaskId;
use crate::core::principal::Principal;
use crate::core::retention::End;
use crate::core::task::Task;
use std::collections::{BTreeMap, BTreeSet};

/// The verb: deletes ended tasks with all that is theirs. A child stays until its parent has ended, which may want to look at
/// it, and a parent until its children have.
pub async fn delete(mut tx: Box<dyn Tx>, caller: &Principal, ids: &[TaskId]) -> Result<Written<Vec<Option<bool>>>> {
    tx.lock_keys_of(ids).await?;
    let above = tx.ancestors(ids).await?;
    let all: Vec<Task> = tx.load(&[ids, &above].concat()).await?;
    let unfinished: BTreeSet<TaskId> = all.iter().filter(|t| !t.state.is_final()).map(|t| t.id).collect();
    let tasks: Vec<Task> = all.into_iter().filter(|t| ids.contains(&t.id) && caller.sees(t)).collect();
    let mut ended: Vec<&Task> = Vec::with_capacity(tasks.len());
    for task in &tasks {
        let parent_goes_on = task.parent.is_some_and(|p| unfinished.contains(&p.id));
        if !unfinished.contains(&task.id) && !parent_goes_on && !has_open_children(tx.as_mut(), task).await? {
            ended.push(task);
        }
    }
    let changes = remove(tx.as_mut(), &ended).await?;
    let gone: Vec<TaskId> = ended.iter().map(|t| t.id).collect();
    let answer = ids.iter().map(|id| tasks.iter().find(|t| t.id == *id).map(|t| gone.contains(&t.id))).collect();
    tx.commit().await?;
    Ok(Written { answer, changes })
}

/// The verb: takes tasks away whose time is over, each judged anew under its lock; answers which. A child goes with its
/// parent or after it, so that a family is seen whole for as long as its parent is, and a parent after its children have
/// ended.
pub async fn retain(mut tx: Box<dyn Tx>, params: &RetainParams) -> Result<Written<Vec<TaskId>>> {
    let key_ms: BTreeMap<TaskId, i64> = params.tasks.iter().map(|aged| (aged.id, aged.key_ms)).collect();
    let ids: Vec<TaskId> = key_ms.keys().copied().collect();
    let now = tx.now().await?;
    tx.lock_keys_of(&ids).await?;
    let above = tx.ancestors(&ids).await?;
    let there: Vec<Task> = tx.load(&[ids, above].concat()).await?;
    let mut staying: BTreeSet<TaskId> = BTreeSet::new();
    for task in &there {
        let end = task.finished_at.map(|at| End { state: task.state, at });
        let over = |key_ms: &i64| end.is_some_and(|end| params.keep.task_over(&end, *key_ms, now));
        if !key_ms.get(&task.id).is_some_and(over) || has_open_children(tx.as_mut(), task).await? {
            staying.insert(task.id);
        }
    }
    // Whoever stays keeps its children, and these theirs; no family is deeper than it has members.
    loop {
        let kept = |task: &&Task| !staying.contains(&task.id) && task.parent.is_some_and(|p| staying.contains(&p.id));
        let more: Vec<TaskId> = there.iter().filter(kept).map(|task| task.id).collect();
        if more.is_empty() {
            break;
        }
        staying.extend(more);
    }
    let gone: Vec<&Task> = there.iter().filter(|task| !staying.contains(&task.id)).collect();
    let changes = remove(tx.as_mut(), &gone).await?;
    let answer = gone.iter().map(|task| task.id).collect();
    tx.commit().await?;
    Ok(Written { answer, changes })
}

async fn has_open_children(tx: &mut dyn Tx, task: &Task) -> Result<bool> {
    Ok(task.family.is_some() && !tx.children(task.id, Kin::Open, 1).await?.is_empty())
}

/// Removes rows that are locked, and tells their owners.
async fn remove(tx: &mut dyn Tx, tasks: &[&Task]) -> Result<Vec<Change>> {
    if tasks.is_empty() {
        return Ok(Vec::new());
    }
    let owners: BTreeSet<(String, String)> = tasks.iter().map(|t| (t.tenant.clone(), t.owner.clone())).collect();
    let owners: Vec<(String, String)> = owners.into_iter().collect();
    let heads = tx.bump_heads(&owners, true).await?;
    let mut changes = Vec::with_capacity(tasks.len());
    for task in tasks {
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
    tx.remove(&tasks.iter().map(|t| t.id).collect::<Vec<_>>()).await?;
    Ok(changes)
}
