//! Accepting clicks: insert or return, decided within one transaction over the rows of the keys.
//!
//! Named failure cases. Two nodes give the same new key away at once: the slower one is told `Conflict` when it writes the
//! key, and decides once more, now beside the other's task. The answer of a commit is lost and the same submit comes again:
//! its id is taken, which is a `Conflict` too, and the second look finds the task that the first try made.
//!
//! The items of a batch see each other: two clicks with one key in one batch make one task. The order of tests is the
//! promised one: each idempotency key in turn (the caller's first), then the concurrency key.

use super::super::tx::{Document, DocumentKind, KeyName, KeyRow, SlotKey, Tx, Under};
use super::super::{Result, Written};
use super::work::{Mark, Work};
use crate::core::concurrency::{Verdict as SlotVerdict, decide as decide_slot};
use crate::core::idempotency::{Verdict, decide, mismatch};
use crate::core::ids::TaskId;
use crate::core::lifecycle::Ask;
use crate::core::submit::{KeyClaim, SlotClaim, Submit, SubmitRefusal, Submitted};
use crate::core::task::{State, Task};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What became of one click.
pub(super) enum Answer {
    /// A new task, with the click's id.
    Created(TaskId),
    /// The holder of an idempotency key.
    Replayed(TaskId),
    /// The holder of the concurrency key.
    Skipped(TaskId),
    /// Nothing.
    Refused(SubmitRefusal),
}

/// The verb. `again`: an earlier try may have been committed.
pub async fn submit(mut tx: Box<dyn Tx>, items: &[Submit], again: bool) -> Result<Written<Vec<Submitted>>> {
    let mut work = Work::begin(tx.as_mut()).await?;
    // Whether a queue is full, and who is cancelled in it, is a question to all of it.
    work.count_waiters = u32::MAX;
    let clicks: Vec<&Submit> = items.iter().collect();
    let earlier: Vec<TaskId> = items.iter().filter(|_| again).map(|item| item.id).collect();
    let mut placing = Placing::look_up(tx.as_mut(), &mut work, &clicks, earlier).await?;
    let mut answers = Vec::with_capacity(items.len());
    for item in items {
        answers.push(placing.place(tx.as_mut(), &mut work, item).await?);
    }
    placing.give(tx.as_mut()).await?;
    let ready = work.ready(tx.as_mut()).await?;
    store_point!("submit.before");
    let (changes, tasks) = ready.commit(tx).await?;
    store_point!("submit.after");
    let boxed = |id: &TaskId| Box::new(tasks[id].clone());
    let answer = answers
        .into_iter()
        .map(|answer| match answer {
            Answer::Created(id) => Submitted::Created(boxed(&id)),
            Answer::Replayed(id) => Submitted::Replayed(boxed(&id)),
            Answer::Skipped(id) => Submitted::Skipped(boxed(&id)),
            Answer::Refused(refusal) => Submitted::Refused(refusal),
        })
        .collect();
    Ok(Written { answer, changes })
}

/// Makes tasks of clicks: of those of a batch, or of the children that chunks submit.
#[derive(Clone)]
pub(super) struct Placing {
    /// Who holds which key now, this batch's own tasks included.
    keys: BTreeMap<KeyName, KeyRow>,
    /// Keys that this batch gave away.
    given: BTreeMap<KeyName, KeyRow>,
    /// Packs that are switched off, where the batch has tasks of packs.
    off: BTreeSet<String>,
}

fn key_name(item: &Submit, claim: &KeyClaim) -> KeyName {
    KeyName { tenant: item.tenant.clone(), action: item.action.clone(), kind: claim.kind, key: claim.key.clone() }
}

fn slot_key(item: &Submit, slot: &SlotClaim) -> SlotKey {
    (item.tenant.clone(), slot.concurrency.key.clone())
}

fn cancel(work: &mut Work, id: TaskId, why: &str) {
    // Refused only for a task that has ended meanwhile, which is as good as cancelled here.
    let _ = work.apply(id, |task, step| task.ask(Ask::Cancel, Some(why), None, step));
}

