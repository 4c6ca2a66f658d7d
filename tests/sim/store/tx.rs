//! A transaction over the faulty connection: plays out its fate step by step, notes what it writes, keeps the business
//! table, and holds the planted faults that a store could have.

use super::fate::Fate;
use crate::model::{Changes, Item};
use crate::plant::Plant;
use crate::scheduler::Group;
use crate::violation::{Invariant, must};
use crate::world::World;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::Arc;
use taskbell::core::concurrency::KeyUse;
use taskbell::core::effect::{Effect, SqlValue};
use taskbell::core::eta::UnitPrior;
use taskbell::core::ids::{FencingToken, Head, TaskId};
use taskbell::core::picture::Point;
use taskbell::core::task::{Task, TimelineEvent};
use taskbell::core::time::Millis;
use taskbell::core::view::Documents;
use taskbell::store::tx::{
    CandidateParams, Document, DocumentKind, KeyName, KeyRow, Kin, PackGate, SlotKey, Tx, Under,
};
use taskbell::store::{MarkParams, PackRow, RenewLent, RenewParams, Renewed, Result};

/// The number by which a chunk asks the business table to refuse its rows.
pub const REFUSED: i64 = -1;

/// A transaction that trouble may befall.
pub struct FaultyTx {
    tx: Box<dyn Tx>,
    world: Arc<World>,
    group: Group,
    fate: Fate,
    step: u32,
    changes: Changes,
}

impl FaultyTx {
    pub fn new(tx: Box<dyn Tx>, world: Arc<World>, group: Group, fate: Fate) -> Self {
        Self { tx, world, group, fate, step: 0, changes: Changes::default() }
    }

    async fn next(&mut self, last: bool) -> Result<()> {
        let step = self.step;
        self.step += 1;
        if self.fate == Fate::Well {
            return Ok(());
        }
        self.fate.before(&self.world, self.group, step, last).await
    }

    fn planted(&self, plant: Plant) -> bool {
        self.world.plant == Some(plant)
    }
}

/// A row of the business table, as an effect carries it.
pub fn row_of(item: Item) -> Vec<SqlValue> {
    vec![item.task.to_string().into(), item.number.into(), item.of.into(), item.token.0.into()]
}

fn item_of(row: &[SqlValue]) -> Item {
    let [SqlValue::Text(task), SqlValue::Int(number), SqlValue::Int(of), SqlValue::Int(token)] = row else {
        panic!("no row of the business table: {row:?}");
    };
    Item { task: task.parse().unwrap(), number: *number, of: *of, token: FencingToken(*token) }
}

#[async_trait]
impl Tx for FaultyTx {
    async fn now(&mut self) -> Result<Millis> {
        self.next(false).await?;
        self.changes.now = self.tx.now().await?;
        Ok(self.changes.now)
    }

    async fn load(&mut self, ids: &[TaskId]) -> Result<Vec<Task>> {
        self.next(false).await?;
        self.tx.load(ids).await
    }

    async fn load_free(&mut self, ids: &[TaskId]) -> Result<Vec<Task>> {
        self.next(false).await?;
        self.tx.load_free(ids).await
    }

    async fn load_unheld(&mut self, ids: &[TaskId]) -> Result<Vec<Task>> {
        self.next(false).await?;
        self.tx.load_unheld(ids).await
    }

    async fn insert(&mut self, tasks: &[Task]) -> Result<()> {
        self.next(false).await?;
        self.changes.written.extend_from_slice(tasks);
        self.tx.insert(tasks).await
    }

    async fn update(&mut self, tasks: &[Task]) -> Result<()> {
        self.next(false).await?;
        self.changes.written.extend_from_slice(tasks);
        self.tx.update(tasks).await
    }

    async fn remove(&mut self, ids: &[TaskId]) -> Result<()> {
        self.next(false).await?;
        self.changes.removed.extend_from_slice(ids);
        self.tx.remove(ids).await
    }

    async fn put_documents(&mut self, documents: &[Document]) -> Result<()> {
        self.next(false).await?;
        let checkpoints = documents.iter().filter(|d| d.kind == DocumentKind::Checkpoint);
        self.changes.checkpoints.extend(checkpoints.filter_map(|d| Some((d.task, d.body["next"].as_i64()?))));
        self.tx.put_documents(documents).await
    }

