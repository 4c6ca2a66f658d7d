//! The row-level steps over SQL, written once for all databases.

mod family;
mod writing;

use super::super::row::{self, Columns};
use super::super::sql::{Statements, like};
use super::super::tx::{CandidateParams, Document, KeyName, KeyRow, Kin, PackGate, Rows, SlotKey, Tx, Under};
use super::super::value::{self, Batch, values};
use super::super::{Mark, MarkParams, PackRow, RenewLent, RenewParams, Renewed, Result, StoreError};
use super::driver::{Session, owner_names};
use super::recall::{Marks, Recall, marks_of};
use super::rows::{documents, key_row, no_documents, pack_row, points, renewed, task_ids, understood, usual};
use crate::core::concurrency::KeyUse;
use crate::core::effect::Effect;
use crate::core::eta::UnitPrior;
use crate::core::ids::{FencingToken, Head, TaskId};
use crate::core::picture::Point;
use crate::core::task::{Task, TimelineEvent};
use crate::core::time::Millis;
use crate::core::view::Documents;
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};

/// Steps of one look for concurrency keys with a free slot: a few milliseconds.
const KEYS_LOOKED_AT: usize = 1_000;

/// An open transaction.
pub(super) struct SqlTx<S> {
    session: S,
    statements: &'static Statements,
    /// Keys whose rows were found, and so are locked.
    found: BTreeSet<KeyName>,
    recall: Recall,
    /// What the commit tells it: tasks with a lease as they are to be, and the ids of others.
    under_way: Vec<Task>,
    at_rest: Vec<TaskId>,
}

impl<S: Session> SqlTx<S> {
    pub(super) fn new(session: S, statements: &'static Statements, recall: Recall) -> Self {
        Self { session, statements, found: BTreeSet::new(), recall, under_way: Vec::new(), at_rest: Vec::new() }
    }

    /// Tasks of which some are known: all are locked in one order, and those that are as this process has written them are
    /// not read.
    async fn load_known(&mut self, ids: &[TaskId]) -> Result<Vec<Task>> {
        let (mut loaded, mut unknown) = (Vec::with_capacity(ids.len()), Vec::new());
        for mut row in self.session.rows(&self.statements.lock_marks, values![ids]).await? {
            let marks = Marks::of(&mut row)?;
            match self.recall.task(&marks) {
                Some(task) => loaded.push(task),
                None => unknown.push(marks.id),
            }
        }
        if !unknown.is_empty() {
            loaded.extend(understood(
                self.session.rows(&self.statements.tasks_by_id, values![unknown.as_slice()]).await?,
            )?);
        }
        Ok(loaded)
    }
}

fn name_columns(name: &KeyName, to: &mut Batch) {
    to.text(Some(&name.tenant));
    to.text(Some(&name.action));
    to.text(Some(name.kind.as_str()));
    to.text(Some(&name.key));
}

fn key_columns(row: &&KeyRow, to: &mut Batch) {
    name_columns(&row.name, to);
    to.text(Some(&row.task.to_string()));
    to.int(Some(row.keep_ms));
    to.text(Some(&row.fingerprint));
}

#[async_trait]
impl<S: Session> Tx for SqlTx<S> {
    async fn now(&mut self) -> Result<Millis> {
        self.session.now().await
    }

    async fn load(&mut self, ids: &[TaskId]) -> Result<Vec<Task>> {
        if !ids.is_empty()
            && self.session.is_late()
            && let Some(tasks) = self.recall.all(ids)
            && self.session.rests_on(Batch::of(&tasks, marks_of))
        {
            return Ok(tasks);
        }
        if self.recall.knows_one_of(ids) {
            return self.load_known(ids).await;
        }
        understood(self.session.rows(&self.statements.lock_tasks, values![ids]).await?)
    }

    async fn load_free(&mut self, ids: &[TaskId]) -> Result<Vec<Task>> {
        self.lock_free(ids).await
    }