impl Placing {
    /// Locks all keys of the clicks, idempotency keys first, each kind in order, and loads the holders with other tasks.
    pub async fn look_up(tx: &mut dyn Tx, work: &mut Work, items: &[&Submit], others: Vec<TaskId>) -> Result<Self> {
        let mut names: Vec<KeyName> = Vec::new();
        let mut slots: Vec<SlotKey> = Vec::new();
        for item in items {
            names.extend(item.keys.iter().map(|claim| key_name(item, claim)));
            slots.extend(item.slot.as_ref().map(|slot| slot_key(item, slot)));
        }
        names.sort_unstable();
        names.dedup();
        let rows = if names.is_empty() { Vec::new() } else { tx.key_rows(&names).await? };
        work.load_with_slots(tx, &slots, rows.iter().map(|r| r.task).chain(others)).await?;
        let keys = rows.into_iter().map(|r| (r.name.clone(), r)).collect();
        let mut off = BTreeSet::new();
        if items.iter().any(|item| item.pack.is_some()) {
            let paused = tx.packs().await?.into_iter().filter(|row| row.paused);
            off = paused.map(|row| row.name).collect();
        }
        Ok(Self { keys, given: BTreeMap::new(), off })
    }

    /// Writes down who holds the keys that were given away. Comes after all clicks.
    pub async fn give(self, tx: &mut dyn Tx) -> Result<()> {
        let given: Vec<KeyRow> = self.given.into_values().collect();
        if given.is_empty() { Ok(()) } else { tx.put_key_rows(&given).await }
    }

    /// Decides on one click.
    pub async fn place(&mut self, tx: &mut dyn Tx, work: &mut Work, item: &Submit) -> Result<Answer> {
        if work.get(item.id).is_some() {
            return Ok(Answer::Created(item.id));
        }
        work.step.actor = Some(item.caller.user.clone());
        let mut replaced = Vec::new();
        for claim in &item.keys {
            let Some(row) = self.keys.get(&key_name(item, claim)) else { continue };
            // A holder that cannot be read was written by a newer version: what it means is not known, and that it holds is.
            let Some(holder) = work.get(row.task) else {
                return Ok(Answer::Refused(SubmitRefusal::IdempotencyConflict));
            };
            let same = row.fingerprint == item.fingerprint;
            match decide(holder, row.keep_ms, same, claim, &item.caller, work.step.now) {
                Verdict::Free => {}
                Verdict::Return => {
                    let id = holder.id;
                    work.apply(id, |task, _| task.suppressed += 1);
                    return Ok(Answer::Replayed(id));
                }
                Verdict::Mismatch => {
                    let holder = holder.clone();
                    let params = match work.documents.iter().find(|d| d.task == holder.id) {
                        Some(new) => new.body.clone(),
                        None => tx.documents(&[holder.id]).await?.remove(&holder.id).map_or(Value::Null, |d| d.params),
                    };
                    return Ok(Answer::Refused(mismatch(&holder, &params, &item.params, item.record.as_ref())));
                }
                Verdict::Replace => replaced.push(holder.id),
                Verdict::Conflict => return Ok(Answer::Refused(SubmitRefusal::IdempotencyConflict)),
            }
        }
        let before = work.mark(&replaced);
        for id in replaced {
            cancel(work, id, "replaced");
        }
        if let Some(slot) = &item.slot
            && let Some(answer) = self.refuse_by_slot(tx, work, item, slot, before).await?
        {
            return Ok(answer);
        }
        self.create(tx, work, item).await
    }

