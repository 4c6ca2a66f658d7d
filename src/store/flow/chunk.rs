//! Ends of chunks, and reports between them. Guarded by (task, token, chunk): a stale writer changes nothing and is told,
//! a repeated report is answered again and applied once.
//!
//! Effects of a chunk that commits work run under the same transaction; those of one that failed do not happen. An effect
//! that the database refuses undoes only its own chunk, which is answered with the fault; the neighbours in the batch are
//! not touched.

use super::super::tx::{Document, DocumentKind, Tx};
use super::super::{ChunkCommit, ClaimParams, Claimed, Committed, Report, Result, Written};
use super::claim::{self, Claims};
use super::packs;
use super::submit::{Answer, Placing};
use super::work::{Work, slot_key};
use crate::core::child::ChildFault;
use crate::core::chunk::Outcome;
use crate::core::ids::TaskId;
use crate::core::lifecycle::{ChunkEnd, EndTerms, Ended};
use crate::core::submit::Submit;
use crate::core::task::{Hold, State, Task};
use serde_json::Value;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter::successors;

/// What the database or the keys of a child did not let happen.
enum Fault {
    Effect(String),
    Child(ChildFault),
}

/// The verb. Where `next` asks for it, the next chunks are claimed in the same commit; what the ends let come due (a task that
/// goes on, one that gets a slot) is seen by the claim after it. `again`: an earlier try met somebody who changes a parent.
pub async fn commit(
    mut tx: Box<dyn Tx>,
    items: &[ChunkCommit],
    next: Option<&ClaimParams>,
    again: bool,
) -> Result<Written<(Vec<Committed>, Vec<Claimed>)>> {
    let mut work = Work::begin(tx.as_mut()).await?;
    // Whoever switches a pack locks its row before those of its tasks.
    let packs = match next {
        Some(next) => Some((packs::open(tx.as_mut(), &next.packs).await?, next)),
        None => None,
    };
    let ends = end_all(tx.as_mut(), &mut work, items, again).await?;
    let claims = match packs {
        Some((packs, next)) => claim::take(tx.as_mut(), &mut work, packs, next).await?,
        None => Claims::default(),
    };
    if items.iter().any(|item| !item.effects.is_empty()) {
        let claimed = claims.ids().iter().filter_map(|id| Some((*id, next?.lease_ms)));
        count_leases_anew(tx.as_mut(), &mut work, go_on(items, &ends).chain(claimed)).await?;
    }
    let ready = work.ready(tx.as_mut()).await?;
    store_point!(if items.iter().any(|i| i.end.is_done()) { "finish.before" } else { "checkpoint.before" });
    let (changes, mut tasks) = ready.commit(tx).await?;
    store_point!(if items.iter().any(|i| i.end.is_done()) { "finish.after" } else { "checkpoint.after" });
    let committed = ends.into_iter().map(|end| end.answer(&tasks)).collect();
    Ok(Written { answer: (committed, claims.answer(&mut tasks)), changes })
}

/// The end of a chunk as it was decided.
struct Decided {
    task: TaskId,
    ended: Ended,
    fault: Option<Fault>,
}

impl Decided {
    fn answer(self, tasks: &BTreeMap<TaskId, Task>) -> Committed {
        let (effect_fault, child_fault) = match self.fault {
            None => (None, None),
            Some(Fault::Effect(text)) => (Some(text), None),
            Some(Fault::Child(fault)) => (None, Some(fault)),
        };
        Committed { ended: self.ended, task: tasks.get(&self.task).cloned(), effect_fault, child_fault }
    }
}

/// The tasks that go on under the same lease, and how long it is, ms.
fn go_on(items: &[ChunkCommit], ends: &[Decided]) -> impl Iterator<Item = (TaskId, i64)> {
    let goes_on = |end: &Decided| end.ended == Ended::Applied { continues: true };
    items
        .iter()
        .zip(ends)
        .filter_map(move |(item, end)| Some((end.task, item.continue_for_ms.filter(|_| goes_on(end))?)))
}

/// Effects take a round trip each: over a slow line all of them together may take as long as a lease, and nobody can renew one
/// meanwhile. So the leases that such a commit gives count from after them.
async fn count_leases_anew(
    tx: &mut dyn Tx,
    work: &mut Work,
    leases: impl Iterator<Item = (TaskId, i64)>,
) -> Result<()> {
    let now = tx.now().await?;
    for (id, lease_ms) in leases {
        work.apply(id, |task, _| task.lengthen_lease(now.plus(lease_ms)));
    }
    Ok(())
}

async fn end_all(tx: &mut dyn Tx, work: &mut Work, items: &[ChunkCommit], again: bool) -> Result<Vec<Decided>> {
    work.with_ancestors = again;
    let children: Vec<&Submit> = items.iter().flat_map(|item| &item.children).collect();
    let mut parents: Vec<TaskId> = items.iter().map(|item| item.task).collect();
    if children.iter().any(|child| child.slot.is_some()) {
        // A child must not wait for a slot that somebody above it keeps.
        let above = tx.ancestors(&parents).await?;
        parents.extend(above);
        // Whether a queue is full, and who is cancelled in it, is a question to all of it.
        work.count_waiters = u32::MAX;
    }
    let mut placing = Placing::look_up(tx, work, &children, parents).await?;
    let mut ends = Vec::with_capacity(items.len());
    for item in items {
        let (ended, fault) = commit_one(tx, work, &mut placing, item).await?;
        ends.push(Decided { task: item.task, ended, fault });
    }
    placing.give(tx).await?;
    Ok(ends)
}