    async fn documents(&mut self, ids: &[TaskId]) -> Result<BTreeMap<TaskId, Documents>> {
        self.next(false).await?;
        let found = self.tx.documents(ids).await?;
        for (id, documents) in &found {
            let read = documents.checkpoint.as_ref().map_or(0, |c| c["next"].as_i64().unwrap_or(-1));
            let acknowledged = self.world.model.lock().unwrap().checkpoint(*id);
            self.world.check(must(read == acknowledged, Invariant::Checkpoint, || {
                format!("{id} is claimed at {read}, acknowledged is {acknowledged}")
            }));
        }
        Ok(found)
    }

    async fn append_events(&mut self, events: &[TimelineEvent]) -> Result<()> {
        self.next(false).await?;
        self.changes.events.extend_from_slice(events);
        self.tx.append_events(events).await
    }

    async fn put_points(&mut self, points: &[(TaskId, Point)]) -> Result<()> {
        self.next(false).await?;
        self.tx.put_points(points).await
    }

    async fn points(&mut self, task: TaskId) -> Result<Vec<Point>> {
        self.next(false).await?;
        self.tx.points(task).await
    }

    async fn remove_points(&mut self, tasks: &[TaskId]) -> Result<()> {
        self.next(false).await?;
        self.tx.remove_points(tasks).await
    }

    async fn prior(&mut self, tenant: &str, action: &str) -> Result<Option<UnitPrior>> {
        self.next(false).await?;
        self.tx.prior(tenant, action).await
    }

    async fn bump_heads(&mut self, owners: &[(String, String)], deleting: bool) -> Result<Vec<Head>> {
        self.next(false).await?;
        let heads = self.tx.bump_heads(owners, deleting).await?;
        self.changes.heads.extend(owners.iter().cloned().zip(heads.iter().copied()));
        Ok(heads)
    }

    async fn key_rows(&mut self, names: &[KeyName]) -> Result<Vec<KeyRow>> {
        self.next(false).await?;
        if self.planted(Plant::NoUniqueIndex) { Ok(Vec::new()) } else { self.tx.key_rows(names).await }
    }

    async fn put_key_rows(&mut self, rows: &[KeyRow]) -> Result<()> {
        self.next(false).await?;
        self.tx.put_key_rows(rows).await
    }

    async fn lock_keys_of(&mut self, tasks: &[TaskId]) -> Result<()> {
        self.next(false).await?;
        self.tx.lock_keys_of(tasks).await
    }

    async fn lock_slots(&mut self, keys: &[SlotKey], tasks: &[TaskId]) -> Result<()> {
        self.next(false).await?;
        self.tx.lock_slots(keys, tasks).await
    }

    async fn key_use(&mut self, key: &SlotKey, waiting_most: u32) -> Result<KeyUse> {
        self.next(false).await?;
        let mut in_use = self.tx.key_use(key, waiting_most).await?;
        if self.planted(Plant::SlotFreedTwice) && self.world.model.lock().unwrap().freed.contains(key) {
            in_use.held = in_use.held.saturating_sub(1);
        }
        Ok(in_use)
    }

    async fn key_tasks(&mut self, key: &SlotKey, under: Under, limit: usize) -> Result<Vec<Task>> {
        self.next(false).await?;
        self.tx.key_tasks(key, under, limit).await
    }

    async fn waited_keys(&mut self, limit: usize) -> Result<Vec<SlotKey>> {
        self.next(false).await?;
        self.tx.waited_keys(limit).await
    }

    async fn ancestors(&mut self, ids: &[TaskId]) -> Result<Vec<TaskId>> {
        self.next(false).await?;
        self.tx.ancestors(ids).await
    }

    async fn children(&mut self, parent: TaskId, kin: Kin, limit: usize) -> Result<Vec<TaskId>> {
        self.next(false).await?;
        let found = self.tx.children(parent, kin, limit).await?;
        let deaf = self.planted(Plant::DeafParents) && kin == Kin::Open && found.is_empty();
        Ok(if deaf { vec![self.world.id()] } else { found })
    }