    /// Skip, reject and a full queue answer without a task; then nobody was replaced either.
    async fn refuse_by_slot(
        &self,
        tx: &mut dyn Tx,
        work: &mut Work,
        item: &Submit,
        slot: &SlotClaim,
        before: Mark,
    ) -> Result<Option<Answer>> {
        let key = slot_key(item, slot);
        let in_use = work.key_use(tx, &key).await?;
        let verdict = decide_slot(slot.policy, in_use, slot.concurrency.limit, slot.max_waiting);
        if verdict == SlotVerdict::QueueFull && !item.starts_later(work.step.now) {
            work.back_to(before);
            return Ok(Some(Answer::Refused(SubmitRefusal::KeyQueueFull { limit: slot.max_waiting })));
        }
        if !matches!(verdict, SlotVerdict::Skip | SlotVerdict::Reject) {
            return Ok(None);
        }
        work.back_to(before);
        let holders = work.key_tasks(tx, &key, Under::Holders).await?;
        let visible = holders.into_iter().find(|id| work.get(*id).is_some_and(|t| item.caller.sees(t)));
        Ok(Some(match (verdict, visible) {
            (SlotVerdict::Skip, Some(id)) => {
                work.apply(id, |task, _| task.suppressed += 1);
                Answer::Skipped(id)
            }
            (_, task) => Answer::Refused(SubmitRefusal::ConcurrencyConflict { task }),
        }))
    }

    async fn create(&mut self, tx: &mut dyn Tx, work: &mut Work, item: &Submit) -> Result<Answer> {
        let task = item.into_task(&mut work.step);
        let id = task.id;
        work.insert(task);
        if item.params != Value::Object(serde_json::Map::new()) {
            let body = item.params.clone();
            work.documents.push(Document { task: id, kind: DocumentKind::Params, body });
        }
        for claim in &item.keys {
            let name = key_name(item, claim);
            let fingerprint = item.fingerprint.clone();
            self.supersede(work, &name);
            let row = KeyRow { name: name.clone(), task: id, keep_ms: claim.keep_ms, fingerprint };
            self.keys.insert(name.clone(), row.clone());
            self.given.insert(name, row);
        }
        if let Some(slot) = item.slot.as_ref().filter(|_| !item.starts_later(work.step.now)) {
            self.take_slot(tx, work, item, slot, id).await?;
        }
        if item.pack.as_ref().is_some_and(|pack| self.off.contains(pack)) {
            work.step.actor = None;
            work.apply(id, Task::pack_off).expect("a task that was just made waits and can be paused");
        }
        Ok(Answer::Created(id))
    }

    /// The key passes on: its last holder, if it ended without success, must not be resumed beside the new one.
    fn supersede(&self, work: &mut Work, name: &KeyName) {
        let Some(id) = self.keys.get(name).map(|row| row.task) else { return };
        if work.get(id).is_some_and(|t| matches!(t.state, State::Failed | State::Cancelled) && !t.superseded) {
            work.apply(id, |task, _| task.superseded = true);
        }
    }

    /// The new task takes a slot of its key or waits for one.
    async fn take_slot(
        &self,
        tx: &mut dyn Tx,
        work: &mut Work,
        item: &Submit,
        slot: &SlotClaim,
        id: TaskId,
    ) -> Result<()> {
        let key = slot_key(item, slot);
        let in_use = work.key_use(tx, &key).await?;
        match decide_slot(slot.policy, in_use, slot.concurrency.limit, slot.max_waiting) {
            SlotVerdict::ReplacePending => {
                for other in work.key_tasks(tx, &key, Under::Waiters).await? {
                    cancel(work, other, "replaced");
                }
                for other in work.key_tasks(tx, &key, Under::Holders).await? {
                    if work.get(other).is_some_and(|t| t.started_at.is_none()) {
                        cancel(work, other, "replaced");
                    }
                }
            }
            SlotVerdict::CancelRunning => {
                for under in [Under::Waiters, Under::Holders] {
                    for other in work.key_tasks(tx, &key, under).await? {
                        cancel(work, other, "superseded by a newer one");
                    }
                }
            }
            _ => {}
        }
        if !work.must_wait(tx, &key, slot.concurrency.limit).await? {
            work.apply(id, |task, _| task.slot_held = true);
        } else {
            let ahead = work.key_tasks(tx, &key, Under::Holders).await?.first().copied();
            work.apply(id, |task, step| task.gate(ahead, step))
                .expect("a task that was just made is queued and can be gated");
        }
        Ok(())
    }
}
