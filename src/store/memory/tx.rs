//! The writing transaction in memory. Holding the tables is the lock.

use super::super::tx::{CandidateParams, Document, DocumentKind, KeyName, KeyRow, Kin, PackGate, SlotKey, Tx, Under};
use super::super::{MarkParams, OwnerHeads, PackRow, RenewLent, RenewParams, Renewed, Result, StoreError};
use super::read::markable;
use super::tables::{Tables, Turn};
use crate::core::concurrency::KeyUse;
use crate::core::effect::Effect;
use crate::core::eta::UnitPrior;
use crate::core::family::done_milli;
use crate::core::ids::{Head, TaskId};
use crate::core::picture::Point;
use crate::core::task::{State, Task, TimelineEvent, WaitReason};
use crate::core::time::{Clock, Millis};
use crate::core::view::Documents;
use async_trait::async_trait;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::OwnedMutexGuard;

type Undo = Box<dyn FnOnce(&mut Tables) + Send>;

/// An open transaction.
pub(super) struct MemoryTx {
    tables: OwnedMutexGuard<Tables>,
    /// How to take each change back, oldest first.
    journal: Vec<Undo>,
    clock: Arc<dyn Clock>,
}

impl Drop for MemoryTx {
    fn drop(&mut self) {
        for undo in self.journal.drain(..).rev() {
            undo(&mut self.tables);
        }
    }
}

impl MemoryTx {
    pub(super) fn new(tables: OwnedMutexGuard<Tables>, clock: Arc<dyn Clock>) -> Self {
        Self { tables, journal: Vec::new(), clock }
    }

    fn note(&mut self, undo: impl FnOnce(&mut Tables) + Send + 'static) {
        self.journal.push(Box::new(undo));
    }

    fn set_task(&mut self, id: TaskId, task: Option<Task>) {
        let before = self.tables.set_task(id, task);
        self.note(move |tables| drop(tables.set_task(id, before)));
    }

    /// Writes an entry of a plain table, or takes it away.
    fn set<K, V>(&mut self, table: fn(&mut Tables) -> &mut BTreeMap<K, V>, key: K, value: Option<V>)
    where
        K: Ord + Clone + Send + 'static,
        V: Send + 'static,
    {
        let before = put(table(&mut self.tables), key.clone(), value);
        self.note(move |tables| drop(put(table(tables), key, before)));
    }

    fn tasks(&self, ids: impl IntoIterator<Item = TaskId>, limit: usize) -> Vec<Task> {
        ids.into_iter().filter_map(|id| self.tables.task(id)).take(limit).cloned().collect()
    }
}

fn put<K: Ord, V>(table: &mut BTreeMap<K, V>, key: K, value: Option<V>) -> Option<V> {
    match value {
        Some(value) => table.insert(key, value),
        None => table.remove(&key),
    }
}

/// The documents of a task; without stored params they are empty.
pub(super) fn documents_of(tables: &Tables, id: TaskId, result: bool) -> Documents {
    let body = |kind| tables.documents.get(&(id, kind)).cloned();
    Documents {
        params: body(DocumentKind::Params).unwrap_or_else(|| json!({})),
        checkpoint: body(DocumentKind::Checkpoint),
        result: if result { body(DocumentKind::Result) } else { None },
    }
}

#[async_trait]
impl Tx for MemoryTx {
    async fn now(&mut self) -> Result<Millis> {
        Ok(self.clock.now())
    }

    async fn load(&mut self, ids: &[TaskId]) -> Result<Vec<Task>> {
        Ok(self.tasks(ids.iter().copied().collect::<BTreeSet<_>>(), usize::MAX))
    }

    async fn load_free(&mut self, ids: &[TaskId]) -> Result<Vec<Task>> {
        self.load(ids).await
    }

    async fn load_unheld(&mut self, ids: &[TaskId]) -> Result<Vec<Task>> {
        self.load(ids).await
    }

    async fn insert(&mut self, tasks: &[Task]) -> Result<()> {
        for task in tasks {
            if self.tables.task(task.id).is_some() {
                return Err(StoreError::Conflict("the id of a task is taken".into()));
            }
            self.set_task(task.id, Some(task.clone()));
        }
        Ok(())
    }

    async fn update(&mut self, tasks: &[Task]) -> Result<()> {
        for task in tasks {
            if self.tables.task(task.id).is_some() {
                self.set_task(task.id, Some(task.clone()));
            }
        }
        Ok(())
    }