    async fn load_unheld(&mut self, ids: &[TaskId]) -> Result<Vec<Task>> {
        understood(self.session.rows(&self.statements.lock_free_tasks, values![ids]).await?)
    }

    async fn insert(&mut self, tasks: &[Task]) -> Result<()> {
        self.write(&mut Rows { fresh: tasks.to_vec(), ..Rows::default() }).await
    }

    async fn update(&mut self, tasks: &[Task]) -> Result<()> {
        self.write(&mut Rows { changed: tasks.to_vec(), ..Rows::default() }).await
    }

    async fn write(&mut self, rows: &mut Rows) -> Result<()> {
        if !S::MOVES_HEADS && !rows.owners.is_empty() {
            let heads = self.bump_heads(&rows.owners, false).await?;
            rows.set_heads(|n| heads[n]);
        }
        let writes = self.writes(rows);
        let written = self.session.write_all(&rows.owners, writes.statements).await?;
        self.wrote(rows, &writes.least, written)
    }

    async fn remove(&mut self, ids: &[TaskId]) -> Result<()> {
        let s = self.statements;
        for statement in [
            &s.remove_tasks,
            &s.remove_documents,
            &s.remove_events,
            &s.remove_points,
            &s.remove_keys,
            &s.expire_artifacts,
        ] {
            self.session.run(statement, values![ids]).await?;
        }
        Ok(())
    }

    async fn put_documents(&mut self, documents: &[Document]) -> Result<()> {
        self.write(&mut Rows { documents: documents.to_vec(), ..Rows::default() }).await
    }

    async fn documents(&mut self, ids: &[TaskId]) -> Result<BTreeMap<TaskId, Documents>> {
        let rows = self.session.rows(&self.statements.documents, values![ids, ["params", "checkpoint"]]).await?;
        let mut found = documents(rows)?;
        for id in ids {
            found.entry(*id).or_insert_with(no_documents);
        }
        Ok(found)
    }

    async fn append_events(&mut self, events: &[TimelineEvent]) -> Result<()> {
        self.write(&mut Rows { events: events.to_vec(), ..Rows::default() }).await
    }

    async fn put_points(&mut self, points: &[(TaskId, Point)]) -> Result<()> {
        self.session.write(&self.statements.put_points, Batch::of(points, row::encode_point)).await.map(drop)
    }

    async fn points(&mut self, task: TaskId) -> Result<Vec<Point>> {
        points(self.session.rows(&self.statements.points, values![task]).await?)
    }

    async fn remove_points(&mut self, tasks: &[TaskId]) -> Result<()> {
        self.session.run(&self.statements.remove_points, values![tasks]).await.map(drop)
    }

    async fn prior(&mut self, tenant: &str, action: &str) -> Result<Option<UnitPrior>> {
        Ok(usual(self.session.rows(&self.statements.usual, values![tenant, action]).await?)?.prior)
    }

    async fn bump_heads(&mut self, owners: &[(String, String)], deleting: bool) -> Result<Vec<Head>> {
        let mut heads = BTreeMap::new();
        let values = values![owner_names(owners), i64::from(deleting)];
        for mut r in self.session.rows(&self.statements.bump_heads, values).await? {
            heads.insert((r.text()?, r.text()?), r.int()?.unwrap_or_default());
        }
        owners
            .iter()
            .map(|(tenant, owner)| heads.get(&(Some(tenant.clone()), Some(owner.clone()))).copied().map(Head))
            .collect::<Option<_>>()
            .ok_or_else(|| row::corrupt("head"))
    }

    async fn key_rows(&mut self, names: &[KeyName]) -> Result<Vec<KeyRow>> {
        let rows = self.session.rows(&self.statements.key_rows, values![Batch::of(names, name_columns)]).await?;
        let rows: Vec<KeyRow> = rows.into_iter().map(|mut r| key_row(&mut r)).collect::<Result<_>>()?;
        self.found.extend(rows.iter().map(|r| r.name.clone()));
        Ok(rows)
    }

