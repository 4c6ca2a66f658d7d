//! The port to the database: domain verbs, batch first, one params struct a verb. The only folder that knows SQL.
//!
//! A verb takes many items and answers each; it is one transaction. The flow of each writing verb is written once, in
//! [`flow`], over the row-level steps of [`tx`]: load and lock rows, let the core decide, write them back. A database is an
//! implementation of those steps. So the decisions are the same on every database, and what differs between databases is
//! visible in one place.
//!
//! The database's clock decides due, lease and expiry; it is read at the start of each writing transaction. Rows are
//! locked in the order of their ids, so batches of several nodes cannot lock each other out.
//!
//! Writing verbs answer with the [`Change`]s they made, after the commit; whoever called passes them on to the bus.

mod account_rows;
pub mod accounts;
pub mod beside;
pub mod checkup;
pub mod error;
pub mod files;
pub mod flow;
mod kept;
mod leases;
pub mod logs;
mod marks;
pub mod memory;
pub mod migrate;
pub mod nodes;
pub mod pack;
pub mod postgres;
mod relational;
mod retention;
mod retry;
pub mod row;
pub mod sql;
pub mod sqlite;
mod switch;
pub mod tx;
mod usual;
mod value;

pub use accounts::{Accounts, ApiKey, PasswordHash, Session, User, UserChange};
pub use error::StoreError;
pub use kept::FileRow;
pub use leases::{ClaimParams, Claimed, RenewLent, RenewParams, Renewed, Retries, Seats, SweepParams};
pub(crate) use marks::MARKS_AT_ONCE;
pub use marks::{Mark, MarkFilter, MarkParams};
pub use nodes::{NodeList, Nodes, Still};
pub use retention::{Aged, RetainParams};
pub use switch::{PackLoaded, PackRow, PackStanding, PackSwitch};
pub use usual::{Took, Usual};

use crate::core::change::Change;
use crate::core::child::ChildFault;
use crate::core::effect::{Effect, SqlValue};
use crate::core::ids::{FencingToken, Head, Revision, TaskId};
use crate::core::lifecycle::{Ask, ChunkEnd, Ended};
use crate::core::picture::Point;
use crate::core::principal::{Principal, Role};
use crate::core::progress::Reported;
use crate::core::retry::RetryPolicy;
use crate::core::submit::{Submit, Submitted};
use crate::core::task::{RecordRef, State, Task, TimelineEvent};
use crate::core::time::Millis;
use crate::core::transition::Refused;
use crate::core::view::Documents;
use async_trait::async_trait;
use retry::until_settled;
use std::collections::BTreeMap;

/// The longest search text, characters.
pub const TEXT_CHARS: usize = 100;

/// The answer of a verb.
pub type Result<T> = std::result::Result<T, StoreError>;

/// The answer of a writing verb with what it changed.
#[derive(Clone, Debug)]
pub struct Written<T> {
    /// The answer, per item where the verb takes many.
    pub answer: T,
    /// What watchers have to know, in commit order.
    pub changes: Vec<Change>,
}

/// The end of a chunk with everything that belongs into its commit.
#[derive(Clone, Debug)]
pub struct ChunkCommit {
    /// Which task.
    pub task: TaskId,
    /// The token the chunk was claimed with.
    pub token: FencingToken,
    /// The number of the chunk, from 1.
    pub chunk: i64,
    /// What the node reports.
    pub end: ChunkEnd,
    /// Statements on business tables, run under the token in the same commit.
    pub effects: Vec<Effect>,
    /// Children, each with this task as its parent; written in the same commit, all or none.
    pub children: Vec<Submit>,
    /// The action's retry rule.
    pub retry: RetryPolicy,
    /// Randomness for the jitter, in `[0, 1)`.
    pub unit_random: f64,
    /// Lease length if the node wants to run the next chunk at once, ms.
    pub continue_for_ms: Option<i64>,
}

/// What became of a reported chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct Committed {
    /// Applied, repeated or stale.
    pub ended: Ended,
    /// The task after it; absent when it is gone.
    pub task: Option<Task>,
    /// An effect was refused by the database: nothing of the chunk was applied, and the chunk counts as failed with this.
    pub effect_fault: Option<String>,
    /// A child was refused: nothing of the chunk was applied, and the chunk counts as failed with this.
    pub child_fault: Option<ChildFault>,
}

