//! Switching packs off and on, and what follows for their tasks.
//!
//! Two steps, and the first one is what counts: the switch itself is a row that every claim locks and looks at, so once it is
//! committed no chunk of the pack starts any more, on any node. The second one brings the tasks to it in batches (paused,
//! or on again), and is taken up by every sweep until none is left: after a crash in between, and for tasks that were
//! accepted at the same moment.

use super::super::tx::{Tx, Under};
use super::super::{PackLoaded, PackRow, PackStanding, PackSwitch, Result, Written};
use super::work::{Work, slot_key};
use crate::core::ids::TaskId;
use crate::core::task::Task;
use std::collections::{BTreeMap, BTreeSet};

/// The verb: notes packs that a node has loaded; a new one is switched on.
pub async fn register(mut tx: Box<dyn Tx>, loaded: &[PackLoaded]) -> Result<()> {
    let known: BTreeMap<String, PackRow> = tx.packs().await?.into_iter().map(|row| (row.name.clone(), row)).collect();
    for pack in loaded {
        let before = known.get(&pack.name);
        let row = PackRow {
            name: pack.name.clone(),
            version: pack.version.clone(),
            serial: pack.serial,
            paused: before.is_some_and(|row| row.paused),
            changed_at: before.and_then(|row| row.changed_at),
            changed_by: before.and_then(|row| row.changed_by.clone()),
        };
        if before != Some(&row) {
            tx.put_pack(&row).await?;
        }
    }
    tx.commit().await
}

/// The verb: switches a pack; `None` when there is none of the name, else whether it was the other way before.
pub async fn switch(mut tx: Box<dyn Tx>, params: &PackSwitch) -> Result<Option<bool>> {
    let now = tx.now().await?;
    let Some(before) = tx.packs().await?.into_iter().find(|row| row.name == params.name) else { return Ok(None) };
    let changed = before.paused != params.paused;
    if changed {
        let (changed_at, changed_by) = (Some(now), Some(params.by.clone()));
        tx.put_pack(&PackRow { paused: params.paused, changed_at, changed_by, ..before }).await?;
    }
    tx.commit().await?;
    Ok(Some(changed))
}

/// The verb: brings at most so many tasks to the switch of their pack; answers how many it found.
pub async fn settle(mut tx: Box<dyn Tx>, limit: usize) -> Result<Written<usize>> {
    let mut work = Work::begin(tx.as_mut()).await?;
    let strays = tx.pack_strays(limit).await?;
    if strays.is_empty() {
        return Ok(Written { answer: 0, changes: Vec::new() });
    }
    work.load_with_slots(tx.as_mut(), &[], strays.iter().copied()).await?;
    settle_all(tx.as_mut(), &mut work, &strays).await?;
    let (changes, _) = work.finish(tx.as_mut()).await?;
    tx.commit().await?;
    Ok(Written { answer: strays.len(), changes })
}

/// The verb: all packs that were ever loaded, with what waits.
pub async fn standing(mut tx: Box<dyn Tx>, tenant: Option<&str>) -> Result<Vec<PackStanding>> {
    let waiting: BTreeMap<String, i64> = tx.pack_waiting(tenant).await?.into_iter().collect();
    let rows = tx.packs().await?;
    Ok(rows
        .into_iter()
        .map(|row| PackStanding { waiting: waiting.get(&row.name).copied().unwrap_or(0), row })
        .collect())
}

/// Brings tasks that are in the working set to the switch of their pack. Nobody is told as the one who did it: a pack is one
/// for all tenants, and who switched it may be of another one.
pub(super) async fn settle_all(tx: &mut dyn Tx, work: &mut Work, ids: &[TaskId]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let rows: BTreeMap<String, PackRow> = tx.packs().await?.into_iter().map(|row| (row.name.clone(), row)).collect();
    for id in ids {
        let row = work.get(*id).and_then(|task| rows.get(task.pack.as_ref()?));
        let Some(row) = row.cloned() else { continue };
        settle_one(tx, work, *id, row.paused).await?;
    }
    Ok(())
}

async fn settle_one(tx: &mut dyn Tx, work: &mut Work, id: TaskId, paused: bool) -> Result<()> {
    // A refusal, here and below, means that the row changed between look and lock; the next sweep sees it as it is.
    if paused {
        let _ = work.apply(id, Task::pack_off);
        return Ok(());
    }
    let mut key_full = None;
    if let Some(task) = work.get(id).filter(|task| task.held_by_pack() && !task.under_way())
        && let (Some(key), false) = (slot_key(task), task.slot_held)
    {
        let limit = task.concurrency.as_ref().map_or(0, |c| c.limit);
        if work.must_wait(tx, &key, limit).await? {
            key_full = Some(work.key_tasks(tx, &key, Under::Holders).await?.first().copied());
        }
    }
    let _ = work.apply(id, |task, step| task.pack_on(key_full, step));
    Ok(())
}

/// Which of the packs that a claim names may start a chunk: registered, switched on, and, where it is serial, without one
/// under way. Locks them until the end of the transaction.
pub(super) async fn open(tx: &mut dyn Tx, names: &[String]) -> Result<OpenPacks> {
    let mut open = OpenPacks::default();
    if names.is_empty() {
        return Ok(open);
    }
    for gate in tx.lock_packs(names).await? {
        if gate.paused || gate.busy {
            continue;
        }
        if gate.serial {
            open.serial.insert(gate.name.clone());
        }
        open.names.push(gate.name);
    }
    Ok(open)
}

/// The packs that may start chunks in this claim.
#[derive(Default)]
pub(super) struct OpenPacks {
    /// All of them.
    pub names: Vec<String>,
    /// Those that may start one only.
    serial: BTreeSet<String>,
}

impl OpenPacks {
    /// Whether a task of this pack may be claimed now.
    pub fn takes(&self, pack: Option<&String>) -> bool {
        pack.is_none_or(|pack| self.names.contains(pack))
    }

    /// A chunk of this pack was claimed: a serial one has no further.
    pub fn claimed(&mut self, pack: Option<&String>) {
        if let Some(pack) = pack.filter(|pack| self.serial.contains(*pack)) {
            self.names.retain(|name| name != pack);
        }
    }
}