    async fn put_key_rows(&mut self, rows: &[KeyRow]) -> Result<()> {
        let (known, new): (Vec<&KeyRow>, Vec<&KeyRow>) = rows.iter().partition(|r| self.found.contains(&r.name));
        if !known.is_empty() {
            self.session.run(&self.statements.pass_keys, values![Batch::of(&known, key_columns)]).await?;
        }
        if !new.is_empty() {
            let batch = Batch::of(&new, key_columns);
            if self.session.run(&self.statements.give_keys, values![batch]).await? < new.len() as u64 {
                return Err(StoreError::Conflict("an idempotency key was given away at the same time".into()));
            }
        }
        Ok(())
    }

    async fn lock_keys_of(&mut self, tasks: &[TaskId]) -> Result<()> {
        self.session.lock_keys_of(tasks).await
    }

    async fn lock_slots(&mut self, keys: &[SlotKey], tasks: &[TaskId]) -> Result<()> {
        let (mut known, unknown) = self.recall.slot_keys(tasks);
        known.extend(keys.iter().cloned());
        let keys: Vec<SlotKey> = known.into_iter().collect();
        self.session.lock_slots(&keys, &unknown).await
    }

    async fn key_use(&mut self, key: &SlotKey, waiting_most: u32) -> Result<KeyUse> {
        let values = values![key.0.as_str(), key.1.as_str(), i64::from(waiting_most)];
        let rows = self.session.rows(&self.statements.key_use, values).await?;
        let mut counts = rows.into_iter().next().ok_or_else(|| row::corrupt("key use"))?;
        let mut count = || row::count32(counts.int()?, "key use");
        Ok(KeyUse { held: count()?, waiting: count()? })
    }

    async fn key_tasks(&mut self, key: &SlotKey, under: Under, limit: usize) -> Result<Vec<Task>> {
        let statement = match under {
            Under::Holders => &self.statements.key_holders,
            Under::Waiters => &self.statements.key_waiters,
        };
        understood(self.session.rows(statement, values![key.0.as_str(), key.1.as_str(), limit]).await?)
    }

    async fn waited_keys(&mut self, limit: usize) -> Result<Vec<SlotKey>> {
        let (tenant, key) = self.recall.looks_on();
        let rows = self.session.rows(&self.statements.waited_keys, values![KEYS_LOOKED_AT, tenant, key]).await?;
        let mut free = Vec::new();
        for mut r in rows {
            let (tenant, key) = (r.text()?.unwrap_or_default(), r.text()?);
            let (is_free, step) = (r.int()? == Some(1), r.int()?);
            free.extend(key.clone().filter(|_| is_free).map(|key| (tenant.clone(), key)));
            if free.len() == limit || step == Some(KEYS_LOOKED_AT as i64) {
                self.recall.looked_to((tenant, key));
                break;
            }
        }
        Ok(free)
    }

    async fn ancestors(&mut self, ids: &[TaskId]) -> Result<Vec<TaskId>> {
        task_ids(self.session.rows(&self.statements.ancestors, values![ids]).await?)
    }

    async fn children(&mut self, parent: TaskId, kin: Kin, limit: usize) -> Result<Vec<TaskId>> {
        let statement = match kin {
            Kin::Open => &self.statements.open_children,
            Kin::Fallen => &self.statements.fallen_children,
        };
        task_ids(self.session.rows(statement, values![parent, limit]).await?)
    }

    async fn fallen_below(&mut self, ids: &[TaskId]) -> Result<Vec<TaskId>> {
        task_ids(self.session.rows(&self.statements.fallen_below, values![ids]).await?)
    }

    async fn forsaken(&mut self, parents: &[TaskId], limit: usize) -> Result<Vec<TaskId>> {
        self.forsaken_children(parents, limit).await
    }

    async fn waiting_in_vain(&mut self, limit: usize) -> Result<Vec<TaskId>> {
        task_ids(self.session.rows(&self.statements.waiting_in_vain, values![limit]).await?)
    }

    async fn done_of_children(&mut self, parents: &[TaskId]) -> Result<BTreeMap<TaskId, i64>> {
        self.done_by_parent(parents).await
    }