    async fn remove(&mut self, ids: &[TaskId]) -> Result<()> {
        for id in ids {
            self.set_task(*id, None);
            for kind in [DocumentKind::Params, DocumentKind::Checkpoint, DocumentKind::Result] {
                self.set(|t| &mut t.documents, (*id, kind), None);
            }
            self.set(|t| &mut t.events, *id, None);
            self.set(|t| &mut t.points, *id, None);
            let keys: Vec<KeyName> =
                self.tables.keys.values().filter(|k| k.task == *id).map(|k| k.name.clone()).collect();
            for key in keys {
                self.set(|t| &mut t.keys, key, None);
            }
            let files: Vec<_> = self.tables.files.values().filter(|f| f.task == Some(*id)).cloned().collect();
            for mut file in files {
                file.expires_at = Some(Millis(0));
                self.set(|t| &mut t.files, file.id.clone(), Some(file));
            }
        }
        Ok(())
    }

    async fn put_documents(&mut self, documents: &[Document]) -> Result<()> {
        for d in documents {
            self.set(|t| &mut t.documents, (d.task, d.kind), Some(d.body.clone()));
        }
        Ok(())
    }

    async fn documents(&mut self, ids: &[TaskId]) -> Result<BTreeMap<TaskId, Documents>> {
        Ok(ids.iter().map(|id| (*id, documents_of(&self.tables, *id, false))).collect())
    }

    async fn append_events(&mut self, events: &[TimelineEvent]) -> Result<()> {
        for event in events {
            let id = event.task;
            self.tables.events.entry(id).or_default().push(event.clone());
            self.note(move |tables| drop(tables.events.get_mut(&id).and_then(Vec::pop)));
        }
        Ok(())
    }

    async fn put_points(&mut self, points: &[(TaskId, Point)]) -> Result<()> {
        for (id, point) in points {
            let mut picture = self.tables.points.get(id).cloned().unwrap_or_default();
            picture.insert(point.at, point.clone());
            self.set(|t| &mut t.points, *id, Some(picture));
        }
        Ok(())
    }

    async fn points(&mut self, task: TaskId) -> Result<Vec<Point>> {
        Ok(self.tables.picture(task))
    }

    async fn remove_points(&mut self, tasks: &[TaskId]) -> Result<()> {
        for id in tasks {
            self.set(|t| &mut t.points, *id, None);
        }
        Ok(())
    }

    async fn prior(&mut self, tenant: &str, action: &str) -> Result<Option<UnitPrior>> {
        Ok(self.tables.usual(tenant, action).prior)
    }

    async fn bump_heads(&mut self, owners: &[(String, String)], deleting: bool) -> Result<Vec<Head>> {
        let mut heads = Vec::with_capacity(owners.len());
        for owner in owners {
            let OwnerHeads { head, deleted } = self.tables.heads.get(owner).copied().unwrap_or_default();
            let head = head.next();
            let deleted = if deleting { head } else { deleted };
            self.set(|t| &mut t.heads, owner.clone(), Some(OwnerHeads { head, deleted }));
            heads.push(head);
        }
        Ok(heads)
    }

    async fn key_rows(&mut self, names: &[KeyName]) -> Result<Vec<KeyRow>> {
        Ok(names.iter().filter_map(|name| self.tables.keys.get(name)).cloned().collect())
    }

    async fn put_key_rows(&mut self, rows: &[KeyRow]) -> Result<()> {
        for row in rows {
            self.set(|t| &mut t.keys, row.name.clone(), Some(row.clone()));
        }
        Ok(())
    }

    async fn lock_keys_of(&mut self, _tasks: &[TaskId]) -> Result<()> {
        Ok(())
    }

    async fn lock_slots(&mut self, _keys: &[SlotKey], _tasks: &[TaskId]) -> Result<()> {
        Ok(())
    }

    async fn key_use(&mut self, key: &SlotKey, waiting_most: u32) -> Result<KeyUse> {
        let held = self.tables.holders.get(key).map_or(0, |ids| ids.len() as u32);
        let waiting = self.tables.waiters.get(key).map_or(0, |turns| turns.len() as u32);
        Ok(KeyUse { held, waiting: waiting.min(waiting_most) })
    }

    async fn key_tasks(&mut self, key: &SlotKey, under: Under, limit: usize) -> Result<Vec<Task>> {
        let ids: Vec<TaskId> = match under {
            Under::Holders => self.tables.holders.get(key).into_iter().flatten().copied().collect(),
            Under::Waiters => self.tables.waiters.get(key).into_iter().flatten().map(|turn| turn.2).collect(),
        };
        Ok(self.tasks(ids, limit))
    }

