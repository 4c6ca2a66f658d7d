//! The row-level steps of a writing transaction: what a database has to offer so that [`super::flow`] can be written once.
//!
//! Dropping a transaction rolls it back. Loads lock their rows until the end, in the order of ids. No step decides
//! anything: which rows change and how is the core's affair.

use super::{MarkParams, PackRow, RenewLent, RenewParams, Renewed, Result};
use crate::core::concurrency::KeyUse;
use crate::core::effect::Effect;
use crate::core::eta::UnitPrior;
use crate::core::ids::{Head, TaskId};
use crate::core::picture::Point;
use crate::core::submit::KeyKind;
use crate::core::task::{Task, TimelineEvent};
use crate::core::time::Millis;
use crate::core::view::Documents;
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;

/// The name of an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyName {
    /// Whose.
    pub tenant: String,
    /// Of which action.
    pub action: String,
    /// Whose making.
    pub kind: KeyKind,
    /// The key.
    pub key: String,
}

/// Who holds an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// The key.
    pub name: KeyName,
    /// The holder.
    pub task: TaskId,
    /// How long its success goes on holding it, ms.
    pub keep_ms: i64,
    /// SHA-256 of the holder's canonical params and record.
    pub fingerprint: String,
}

/// The name of a concurrency key: (tenant, key).
pub type SlotKey = (String, String);

/// Which tasks under a concurrency key are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Under {
    /// Those that hold a slot.
    Holders,
    /// Those that wait for one, by priority, then first come.
    Waiters,
}

/// Which children of a task are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kin {
    /// Those that have not ended.
    Open,
    /// Those that failed or were cancelled.
    Fallen,
}

/// A document to store; `None` removes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Whose.
    pub task: TaskId,
    /// Which of the three.
    pub kind: DocumentKind,
    /// The document.
    pub body: Value,
}

/// The documents of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DocumentKind {
    /// As submitted.
    Params,
    /// Where the next chunk goes on.
    Checkpoint,
    /// What the handler left at the end.
    Result,
}

impl DocumentKind {
    /// The word in SQL.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Params => "params",
            Self::Checkpoint => "checkpoint",
            Self::Result => "result",
        }
    }
}

/// What a claim has to know of a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackGate {
    /// Its name.
    pub name: String,
    /// Switched off.
    pub paused: bool,
    /// At most one chunk of it runs at any instant.
    pub serial: bool,
    /// It is serial, and a chunk of it is under way.
    pub busy: bool,
}

/// Candidates for a claim of one tenant.
#[derive(Clone, Debug)]
pub struct CandidateParams<'a> {
    /// The tenant.
    pub tenant: &'a str,
    /// The actions that the node can run.
    pub actions: &'a [String],
    /// Of tasks that belong to a pack, only those of these packs.
    pub packs: &'a [String],
    /// Due at or before.
    pub now: Millis,
    /// At most so many.
    pub limit: usize,
}

/// What a verb writes of tasks.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Owners in order, each with its tenant, whose heads move by one: the tasks get the new head of theirs. None = the tasks
    /// keep theirs.
    pub owners: Vec<(String, String)>,
    /// New ones.
    pub fresh: Vec<Task>,
    /// Those of which nothing has changed but what [`super::row::only_advanced`] allows.
    pub advanced: Vec<Task>,
    /// Others that have changed.
    pub changed: Vec<Task>,
    /// Documents to store.
    pub documents: Vec<Document>,
    /// Entries of timelines.
    pub events: Vec<TimelineEvent>,
}

impl Rows {
    /// Gives each task the head of its owner, who has that place among the owners.
    pub fn set_heads(&mut self, of: impl Fn(usize) -> Head) {
        for task in self.fresh.iter_mut().chain(&mut self.advanced).chain(&mut self.changed) {
            let owner = (task.tenant.as_str(), task.owner.as_str());
            if let Ok(n) = self.owners.binary_search_by(|(t, o)| (t.as_str(), o.as_str()).cmp(&owner)) {
                task.head = of(n);
            }
        }
    }
}

/// A writing transaction.
#[async_trait]
pub trait Tx: Send {
    /// The database's now.
    async fn now(&mut self) -> Result<Millis>;