    fn remembered_tenants(&mut self) -> Option<Vec<String>> {
        self.recall.tenants()
    }

    async fn waiting_tenants(&mut self, _now: Millis) -> Result<Vec<String>> {
        let rows = self.session.rows(&self.statements.waiting_tenants, values![]).await?;
        let tenants: Vec<String> =
            rows.into_iter().map(|mut r| Ok(r.text()?.unwrap_or_default())).collect::<Result<_>>()?;
        self.recall.remember_tenants(&tenants);
        Ok(tenants)
    }

    async fn candidates(&mut self, params: CandidateParams<'_>) -> Result<Vec<Task>> {
        let values = values![params.tenant, params.now, params.actions, params.limit, params.packs];
        let mut found = understood(self.session.rows(&self.statements.candidates, values).await?)?;
        // Taking a slot, or giving one up because time is over, changes the key. One that holds its slot only goes on.
        let changes = |t: &Task| !t.slot_held || t.deadline.is_some_and(|d| d <= params.now);
        let key = |t: &Task| t.concurrency.as_ref().map(|c| (t.tenant.clone(), c.key.clone()));
        let keys: BTreeSet<SlotKey> = found.iter().filter(|t| changes(t)).filter_map(key).collect();
        if !keys.is_empty() {
            let keys: Vec<SlotKey> = keys.into_iter().collect();
            let elsewhere = self.session.locked_elsewhere(&keys).await?;
            found.retain(|t| !changes(t) || key(t).is_none_or(|k| !elsewhere.contains(&k)));
        }
        Ok(found)
    }

    async fn lock_packs(&mut self, names: &[String]) -> Result<Vec<PackGate>> {
        let mut gates = Vec::new();
        for (statement, serial) in [(&self.statements.serial_packs, true), (&self.statements.shared_packs, false)] {
            for mut r in self.session.rows(statement, values![names]).await? {
                let name = r.text()?.unwrap_or_default();
                gates.push(PackGate { name, paused: r.int()? == Some(1), serial, busy: false });
            }
        }
        let serial: Vec<String> = gates.iter().filter(|g| g.serial).map(|g| g.name.clone()).collect();
        if !serial.is_empty() {
            // After the lock, so that it sees what the last claim of another node has committed.
            for mut r in self.session.rows(&self.statements.busy_packs, values![serial.as_slice()]).await? {
                let busy = r.text()?;
                gates.iter_mut().filter(|g| Some(&g.name) == busy.as_ref()).for_each(|g| g.busy = true);
            }
        }
        Ok(gates)
    }

    async fn packs(&mut self) -> Result<Vec<PackRow>> {
        let rows = self.session.rows(&self.statements.packs, values![]).await?;
        rows.into_iter().map(|mut r| pack_row(&mut r)).collect()
    }

    async fn put_pack(&mut self, row: &PackRow) -> Result<()> {
        let values = values![
            row.name.as_str(),
            row.version.as_str(),
            i64::from(row.serial),
            i64::from(row.paused),
            row.changed_at,
            row.changed_by.clone(),
        ];
        self.session.run(&self.statements.put_pack, values).await.map(drop)
    }

    async fn pack_strays(&mut self, limit: usize) -> Result<Vec<TaskId>> {
        let rows = self.session.rows(&self.statements.pack_strays, values![limit]).await?;
        rows.into_iter().map(|mut r| row::task_id(&r.text()?.unwrap_or_default())).collect()
    }

    async fn pack_waiting(&mut self, tenant: Option<&str>) -> Result<Vec<(String, i64)>> {
        let rows = self.session.rows(&self.statements.pack_waiting, values![tenant.map(str::to_owned)]).await?;
        rows.into_iter().map(|mut r| Ok((r.text()?.unwrap_or_default(), r.int()?.unwrap_or_default()))).collect()
    }

    async fn renew(&mut self, params: &RenewParams, until: Millis) -> Result<Vec<Renewed>> {
        if params.held.is_empty() {
            return Ok(Vec::new());
        }
        let values = values![until, params.node.as_str(), held_names(&params.held)];
        renewed(self.session.rows(&self.statements.renew, values).await?, &params.held)
    }

