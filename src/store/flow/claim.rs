//! Taking chunks to run, and keeping them.
//!
//! A claim repeats every condition under the row's lock and the database's clock: state, due, lease free, no stop asked,
//! slot of the concurrency key, and of a task of a pack that the pack is switched on and, where it is serial, has no chunk
//! under way. Tenants take turns, so that a hundred thousand tasks of one do not hold up one of another.
//! A task that turns out to wait for its key, or to be out of time, gives its turn on within the same claim: however many
//! of them come due at once, the tasks behind them do not wait for the next poll.

use super::super::tx::{CandidateParams, Tx, Under};
use super::super::{ClaimParams, Claimed, RenewLent, RenewParams, Renewed, Result, Written};
use super::packs::{OpenPacks, open};
use super::work::{Work, slot_key};
use crate::core::ids::TaskId;
use crate::core::task::Task;
use crate::core::transition::Refused;
use crate::core::view::Documents;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How many tasks one claim looks at, so that its transaction stays short whatever the queue holds.
const LOOKS: usize = 1_000;

/// The verb: takes at most `limit` chunks.
pub async fn claim(mut tx: Box<dyn Tx>, params: &ClaimParams) -> Result<Written<Vec<Claimed>>> {
    let mut work = Work::begin(tx.as_mut()).await?;
    let packs = open(tx.as_mut(), &params.packs).await?;
    let claims = take(tx.as_mut(), &mut work, packs, params).await?;
    let (changes, mut tasks) = work.finish(tx.as_mut()).await?;
    store_point!("claim.before");
    tx.commit().await?;
    store_point!("claim.after");
    Ok(Written { answer: claims.answer(&mut tasks), changes })
}

/// Chunks that are claimed in the working set, and their documents.
#[derive(Default)]
pub(super) struct Claims {
    ids: Vec<TaskId>,
    documents: BTreeMap<TaskId, Documents>,
}

impl Claims {
    /// What was claimed.
    pub fn ids(&self) -> &[TaskId] {
        &self.ids
    }

    /// The answer, of the tasks as they were written.
    pub fn answer(mut self, tasks: &mut BTreeMap<TaskId, Task>) -> Vec<Claimed> {
        let claimed = |id: TaskId| {
            let documents = self.documents.remove(&id).unwrap_or_default();
            tasks.remove(&id).map(|task| Claimed { task, documents })
        };
        self.ids.into_iter().filter_map(claimed).collect()
    }
}

/// Takes at most `limit` chunks in an open transaction.
pub(super) async fn take(
    tx: &mut dyn Tx,
    work: &mut Work,
    mut packs: OpenPacks,
    params: &ClaimParams,
) -> Result<Claims> {
    let mut ids = Vec::new();
    if let Some(tenants) = if params.many_wait { tx.remembered_tenants() } else { None } {
        fill(tx, work, &mut packs, params, tenants, &mut ids).await?;
    }
    if ids.len() < params.limit {
        let tenants = tx.waiting_tenants(work.step.now).await?;
        fill(tx, work, &mut packs, params, tenants, &mut ids).await?;
    }
    let documents = if ids.is_empty() { BTreeMap::new() } else { tx.documents(&ids).await? };
    Ok(Claims { ids, documents })
}

/// Takes chunks of these tenants, up to the limit.
async fn fill(
    tx: &mut dyn Tx,
    work: &mut Work,
    packs: &mut OpenPacks,
    params: &ClaimParams,
    tenants: Vec<String>,
    ids: &mut Vec<TaskId>,
) -> Result<()> {
    let tenants = turns(tenants, params);
    let mut looked_at: BTreeSet<TaskId> = ids.iter().copied().collect();
    while ids.len() < params.limit && looked_at.len() < LOOKS {
        let wanted = params.limit - ids.len();
        let query = Query { params, packs, tenants: &tenants, wanted };
        let found = candidates(tx, work, query, &looked_at).await?;
        let all_seen = found.len() < wanted;
        for id in found {
            looked_at.insert(id);
            let pack = work.get(id).and_then(|task| task.pack.clone());
            if packs.takes(pack.as_ref()) && claim_one(tx, work, id, params, ids.len()).await? {
                packs.claimed(pack.as_ref());
                ids.push(id);
            }
        }
        if all_seen {
            break;
        }
    }
    Ok(())
}