    /// Tasks by id, locked; missing ones are left out.
    async fn load(&mut self, ids: &[TaskId]) -> Result<Vec<Task>>;
    /// Tasks by id, locked without waiting, with the concurrency keys that they hold; missing ones are left out. For rows
    /// that turn out to be needed after others were locked. `Conflict` when somebody else has locked one.
    async fn load_free(&mut self, ids: &[TaskId]) -> Result<Vec<Task>>;
    /// Tasks by id that nobody else is writing at this moment, locked; the others are left out.
    async fn load_unheld(&mut self, ids: &[TaskId]) -> Result<Vec<Task>>;
    /// Stores new tasks.
    async fn insert(&mut self, tasks: &[Task]) -> Result<()>;
    /// Writes back what may change of tasks.
    async fn update(&mut self, tasks: &[Task]) -> Result<()>;
    /// The same for tasks of which nothing has changed but what [`super::row::only_advanced`] allows.
    async fn advance(&mut self, tasks: &[Task]) -> Result<()> {
        self.update(tasks).await
    }
    /// All that a verb writes of tasks, at once where a database can; the tasks are as they were written then.
    async fn write(&mut self, rows: &mut Rows) -> Result<()> {
        if !rows.owners.is_empty() {
            let heads = self.bump_heads(&rows.owners, false).await?;
            rows.set_heads(|n| heads[n]);
        }
        // A new task's row comes before all that is its own, for it tells whether its id is taken.
        if !rows.fresh.is_empty() {
            self.insert(&rows.fresh).await?;
        }
        if !rows.advanced.is_empty() {
            self.advance(&rows.advanced).await?;
        }
        if !rows.changed.is_empty() {
            self.update(&rows.changed).await?;
        }
        if !rows.documents.is_empty() {
            self.put_documents(&rows.documents).await?;
        }
        if !rows.events.is_empty() {
            self.append_events(&rows.events).await?;
        }
        Ok(())
    }
    /// Deletes tasks with their documents, timeline, picture and keys.
    async fn remove(&mut self, ids: &[TaskId]) -> Result<()>;

    /// Stores documents, replacing older ones.
    async fn put_documents(&mut self, documents: &[Document]) -> Result<()>;
    /// The documents of tasks, without results.
    async fn documents(&mut self, ids: &[TaskId]) -> Result<BTreeMap<TaskId, Documents>>;
    /// Appends to timelines.
    async fn append_events(&mut self, events: &[TimelineEvent]) -> Result<()>;
    /// Adds points to the pictures of tasks; one for an instant that has one takes its place.
    async fn put_points(&mut self, points: &[(TaskId, Point)]) -> Result<()>;
    /// The picture of a task, in order.
    async fn points(&mut self, task: TaskId) -> Result<Vec<Point>>;
    /// Takes the pictures of tasks away.
    async fn remove_points(&mut self, tasks: &[TaskId]) -> Result<()>;
    /// What the last successes of an action took per unit: the prior that its estimates are told with.
    async fn prior(&mut self, tenant: &str, action: &str) -> Result<Option<UnitPrior>>;
    /// Moves the heads of owners by one and answers the new ones. `deleting` notes that tasks go with this commit, which no
    /// row of theirs can tell afterwards.
    async fn bump_heads(&mut self, owners: &[(String, String)], deleting: bool) -> Result<Vec<Head>>;

    /// Who holds these idempotency keys; locks the rows. A key without a row cannot be locked: whoever is slower to give it
    /// away is told so by [`Self::put_key_rows`].
    async fn key_rows(&mut self, names: &[KeyName]) -> Result<Vec<KeyRow>>;
    /// Gives keys to tasks. `Conflict` when somebody else gave one away that [`Self::key_rows`] did not find.
    async fn put_key_rows(&mut self, rows: &[KeyRow]) -> Result<()>;

    /// Locks the idempotency keys that tasks hold, in one order. Comes before the tasks are loaded to be removed, for a submit
    /// locks keys before the tasks that hold them.
    async fn lock_keys_of(&mut self, tasks: &[TaskId]) -> Result<()>;
    /// Locks concurrency keys against other changes of their slots, in one order: these, and those of these tasks. Comes
    /// before any task is loaded, so that whoever waits for a key holds no row that another one waits for.
    async fn lock_slots(&mut self, keys: &[SlotKey], tasks: &[TaskId]) -> Result<()>;
    /// How many hold a concurrency key and how many wait, counted up to `waiting_most`. The key is locked.
    async fn key_use(&mut self, key: &SlotKey, waiting_most: u32) -> Result<KeyUse>;
    /// Tasks under a concurrency key, locked.
    async fn key_tasks(&mut self, key: &SlotKey, under: Under, limit: usize) -> Result<Vec<Task>>;
    /// Concurrency keys with a free slot behind which somebody waits, among those that one look takes in; the next look goes on
    /// from there. Not locked yet.
    async fn waited_keys(&mut self, limit: usize) -> Result<Vec<SlotKey>>;