/// A progress report between commits.
#[derive(Clone, Debug)]
pub struct Report {
    /// Which task.
    pub task: TaskId,
    /// The token of the chunk that reports.
    pub token: FencingToken,
    /// The newest absolute values.
    pub report: Reported,
}

/// What a person asks of a task.
#[derive(Clone, Debug)]
pub struct AskParams {
    /// Who asks; a task that this one may not see does not exist.
    pub caller: Principal,
    /// Which task.
    pub task: TaskId,
    /// What.
    pub ask: Ask,
    /// Why.
    pub reason: Option<String>,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// Done or under way; `changed` = it was not so before.
    Done {
        /// The task after it.
        task: Box<Task>,
        /// Whether it changed anything.
        changed: bool,
    },
    /// Not in this state.
    Refused(Refused),
    /// A resume of a task whose idempotency key has passed to a newer one.
    Superseded,
    /// A resume of a child whose parent takes its children down: the next sweep would cancel it again.
    ParentStopped,
    /// Not for this caller.
    NotFound,
}

/// Which tasks of whom a reading verb may answer with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reach {
    /// The tenant; absent = all (platform).
    pub tenant: Option<String>,
    /// Only this owner's.
    pub owner: Option<String>,
}

impl Reach {
    /// All that a caller may see.
    #[must_use]
    pub fn of(who: &Principal) -> Self {
        Self {
            tenant: (who.role < Role::Platform).then(|| who.tenant.clone()),
            owner: (!who.is_operator()).then(|| who.user.clone()),
        }
    }

    /// All that a caller may see of a business record's tasks: where its type is `open` to the tenant, those of colleagues
    /// too, which are cut before they are shown.
    #[must_use]
    pub fn of_record(who: &Principal, open: bool) -> Self {
        let all = Self::of(who);
        if open { Self { owner: None, ..all } } else { all }
    }

    /// Whether a task lies inside.
    #[must_use]
    pub fn holds(&self, task: &Task) -> bool {
        self.tenant.as_ref().is_none_or(|t| *t == task.tenant) && self.owner.as_ref().is_none_or(|o| *o == task.owner)
    }

    /// Only the caller's own tasks.
    #[must_use]
    pub fn own(who: &Principal) -> Self {
        Self { tenant: Some(who.tenant.clone()), owner: Some(who.user.clone()) }
    }
}

/// By what a list is sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    /// When it was accepted.
    #[default]
    CreatedAt,
    /// When it last changed.
    UpdatedAt,
    /// When it ended; unfinished tasks count as the earliest.
    FinishedAt,
    /// Its priority.
    Priority,
}

/// A page of tasks.
#[derive(Clone, Debug, Default)]
pub struct ListParams {
    /// Whose.
    pub reach: Reach,
    /// Any of these; empty = all.
    pub states: Vec<State>,
    /// One action.
    pub action: Option<String>,
    /// One pack.
    pub pack: Option<String>,
    /// One owner, inside the reach.
    pub owner: Option<String>,
    /// One record.
    pub record: Option<RecordRef>,
    /// The children of one task.
    pub parent: Option<TaskId>,
    /// Part of the title, the action, the id or the record's id; literal, not a pattern; at most 100 characters.
    pub text: Option<String>,
    /// Accepted at or after.
    pub from: Option<Millis>,
    /// Accepted before.
    pub to: Option<Millis>,
    /// Archived items too.
    pub archived: bool,
    /// Sort column.
    pub sort: SortBy,
    /// Largest first.
    pub descending: bool,
    /// Go on after this (sort value, id).
    pub after: Option<(i64, TaskId)>,
    /// At most so many, ≤ 200.
    pub limit: usize,
}

/// A page and where to go on.
#[derive(Clone, Debug)]
pub struct Page<T, C> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page begins; absent at the end.
    pub next: Option<C>,
}

/// How many of an owner's tasks are in each state, and how many ends the owner has not seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By state; states without tasks are absent. Ended states only where all were asked for.
    pub by_state: BTreeMap<State, i64>,
    /// Ended, neither seen nor archived.
    pub unseen: i64,
    /// Failed, neither read nor archived.
    pub attention: i64,
}

