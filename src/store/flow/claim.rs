//! Taking chunks to run, and keeping them.
//!
//! A claim repeats every condition under the row's lock and the database's clock: state, due, lease free, no stop asked,
//! slot of the concurrency key. Tenants take turns, so that a hundred thousand tasks of one do not hold up one of another.

use super::super::tx::{CandidateParams, Tx};
use super::super::{ClaimParams, Claimed, RenewParams, Renewed, Result, Written};
use super::work::{Work, slot_key};
use crate::core::ids::TaskId;
use crate::core::task::Task;
use std::collections::VecDeque;

/// The verb: takes at most `limit` chunks.
pub async fn claim(mut tx: Box<dyn Tx>, params: ClaimParams) -> Result<Written<Vec<Claimed>>> {
    let mut work = Work::begin(tx.as_mut()).await?;
    let ids = candidates(tx.as_mut(), &mut work, &params).await?;
    let mut claimed = Vec::new();
    for id in ids {
        if claim_one(tx.as_mut(), &mut work, id, &params).await? {
            claimed.push(id);
        }
    }
    let mut documents = if claimed.is_empty() { Default::default() } else { tx.documents(&claimed).await? };
    let (changes, mut tasks) = work.finish(tx.as_mut()).await?;
    tx.commit().await?;
    let answer = claimed
        .into_iter()
        .filter_map(|id| {
            let documents = documents.remove(&id).unwrap_or_default();
            tasks.remove(&id).map(|task| Claimed { task, documents })
        })
        .collect();
    Ok(Written { answer, changes })
}

/// The tasks that may be claimed, tenants in turn, beginning after the one that was served last.
async fn candidates(tx: &mut dyn Tx, work: &mut Work, params: &ClaimParams) -> Result<Vec<TaskId>> {
    let now = work.step.now;
    let mut tenants = tx.waiting_tenants(now).await?;
    tenants.retain(|t| params.tenants.is_empty() || params.tenants.contains(t));
    if let Some(last) = &params.after_tenant {
        let turn = tenants.partition_point(|t| t <= last) % tenants.len().max(1);
        tenants.rotate_left(turn);
    }
    let mut queues: Vec<VecDeque<Task>> = Vec::new();
    for tenant in &tenants {
        let params = CandidateParams { tenant, actions: &params.actions, now, limit: params.limit };
        queues.push(tx.candidates(params).await?.into());
    }
    let mut picked = Vec::new();
    while picked.len() < params.limit && queues.iter().any(|q| !q.is_empty()) {
        for queue in &mut queues {
            picked.extend(queue.pop_front());
        }
    }
    picked.truncate(params.limit);
    let ids = picked.iter().map(|t| t.id).collect();
    work.take(picked);
    Ok(ids)
}

async fn claim_one(tx: &mut dyn Tx, work: &mut Work, id: TaskId, params: &ClaimParams) -> Result<bool> {
    let now = work.step.now;
    let Some(task) = work.get(id).filter(|t| t.claimable() && t.due_at <= now) else { return Ok(false) };
    if task.deadline.is_some_and(|d| d <= now) {
        return Ok(work.apply(id, Task::end_overdue).is_err());
    }
    if let (Some(key), false) = (slot_key(task), task.slot_held) {
        let limit = task.concurrency.as_ref().map_or(0, |c| c.limit);
        if work.key_use(tx, &key).await?.held >= limit {
            let ahead = work.key_tasks(tx, &key, super::super::tx::Under::Holders).await?.first().copied();
            return Ok(work.apply(id, |task, step| task.gate(ahead, step)).is_err());
        }
    }
    Ok(work.apply(id, |task, step| task.claim(&params.node, params.lease_ms, step)).is_ok())
}

/// The verb: lengthens the leases a node holds, in one statement, and brings stop requests back.
pub async fn renew(mut tx: Box<dyn Tx>, params: RenewParams) -> Result<Vec<Renewed>> {
    let until = tx.now().await?.plus(params.lease_ms);
    let answer = tx.renew(&params, until).await?;
    tx.commit().await?;
    Ok(answer)
}