    async fn renew_lent(&mut self, params: &RenewLent, now: Millis, until: Millis) -> Result<Vec<Renewed>> {
        if params.held.is_empty() {
            return Ok(Vec::new());
        }
        let values = values![until, now, params.tenant.clone(), held_names(&params.held)];
        let rows = self.session.rows(&self.statements.renew_lent, values).await?;
        renewed(rows, &params.held)
    }

    async fn overdue(&mut self, now: Millis, all: bool, asked_by: Millis, limit: usize) -> Result<Vec<TaskId>> {
        let values = values![now, i64::from(all), asked_by, limit];
        task_ids(self.session.rows(&self.statements.overdue, values).await?)
    }

    async fn markable(&mut self, params: &MarkParams, limit: usize) -> Result<Vec<Task>> {
        let (tenant, owner) = (params.tenant.as_str(), params.owner.as_str());
        if !params.ids.is_empty() {
            let values = values![tenant, owner, params.ids.as_slice(), word(params.mark), limit];
            return understood(self.session.rows(&self.statements.markable_by_id, values).await?);
        }
        let statement = match params.mark {
            Mark::Seen => &self.statements.markable_unseen,
            Mark::Read | Mark::Archived => &self.statements.markable_up_to,
        };
        understood(self.session.rows(statement, named_by_filter(params, limit)).await?)
    }

    async fn run_effects(&mut self, effects: &[Effect]) -> Result<Option<String>> {
        self.session.run("SAVEPOINT taskbell_effects", values![]).await?;
        match self.session.effects(effects).await {
            Ok(()) => {
                self.session.run("RELEASE SAVEPOINT taskbell_effects", values![]).await?;
                Ok(None)
            }
            Err(StoreError::Limit(text) | StoreError::Corrupt(text)) => {
                self.session.run("ROLLBACK TO SAVEPOINT taskbell_effects", values![]).await?;
                self.session.run("RELEASE SAVEPOINT taskbell_effects", values![]).await?;
                Ok(Some(text))
            }
            Err(other) => Err(other),
        }
    }

    async fn commit(self: Box<Self>) -> Result<()> {
        let Self { session, recall, under_way, at_rest, .. } = *self;
        session.commit().await?;
        recall.committed(under_way, &at_rest);
        Ok(())
    }

    async fn write_and_commit(mut self: Box<Self>, rows: &mut Rows) -> Result<()> {
        if !self.session.is_late() {
            self.write(rows).await?;
            return self.commit().await;
        }
        let writes = self.writes(rows);
        let written = self.session.write_alone(&rows.owners, writes.statements).await?;
        self.wrote(rows, &writes.least, written)?;
        self.recall.committed(self.under_way, &self.at_rest);
        Ok(())
    }
}

/// Leases by task and token.
fn held_names(held: &[(TaskId, FencingToken)]) -> Batch {
    Batch::of(held, |(id, token), to| {
        to.text(Some(&id.to_string()));
        to.int(Some(token.0));
    })
}

/// What the statements are given that find tasks for a mark by its filter.
pub(super) fn named_by_filter(params: &MarkParams, limit: usize) -> Vec<value::Value> {
    let filter = params.filter.clone();
    let states: Vec<&str> = filter.states.iter().map(|s| s.as_str()).collect();
    let record = filter.record.as_ref();
    values![
        params.tenant.as_str(),
        params.owner.as_str(),
        params.up_to.map_or(i64::MAX, |head| head.0),
        word(params.mark),
        states,
        filter.action.clone(),
        limit,
        record.map(|r| r.kind.clone()),
        record.map(|r| r.id.clone()),
        filter.text.as_deref().map(like),
        filter.from,
        filter.to,
    ]
}

fn word(mark: Mark) -> &'static str {
    match mark {
        Mark::Seen => "seen",
        Mark::Read => "read",
        Mark::Archived => "archived",
    }
}