/// The notification center of one owner, read in one consistent look.
#[derive(Clone, Debug)]
pub struct Center {
    /// The owner's head.
    pub head: Head,
    /// The unfinished, the unseen, then the newest; 100 in all, archived ones left out.
    pub tasks: Vec<Task>,
    /// There are more.
    pub more: bool,
    /// The counts that belong to it.
    pub counts: Counts,
    /// The database's now.
    pub as_of: Millis,
}

/// Where the change log of an owner stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnerHeads {
    /// That of the last commit.
    pub head: Head,
    /// That of the last commit that deleted tasks; 0 = there was none.
    pub deleted: Head,
}

/// What a kind of store can do beyond the common verbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Business tables live beside ours: effects and queries work.
    pub effects: bool,
    /// One process owns the database: at its start every lease is its own to take.
    pub single_process: bool,
}

/// The database, as the rest of taskbell sees it.
#[async_trait]
pub trait Store: Accounts + Nodes + Send + Sync {
    /// What this kind can do.
    fn capabilities(&self) -> Capabilities;
    /// Names this incarnation of the database; another one means that nothing a client remembers is worth anything.
    fn epoch(&self) -> &str;
    /// The database's now; also the cheapest proof that it answers.
    async fn now(&self) -> Result<Millis>;

    /// Whether the database takes writes: begins a transaction, would lock a task, and ends it.
    async fn ready(&self) -> Result<()> {
        self.begin().await?.load(&[TaskId::new()]).await.map(|_| ())
    }

    /// Begins a writing transaction. All writing verbs are built on it, and begin anew after a conflict; an adapter
    /// overrides a verb only where its flow has to differ.
    async fn begin(&self) -> Result<Box<dyn tx::Tx>>;
    /// Begins one that is likely to be written without another question: where questions take their time, it begins with the
    /// first one, and its now is reckoned from what the database has said a moment ago.
    async fn begin_late(&self) -> Result<Box<dyn tx::Tx>> {
        self.begin().await
    }