    async fn waited_keys(&mut self, limit: usize) -> Result<Vec<SlotKey>> {
        let t = &self.tables;
        let free = |(key, turns): &(&SlotKey, &BTreeSet<Turn>)| {
            let held = t.holders.get(*key).map_or(0, BTreeSet::len);
            let first = turns.first().and_then(|turn| t.task(turn.2)).and_then(|w| w.concurrency.as_ref());
            first.is_some_and(|c| held < c.limit as usize)
        };
        Ok(t.waiters.iter().filter(free).map(|(key, _)| key.clone()).take(limit).collect())
    }

    async fn ancestors(&mut self, ids: &[TaskId]) -> Result<Vec<TaskId>> {
        let parent = |id: &TaskId| self.tables.task(*id).and_then(|t| t.parent).map(|p| p.id);
        let mut found = BTreeSet::new();
        for id in ids {
            found.extend(std::iter::successors(parent(id), parent));
        }
        Ok(found.into_iter().collect())
    }

    async fn children(&mut self, parent: TaskId, kin: Kin, limit: usize) -> Result<Vec<TaskId>> {
        let meant = |t: &&Task| match kin {
            Kin::Open => !t.state.is_final(),
            Kin::Fallen => matches!(t.state, State::Failed | State::Cancelled),
        };
        Ok(self.tables.children_of(parent).filter(meant).map(|t| t.id).take(limit).collect())
    }

    async fn fallen_below(&mut self, ids: &[TaskId]) -> Result<Vec<TaskId>> {
        let (mut found, mut above) = (BTreeSet::new(), ids.to_vec());
        while let Some(id) = above.pop() {
            let fallen = |t: &&Task| matches!(t.state, State::Failed | State::Cancelled | State::Cancelling);
            let below: Vec<TaskId> = self.tables.children_of(id).filter(fallen).map(|t| t.id).collect();
            above.extend(below.into_iter().filter(|id| found.insert(*id)));
        }
        Ok(found.into_iter().collect())
    }

    async fn forsaken(&mut self, parents: &[TaskId], limit: usize) -> Result<Vec<TaskId>> {
        let t = &self.tables;
        let meant = |id: &&TaskId| parents.is_empty() || parents.contains(id);
        let down = t.children.keys().filter(meant).filter(|id| t.task(**id).is_some_and(Task::takes_children_down));
        let open = |t: &&Task| !t.state.is_final() && t.state != State::Cancelling;
        Ok(down.flat_map(|id| t.children_of(*id).filter(open)).map(|t| t.id).take(limit).collect())
    }

    async fn waiting_in_vain(&mut self, limit: usize) -> Result<Vec<TaskId>> {
        let t = &self.tables;
        let waits = |task: &&Task| task.awaits.is_some() && !task.state.is_final();
        let in_vain = |task: &&Task| t.children_of(task.id).all(|c| c.state.is_final());
        let parents = t.children.keys().filter_map(|id| t.task(*id));
        Ok(parents.filter(waits).filter(in_vain).map(|t| t.id).take(limit).collect())
    }

    async fn done_of_children(&mut self, parents: &[TaskId]) -> Result<BTreeMap<TaskId, i64>> {
        let done = |t: &Task| {
            let weight = t.parent.map_or(0, |p| p.weight);
            done_milli(weight, t.state.is_final(), t.progress.current, t.progress.total)
        };
        let all = parents.iter().filter(|id| self.tables.children.contains_key(id));
        Ok(all.map(|id| (*id, self.tables.children_of(*id).map(done).sum())).collect())
    }

    async fn waiting_tenants(&mut self, _now: Millis) -> Result<Vec<String>> {
        Ok(self.tables.claimable.keys().cloned().collect())
    }

    async fn candidates(&mut self, params: CandidateParams<'_>) -> Result<Vec<Task>> {
        let queue = self.tables.claimable.get(params.tenant).into_iter().flatten();
        let due = queue
            .filter_map(|(_, id)| self.tables.task(*id))
            .filter(|t| t.due_at <= params.now && params.actions.contains(&t.action))
            .filter(|t| t.pack.as_ref().is_none_or(|pack| params.packs.contains(pack)));
        Ok(due.take(params.limit).cloned().collect())
    }

    async fn lock_packs(&mut self, names: &[String]) -> Result<Vec<PackGate>> {
        let t = &self.tables;
        let busy = |pack: &str| {
            t.leases.iter().filter_map(|(_, id)| t.task(*id)).any(|task| task.pack.as_deref() == Some(pack))
        };
        let gate = |row: &PackRow| PackGate {
            name: row.name.clone(),
            paused: row.paused,
            serial: row.serial,
            busy: row.serial && busy(&row.name),
        };
        Ok(names.iter().filter_map(|name| t.packs.get(name)).map(gate).collect())
    }