/// The tenants that are asked for, beginning after the one that was served last.
fn turns(mut tenants: Vec<String>, params: &ClaimParams) -> Vec<String> {
    tenants.retain(|t| params.tenants.is_empty() || params.tenants.contains(t));
    if let Some(last) = &params.after_tenant {
        let turn = tenants.partition_point(|t| t <= last) % tenants.len().max(1);
        tenants.rotate_left(turn);
    }
    tenants
}

/// Which tasks one look of a claim is for.
struct Query<'a> {
    params: &'a ClaimParams,
    packs: &'a OpenPacks,
    tenants: &'a [String],
    wanted: usize,
}

/// The next tasks that may be claimed, tenants in turn, without those that were looked at already.
async fn candidates(
    tx: &mut dyn Tx,
    work: &mut Work,
    asked: Query<'_>,
    looked_at: &BTreeSet<TaskId>,
) -> Result<Vec<TaskId>> {
    let Query { params, packs, tenants, wanted } = asked;
    let mut queues: Vec<VecDeque<Task>> = Vec::new();
    for tenant in tenants {
        // With a task of each of these, no later tenant has a turn.
        if queues.len() == wanted {
            break;
        }
        let limit = wanted + looked_at.len();
        let (actions, packs) = (&params.actions, &packs.names);
        let query = CandidateParams { tenant, actions, packs, now: work.step.now, limit };
        let mut queue: VecDeque<Task> = tx.candidates(query).await?.into();
        queue.retain(|t| !looked_at.contains(&t.id));
        if !queue.is_empty() {
            queues.push(queue);
        }
    }
    let mut picked = Vec::new();
    while picked.len() < wanted && queues.iter().any(|q| !q.is_empty()) {
        for queue in &mut queues {
            picked.extend(queue.pop_front());
        }
    }
    picked.truncate(wanted);
    let ids = picked.iter().map(|t| t.id).collect();
    work.take(picked);
    Ok(ids)
}

/// Whether it was claimed, as the `n`-th of the claim from 0.
async fn claim_one(tx: &mut dyn Tx, work: &mut Work, id: TaskId, params: &ClaimParams, n: usize) -> Result<bool> {
    let now = work.step.now;
    let Some(task) = work.get(id).filter(|t| t.claimable() && t.due_at <= now) else { return Ok(false) };
    if task.deadline.is_some_and(|d| d <= now) {
        work.apply(id, Task::end_overdue).expect("a task that may be claimed can run out of time");
        return Ok(false);
    }
    if let (Some(key), false) = (slot_key(task), task.slot_held) {
        let limit = task.concurrency.as_ref().map_or(0, |c| c.limit);
        if work.must_wait(tx, &key, limit).await? {
            let ahead = work.key_tasks(tx, &key, Under::Holders).await?.first().copied();
            work.apply(id, |task, step| task.gate(ahead, step)).expect("a task that may be claimed can be gated");
            return Ok(false);
        }
    }
    let holder = params.seats.as_ref().and_then(|seats| seats.holders.get(n)).unwrap_or(&params.node);
    let claimed = work.apply(id, |task, step| {
        task.claim(holder, params.lease_ms, step)?;
        if let Some(limit_ms) = params.seats.as_ref().and_then(|seats| seats.chunk_ms.get(&task.action)) {
            task.lend_chunk(*limit_ms, step);
        }
        Ok::<(), Refused>(())
    });
    Ok(claimed.is_ok())
}

/// The verb: lengthens the leases a node holds, in one statement, and brings stop requests back.
pub async fn renew(mut tx: Box<dyn Tx>, params: &RenewParams) -> Result<Vec<Renewed>> {
    if params.waits {
        tx.load(&params.held.iter().map(|(id, _)| *id).collect::<Vec<_>>()).await?;
    }
    let until = tx.now().await?.plus(params.lease_ms);
    let answer = tx.renew(params, until).await?;
    store_point!("renew.before");
    tx.commit().await?;
    store_point!("renew.after");
    Ok(answer)
}

/// The verb: the same for chunks that workers outside run.
pub async fn renew_lent(mut tx: Box<dyn Tx>, params: &RenewLent) -> Result<Vec<Renewed>> {
    let now = tx.now().await?;
    let answer = tx.renew_lent(params, now, now.plus(params.lease_ms)).await?;
    tx.commit().await?;
    Ok(answer)
}