    /// Accepts clicks: insert or return, by key.
    async fn submit(&self, items: Vec<Submit>) -> Result<Written<Vec<Submitted>>> {
        let mut written = until_settled!(tries, {
            let tx = if tries.again() { self.begin().await? } else { self.begin_late().await? };
            flow::submit::submit(tx, &items, tries.again()).await
        })?;
        // A click may cancel who runs under its key.
        flow::family::follow(self, &mut written.changes).await;
        Ok(written)
    }
    /// The same after a fault that may have hidden a commit: what an earlier try made is the answer.
    async fn submit_again(&self, items: Vec<Submit>) -> Result<Written<Vec<Submitted>>> {
        let mut written = until_settled!(tries, flow::submit::submit(self.begin().await?, &items, true).await)?;
        flow::family::follow(self, &mut written.changes).await;
        Ok(written)
    }
    /// Takes chunks to run.
    async fn claim(&self, params: ClaimParams) -> Result<Written<Vec<Claimed>>> {
        until_settled!(tries, flow::claim::claim(self.begin().await?, &params).await)
    }
    /// Ends chunks.
    async fn commit(&self, items: Vec<ChunkCommit>) -> Result<Written<Vec<Committed>>> {
        let Written { answer: (committed, _), changes } = self.commit_and_claim(items, None).await?;
        Ok(Written { answer: committed, changes })
    }
    /// Ends chunks, and takes the next ones in the same commit, where it is asked for them.
    async fn commit_and_claim(
        &self,
        items: Vec<ChunkCommit>,
        next: Option<ClaimParams>,
    ) -> Result<Written<(Vec<Committed>, Vec<Claimed>)>> {
        let alone = next.is_none() && items.iter().all(|item| item.effects.is_empty() && item.children.is_empty());
        let mut written = until_settled!(tries, {
            let tx = if alone && !tries.again() { self.begin_late().await? } else { self.begin().await? };
            flow::chunk::commit(tx, &items, next.as_ref(), tries.again()).await
        })?;
        flow::family::follow(self, &mut written.changes).await;
        Ok(written)
    }
    /// Stores reports between commits; `false` = the writer is stale.
    async fn report(&self, items: Vec<Report>) -> Result<Written<Vec<bool>>> {
        until_settled!(tries, flow::chunk::report(self.begin().await?, &items).await)
    }
    /// Lengthens leases.
    async fn renew(&self, params: RenewParams) -> Result<Vec<Renewed>> {
        until_settled!(tries, flow::claim::renew(self.begin().await?, &params).await)
    }
    /// Lengthens leases of workers outside.
    async fn renew_lent(&self, params: RenewLent) -> Result<Vec<Renewed>> {
        until_settled!(tries, flow::claim::renew_lent(self.begin().await?, &params).await)
    }
    /// Takes what time has undone; answers how many rows it touched.
    async fn sweep(&self, params: SweepParams) -> Result<Written<usize>> {
        let mut written = until_settled!(tries, flow::sweep::sweep(self.begin().await?, &params, tries.again()).await)?;
        written.changes.extend(self.take_down(Vec::new()).await?.changes);
        flow::family::follow(self, &mut written.changes).await;
        Ok(written)
    }
    /// Cancels open children of parents that were stopped, of these or, when none is named, of all, as far as one
    /// transaction goes; answers how many it found. The verbs that stop a parent do it by themselves.
    async fn take_down(&self, parents: Vec<TaskId>) -> Result<Written<usize>> {
        until_settled!(tries, flow::family::take_down(self.begin().await?, &parents).await)
    }
    /// Takes what children have done over into their parents' progress.
    async fn roll_up(&self, parents: Vec<TaskId>) -> Result<Written<()>> {
        until_settled!(tries, flow::family::roll_up(self.begin().await?, &parents).await)
    }
    /// Cancel, pause, resume.
    async fn ask(&self, items: Vec<AskParams>) -> Result<Written<Vec<Asked>>> {
        let mut written = until_settled!(tries, flow::ask::ask(self.begin().await?, &items, tries.again()).await)?;
        flow::family::follow(self, &mut written.changes).await;
        Ok(written)
    }
    /// Deletes ended tasks with all that is theirs: `None` = does not exist for the caller, `Some(false)` = not ended, or its
    /// parent or a child of it has not.
    async fn delete(&self, caller: &Principal, ids: Vec<TaskId>) -> Result<Written<Vec<Option<bool>>>> {
        until_settled!(tries, flow::remove::delete(self.begin().await?, caller, &ids).await)
    }
    /// Takes tasks away whose time is over, with all that is theirs; answers which have gone.
    async fn retain(&self, params: RetainParams) -> Result<Written<Vec<TaskId>>> {
        until_settled!(tries, flow::remove::retain(self.begin().await?, &params).await)
    }
    /// Notes packs that a node has loaded; new ones are switched on.
    async fn register_packs(&self, loaded: Vec<PackLoaded>) -> Result<()> {
        until_settled!(tries, flow::packs::register(self.begin().await?, &loaded).await)
    }
    /// Switches a pack on or off: when this has answered, no chunk of a pack that is off starts any more. `None` = no such
    /// pack, else whether it was the other way before. Its tasks follow by [`Self::settle_packs`].
    async fn switch_pack(&self, params: PackSwitch) -> Result<Option<bool>> {
        until_settled!(tries, flow::packs::switch(self.begin().await?, &params).await)
    }
    /// Brings at most so many tasks to the switch of their pack; answers how many it found.
    async fn settle_packs(&self, limit: usize) -> Result<Written<usize>> {
        until_settled!(tries, flow::packs::settle(self.begin().await?, limit).await)
    }
    /// All packs that were ever loaded, with what waits for them in a tenant, or in all.
    async fn packs(&self, tenant: Option<String>) -> Result<Vec<PackStanding>> {
        until_settled!(tries, flow::packs::standing(self.begin().await?, tenant.as_deref()).await)
    }
    /// Sets marks; answers how many items it changed.
    async fn mark(&self, params: MarkParams) -> Result<Written<usize>> {
        until_settled!(tries, flow::ask::mark(self.begin().await?, &params).await)
    }