    async fn packs(&mut self) -> Result<Vec<PackRow>> {
        Ok(self.tables.packs.values().cloned().collect())
    }

    async fn put_pack(&mut self, row: &PackRow) -> Result<()> {
        self.set(|t| &mut t.packs, row.name.clone(), Some(row.clone()));
        Ok(())
    }

    async fn pack_strays(&mut self, limit: usize) -> Result<Vec<TaskId>> {
        let t = &self.tables;
        let stray = |task: &&Task| {
            let row = task.pack.as_ref().and_then(|pack| t.packs.get(pack));
            let runs = matches!(task.state, State::Queued | State::Blocked | State::Running);
            let for_children = task.wait == Some(WaitReason::Children);
            row.is_some_and(|row| if row.paused { runs && !for_children } else { task.held_by_pack() })
        };
        let mut strays: Vec<&Task> = t.tasks().filter(stray).collect();
        strays.sort_by_key(|task| (!task.under_way() || task.held_by_pack(), task.id));
        Ok(strays.into_iter().take(limit).map(|task| task.id).collect())
    }

    async fn pack_waiting(&mut self, tenant: Option<&str>) -> Result<Vec<(String, i64)>> {
        let mut waiting: BTreeMap<String, i64> = BTreeMap::new();
        let counts = |task: &&Task| {
            !task.state.is_final() && !task.under_way() && tenant.is_none_or(|tenant| tenant == task.tenant)
        };
        let idle = self.tables.tasks().filter(counts);
        for pack in idle.filter_map(|task| task.pack.clone()) {
            *waiting.entry(pack).or_default() += 1;
        }
        Ok(waiting.into_iter().collect())
    }

    async fn renew(&mut self, params: &RenewParams, until: Millis) -> Result<Vec<Renewed>> {
        let mut answers = Vec::with_capacity(params.held.len());
        for (id, token) in &params.held {
            let ours = self.tables.task(*id).filter(|t| {
                t.fencing_token == *token && t.under_way() && t.lease_owner.as_deref() == Some(params.node.as_str())
            });
            let Some(task) = ours else {
                answers.push(Renewed::Stale);
                continue;
            };
            let asked = matches!(task.state, State::Pausing | State::Cancelling);
            answers.push(if asked { Renewed::Stop } else { Renewed::Ok });
            let renewed = Task { lease_until: Some(until), ..task.clone() };
            self.set_task(*id, Some(renewed));
        }
        Ok(answers)
    }

    async fn renew_lent(&mut self, params: &RenewLent, now: Millis, until: Millis) -> Result<Vec<Renewed>> {
        let mut answers = Vec::with_capacity(params.held.len());
        for (id, token) in &params.held {
            let lent = self.tables.task(*id).filter(|t| t.fencing_token == *token && t.under_way());
            let lent = lent.filter(|t| params.tenant.as_ref().is_none_or(|tenant| *tenant == t.tenant));
            let Some((task, end)) = lent.and_then(|t| Some((t, t.chunk_until.filter(|end| *end > now)?))) else {
                answers.push(Renewed::Stale);
                continue;
            };
            let asked = matches!(task.state, State::Pausing | State::Cancelling);
            answers.push(if asked { Renewed::Stop } else { Renewed::Ok });
            let renewed = Task { lease_until: Some(until.min(end)), ..task.clone() };
            self.set_task(*id, Some(renewed));
        }
        Ok(answers)
    }

    async fn overdue(&mut self, now: Millis, all: bool, asked_by: Millis, limit: usize) -> Result<Vec<TaskId>> {
        let t = &self.tables;
        let leases = t.leases.iter().filter(|(until, id)| {
            let asked = |t: &Task| t.state == State::Cancelling && t.stop.as_ref().is_some_and(|s| s.at <= asked_by);
            let of_a_node = || t.task(*id).is_some_and(|t| t.chunk_until.is_none());
            *until <= now || (all && of_a_node()) || t.task(*id).is_some_and(asked)
        });
        let deadlines = t.deadlines.iter().take_while(|(deadline, _)| *deadline <= now);
        let ids: BTreeSet<TaskId> = leases.chain(deadlines).map(|(_, id)| *id).collect();
        Ok(ids.into_iter().take(limit).collect())
    }

    async fn markable(&mut self, params: &MarkParams, limit: usize) -> Result<Vec<Task>> {
        Ok(markable(&self.tables, params).take(limit).cloned().collect())
    }

    async fn run_effects(&mut self, _effects: &[Effect]) -> Result<Option<String>> {
        Err(StoreError::Unsupported("business tables"))
    }

    async fn commit(mut self: Box<Self>) -> Result<()> {
        self.journal.clear();
        Ok(())
    }
}