async fn commit_one(
    tx: &mut dyn Tx,
    work: &mut Work,
    placing: &mut Placing,
    item: &ChunkCommit,
) -> Result<(Ended, Option<Fault>)> {
    let Some(task) = work.get(item.task) else { return Ok((Ended::Stale, None)) };
    // Children may change others under their keys.
    let (before, keys) = match item.children.is_empty() {
        true => (work.mark(&[item.task]), None),
        false => (work.mark_all(), Some(placing.clone())),
    };
    let mut continue_for_ms = item.continue_for_ms;
    if let (Some(key), Some(Hold::Chunk)) = (slot_key(task), task.hold())
        && work.key_use(tx, &key).await?.waiting > 0
    {
        continue_for_ms = None;
    }
    let documents = documents_of(item);
    let terms = EndTerms {
        token: item.token,
        chunk: item.chunk,
        retry: item.retry,
        unit_random: item.unit_random,
        continue_for_ms,
        checkpoint_hash: documents
            .iter()
            .find(|d| d.kind == DocumentKind::Checkpoint)
            .map(|d| checkpoint_hash(&d.body)),
        children: item.children.len(),
    };
    let ended = work.apply(item.task, |task, step| task.end_chunk(&item.end, &terms, step));
    if !matches!(ended, Ended::Applied { .. }) {
        return Ok((ended, None));
    }
    let mut fault = None;
    if keeps_work(&item.end) {
        fault = write_children(tx, work, placing, item).await?.map(Fault::Child);
        if fault.is_none() && !item.effects.is_empty() {
            store_point!("effect.before");
            fault = tx.run_effects(&item.effects).await?.map(Fault::Effect);
            store_point!("effect.after");
        }
    }
    if fault.is_some() {
        work.back_to(before);
        *placing = keys.unwrap_or_else(|| placing.clone());
        return Ok((Ended::Stale, fault));
    }
    work.documents.extend(documents);
    Ok((ended, None))
}

/// Makes tasks of the children of a chunk that has just ended, unless the end of the chunk ended their parent without
/// success: they would only be cancelled.
async fn write_children(
    tx: &mut dyn Tx,
    work: &mut Work,
    placing: &mut Placing,
    item: &ChunkCommit,
) -> Result<Option<ChildFault>> {
    if work.get(item.task).is_none_or(|t| matches!(t.state, State::Failed | State::Cancelled)) {
        return Ok(None);
    }
    let (mut count, mut weight) = (0, 0);
    for (index, child) in item.children.iter().enumerate() {
        if key_is_held_above(work, item.task, child) {
            return Ok(Some(ChildFault::behind_its_parent(index)));
        }
        match placing.place(tx, work, child).await? {
            Answer::Created(_) => {
                count += 1;
                weight += child.parent.map_or(0, |p| p.weight);
            }
            Answer::Replayed(_) | Answer::Skipped(_) => {}
            Answer::Refused(refusal) => return Ok(Some(ChildFault::of(index, &refusal))),
        }
    }
    if count > 0 {
        work.apply(item.task, |task, step| task.add_children(count, weight, step));
    }
    Ok(None)
}

/// Whether a child would wait for a slot that those above it, its parent, the parent of that one and so on, keep until their
/// own ends: they hold all that its key has.
fn key_is_held_above(work: &Work, parent: TaskId, child: &Submit) -> bool {
    let Some(wanted) = child.slot.as_ref().map(|slot| &slot.concurrency) else { return false };
    let above = successors(work.get(parent), |task| task.parent.and_then(|p| work.get(p.id)));
    let keeps = |task: &&Task| {
        let key = task.concurrency.as_ref().filter(|_| task.slot_held && task.hold() == Some(Hold::Task));
        key.is_some_and(|held| held.key == wanted.key)
    };
    above.filter(keeps).count() as u64 >= u64::from(wanted.limit.max(1))
}

/// Whether the end of a chunk commits its work. What a failed or handed back chunk wrote never happened.
fn keeps_work(end: &ChunkEnd) -> bool {
    matches!(end, ChunkEnd::Answered(outcome) if !matches!(outcome.as_ref(), Outcome::Fail(_)))
}

fn documents_of(item: &ChunkCommit) -> Vec<Document> {
    let ChunkEnd::Answered(outcome) = &item.end else { return Vec::new() };
    let (kind, body) = match outcome.as_ref() {
        Outcome::More { checkpoint: Some(body), .. } => (DocumentKind::Checkpoint, body),
        Outcome::Done { result: Some(body), .. } => (DocumentKind::Result, body),
        _ => return Vec::new(),
    };
    vec![Document { task: item.task, kind, body: body.clone() }]
}

/// Tells a moved checkpoint from an unmoved one. Only ever compared with what this version has stored itself; a
/// different hash after an upgrade costs one chunk's idle count.
fn checkpoint_hash(body: &Value) -> i64 {
    let mut hasher = DefaultHasher::new();
    body.to_string().hash(&mut hasher);
    hasher.finish().cast_signed()
}

/// The verb: stores reports between commits.
pub async fn report(mut tx: Box<dyn Tx>, items: &[Report]) -> Result<Written<Vec<bool>>> {
    let mut work = Work::begin(tx.as_mut()).await?;
    work.load(tx.as_mut(), items.iter().map(|i| i.task)).await?;
    let answer = items
        .iter()
        .map(|item| {
            work.get(item.task).is_some()
                && work.apply(item.task, |task, step| task.report(item.token, &item.report, step)).is_some()
        })
        .collect();
    let (changes, _) = work.finish(tx.as_mut()).await?;
    store_point!("report.before");
    tx.commit().await?;
    store_point!("report.after");
    Ok(Written { answer, changes })
}