    /// Tasks by id, inside a reach; missing ones are left out.
    async fn tasks(&self, reach: &Reach, ids: &[TaskId]) -> Result<Vec<Task>>;
    /// The documents of a task.
    async fn documents(&self, id: TaskId) -> Result<Documents>;
    /// A page of tasks.
    async fn list(&self, params: ListParams) -> Result<Page<Task, (i64, TaskId)>>;
    /// How many tasks a mark would change, of those that it names by a filter; no more than it changes at once.
    async fn markable(&self, params: &MarkParams) -> Result<usize>;
    /// Counts by state; `ended` = of ended tasks too.
    async fn counts(&self, reach: &Reach, ended: bool) -> Result<Counts>;
    /// The notification center of an owner.
    async fn center(&self, tenant: &str, owner: &str) -> Result<Center>;
    /// The owner's head.
    async fn head(&self, tenant: &str, owner: &str) -> Result<Head>;
    /// The heads of many owners, in their order.
    async fn heads(&self, owners: &[(String, String)]) -> Result<Vec<OwnerHeads>>;
    /// Tasks of owners that changed after a head of theirs, at most `most` of each owner. What this version does not
    /// understand is left out, and so are deleted tasks: those are told by [`OwnerHeads::deleted`].
    async fn changed(&self, since: &[((String, String), Head)], most: usize) -> Result<Vec<Task>>;
    /// The revisions of tasks; missing ones are left out.
    async fn revisions(&self, ids: &[TaskId]) -> Result<BTreeMap<TaskId, Revision>>;
    /// The timeline of a task after a position.
    async fn events(&self, id: TaskId, after: i64, limit: usize) -> Result<Vec<TimelineEvent>>;
    /// The picture of a task: its points, in order, at most [`crate::core::picture::MOST`].
    async fn points(&self, id: TaskId) -> Result<Vec<Point>>;
    /// Places in the queue, from 1, of tasks that wait; those that do not wait, or stand far back, are left out.
    async fn positions(&self, ids: &[TaskId]) -> Result<BTreeMap<TaskId, i64>>;
    /// What the last 20 successes of an action took: (median duration ms, per unit).
    async fn usual(&self, tenant: &str, action: &str) -> Result<Usual>;
    /// Children of a task after an id, by id.
    async fn children(&self, parent: TaskId, after: Option<TaskId>, limit: usize) -> Result<Vec<Task>>;
    /// How many children of tasks are in each state; tasks without children are left out.
    async fn family_counts(&self, parents: &[TaskId]) -> Result<BTreeMap<TaskId, BTreeMap<State, i64>>>;
    /// The results of tasks that left one.
    async fn results(&self, ids: &[TaskId]) -> Result<BTreeMap<TaskId, serde_json::Value>>;
    /// Tasks after an id, in the order of ids, as retention sees them.
    async fn aged(&self, after: Option<TaskId>, limit: usize) -> Result<Vec<Aged>>;
    /// When the next waiting chunk is due, if one is.
    async fn next_due(&self) -> Result<Option<Millis>>;

    /// Notes that workers ask for actions now: (tenant, or `*` for all; action).
    async fn note_asks(&self, asks: &[(String, String)]) -> Result<()>;
    /// When workers last asked for these actions, by (tenant, or `*` for all; action).
    async fn last_asks(&self, actions: &[String]) -> Result<BTreeMap<(String, String), Millis>>;

    /// Keeps the facts of a file.
    async fn put_file(&self, file: FileRow) -> Result<()>;
    /// Keeps uploads of a tenant that a task uses at least until then; results, and ids that are no uploads, are passed over.
    async fn keep_uploads(&self, tenant: &str, ids: &[String], until: Millis) -> Result<()>;
    /// A file's facts.
    async fn file(&self, id: &str) -> Result<Option<FileRow>>;
    /// The result files of tasks.
    async fn artifacts(&self, tasks: &[TaskId]) -> Result<Vec<FileRow>>;
    /// Forgets files whose time is over, or whose task is gone; answers them, so that their bytes can go too.
    async fn expire_files(&self, limit: usize) -> Result<Vec<FileRow>>;

    /// Reads business tables: a static statement with bound values.
    async fn query(&self, sql: &'static str, values: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>>;
    /// Runs statements on business tables in one transaction, outside any task (set-up of the demo).
    async fn execute(&self, statements: Vec<Effect>) -> Result<()>;
}