    async fn fallen_below(&mut self, ids: &[TaskId]) -> Result<Vec<TaskId>> {
        self.next(false).await?;
        self.tx.fallen_below(ids).await
    }

    async fn forsaken(&mut self, parents: &[TaskId], limit: usize) -> Result<Vec<TaskId>> {
        self.next(false).await?;
        if self.planted(Plant::ForsakenChildren) { Ok(Vec::new()) } else { self.tx.forsaken(parents, limit).await }
    }

    async fn waiting_in_vain(&mut self, limit: usize) -> Result<Vec<TaskId>> {
        self.next(false).await?;
        if self.planted(Plant::DeafParents) { Ok(Vec::new()) } else { self.tx.waiting_in_vain(limit).await }
    }

    async fn done_of_children(&mut self, parents: &[TaskId]) -> Result<BTreeMap<TaskId, i64>> {
        self.next(false).await?;
        self.tx.done_of_children(parents).await
    }

    async fn waiting_tenants(&mut self, now: Millis) -> Result<Vec<String>> {
        self.next(false).await?;
        self.tx.waiting_tenants(now).await
    }

    async fn candidates(&mut self, params: CandidateParams<'_>) -> Result<Vec<Task>> {
        self.next(false).await?;
        self.tx.candidates(params).await
    }

    async fn lock_packs(&mut self, names: &[String]) -> Result<Vec<PackGate>> {
        self.next(false).await?;
        let mut gates = self.tx.lock_packs(names).await?;
        if self.planted(Plant::BlindToPacks) {
            gates.iter_mut().for_each(|gate| (gate.paused, gate.busy) = (false, false));
        }
        Ok(gates)
    }

    async fn packs(&mut self) -> Result<Vec<PackRow>> {
        self.next(false).await?;
        self.tx.packs().await
    }

    async fn put_pack(&mut self, row: &PackRow) -> Result<()> {
        self.next(false).await?;
        self.changes.packs.push(row.clone());
        self.tx.put_pack(row).await
    }

    async fn pack_strays(&mut self, limit: usize) -> Result<Vec<TaskId>> {
        self.next(false).await?;
        self.tx.pack_strays(limit).await
    }

    async fn pack_waiting(&mut self, tenant: Option<&str>) -> Result<Vec<(String, i64)>> {
        self.next(false).await?;
        self.tx.pack_waiting(tenant).await
    }

    async fn renew(&mut self, params: &RenewParams, until: Millis) -> Result<Vec<Renewed>> {
        self.next(false).await?;
        let answers = self.tx.renew(params, until).await?;
        let kept = params.held.iter().zip(&answers).filter(|(_, answer)| matches!(answer, Renewed::Ok | Renewed::Stop));
        self.changes.renewed.extend(kept.map(|((id, _), _)| (*id, until)));
        Ok(answers)
    }

    async fn renew_lent(&mut self, params: &RenewLent, now: Millis, until: Millis) -> Result<Vec<Renewed>> {
        self.next(false).await?;
        self.tx.renew_lent(params, now, until).await
    }

    async fn overdue(&mut self, now: Millis, all: bool, asked_by: Millis, limit: usize) -> Result<Vec<TaskId>> {
        self.next(false).await?;
        self.tx.overdue(now, all, asked_by, limit).await
    }

    async fn markable(&mut self, params: &MarkParams, limit: usize) -> Result<Vec<Task>> {
        self.next(false).await?;
        self.tx.markable(params, limit).await
    }

    async fn run_effects(&mut self, effects: &[Effect]) -> Result<Option<String>> {
        self.next(false).await?;
        let items: Vec<Item> = effects.iter().flat_map(|e| &e.rows).map(|row| item_of(row)).collect();
        if items.iter().any(|item| item.number == REFUSED) {
            return Ok(Some("the simulated table refuses the row".into()));
        }
        self.changes.items.extend(items);
        Ok(None)
    }

    async fn commit(mut self: Box<Self>) -> Result<()> {
        self.next(true).await?;
        let Self { tx, world, changes, .. } = *self;
        tx.commit().await?;
        world.committed(changes);
        Ok(())
    }
}