    /// The parents of tasks, theirs, and so on; not locked.
    async fn ancestors(&mut self, ids: &[TaskId]) -> Result<Vec<TaskId>>;
    /// Children of a task, as they are without this transaction's changes; not locked.
    async fn children(&mut self, parent: TaskId, kin: Kin, limit: usize) -> Result<Vec<TaskId>>;
    /// Descendants of tasks that failed, were cancelled or are being cancelled, each by way of such ones; not locked.
    async fn fallen_below(&mut self, ids: &[TaskId]) -> Result<Vec<TaskId>>;
    /// Open children, not asked to stop yet, of parents that take theirs down ([`Task::takes_children_down`]), of these or, when
    /// none is named, of all; not locked.
    async fn forsaken(&mut self, parents: &[TaskId], limit: usize) -> Result<Vec<TaskId>>;
    /// Unfinished tasks that wait for children of which none is open; not locked.
    async fn waiting_in_vain(&mut self, limit: usize) -> Result<Vec<TaskId>>;
    /// What is done of the children of tasks, in thousandths of their weight.
    async fn done_of_children(&mut self, parents: &[TaskId]) -> Result<BTreeMap<TaskId, i64>>;

    /// Tenants that had tasks which might be due a few claims ago, in order; `None` where nobody remembers. A claim that finds
    /// too little among theirs has to ask anew.
    fn remembered_tenants(&mut self) -> Option<Vec<String>> {
        None
    }
    /// Tenants with tasks that may be due, in order.
    async fn waiting_tenants(&mut self, now: Millis) -> Result<Vec<String>>;
    /// Tasks that may be claimed, in claim order, locked with the concurrency keys that their claim may change; what another
    /// node looks at is passed over.
    async fn candidates(&mut self, params: CandidateParams<'_>) -> Result<Vec<Task>>;
    /// Packs by name, locked against a switch, and serial ones against the claims of other nodes. Comes before any task is
    /// locked. One that is not known is left out.
    async fn lock_packs(&mut self, names: &[String]) -> Result<Vec<PackGate>>;
    /// All packs, by name; not locked.
    async fn packs(&mut self) -> Result<Vec<PackRow>>;
    /// Stores a pack.
    async fn put_pack(&mut self, row: &PackRow) -> Result<()>;
    /// Tasks that are not as the switch of their pack is, those with a chunk under way first; not locked yet.
    async fn pack_strays(&mut self, limit: usize) -> Result<Vec<TaskId>>;
    /// How many unfinished tasks of each pack, of one tenant or of all, have no chunk under way; packs without any are left
    /// out.
    async fn pack_waiting(&mut self, tenant: Option<&str>) -> Result<Vec<(String, i64)>>;
    /// Lengthens leases in one statement. What another transaction has locked is `Busy`.
    async fn renew(&mut self, params: &RenewParams, until: Millis) -> Result<Vec<Renewed>>;
    /// Lengthens leases of chunks that workers outside run until `until`, or the end of their time where that is sooner.
    async fn renew_lent(&mut self, params: &RenewLent, now: Millis, until: Millis) -> Result<Vec<Renewed>>;
    /// Tasks whose lease (any lease of a node, when `all`), cancel grace (asked at or before `asked_by`) or deadline is over; not
    /// locked yet.
    async fn overdue(&mut self, now: Millis, all: bool, asked_by: Millis, limit: usize) -> Result<Vec<TaskId>>;
    /// Tasks that a mark is meant for and that do not carry it yet.
    async fn markable(&mut self, params: &MarkParams, limit: usize) -> Result<Vec<Task>>;

    /// Runs effects. `Some(sentence)` when the database refused one: none of them happened then, and the transaction goes on.
    async fn run_effects(&mut self, effects: &[Effect]) -> Result<Option<String>>;

    /// Makes it all true.
    async fn commit(self: Box<Self>) -> Result<()>;
    /// [`Self::write`] and [`Self::commit`]: by one question to a database, where a transaction that begins late has asked
    /// nothing else. `Conflict` where it took tasks for what they are not any more; nothing has happened then.
    async fn write_and_commit(mut self: Box<Self>, rows: &mut Rows) -> Result<()> {
        self.write(rows).await?;
        self.commit().await
    }
}
