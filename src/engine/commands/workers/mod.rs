//! Workers outside: programs in any language that fetch chunks over the API, run them, and bring the outcomes back. A part of
//! the command handle, so that a node without an engine can serve them as well.
//!
//! A worker's lease is in the database like a node's, under the holder `worker:NAME`, and is guarded by the same token. It
//! never lasts longer than the time of its chunk (`chunk_until` of the task), for nobody here can stop a worker. So the sweep
//! tells two ends apart: a lease that ran out before that time was a worker's that vanished, and is lost like a node's; one
//! that was renewed up to it is a worker's that is too slow, and the chunk counts as a failed attempt with `timeout`.
//!
//! Every answer names for each item `ok`, `stop` (go on, but come to an end) or `stale`. A task that is not the caller's, that
//! never was, or whose chunks no worker runs is `stale` like one that was lost: nothing tells them apart.
//!
//! Named failure cases: an answer that could not be delivered gives its chunks back ([`lent`]); a commit whose answer was lost
//! is sent again, and is applied once; a worker that vanishes is swept; a server that is killed leaves the leases of workers
//! as they are, and they go on with it when it is back.

mod desk;
mod lent;

pub use desk::{Ask, Permit};
pub use lent::{ChunkOut, Lent};

use crate::bus::LocalBus;
use crate::core::action::{Action, HandlerRef};
use crate::core::chunk::Outcome;
use crate::core::ids::{FencingToken, TaskId};
use crate::core::lifecycle::{ChunkEnd, Ended};
use crate::core::progress::{FieldFault, Reported};
use crate::core::resolve::Resolver;
use crate::core::task::{State, Task};
use crate::core::time::{Clock, Rng};
use crate::core::view::Catalogue;
use crate::engine::group::{Group, Turn};
use crate::engine::logbook::Logbook;
use crate::engine::loops::sweep_every;
use crate::engine::measure::{self, Stopwatch};
use crate::engine::reports::ReportBook;
use crate::engine::standstill::end_still;
use crate::engine::statistics::analyze_grown;
use crate::engine::{SWEEP_AT_ONCE, exchange, retries};
use crate::store::logs::Level;
use crate::store::{ChunkCommit, Committed, Reach, RenewLent, Renewed, Result, Store, StoreError, SweepParams};
use desk::Desk;
use futures_util::future::join_all;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// The numbers.
#[derive(Clone, Copy, Debug)]
pub struct WorkerSettings {
    /// How long a lease lasts without renewal, ms; never longer than the time of the chunk.
    pub lease_ms: i64,
    /// How often due chunks are looked for without a wake-up while somebody waits, ms.
    pub poll_ms: u64,
    /// How long a chunk may take to answer a cancel, ms.
    pub cancel_grace_ms: i64,
    /// How often this node sweeps, ms; absent where its engine does.
    pub sweep_ms: Option<u64>,
}

/// What the handle is made of.
pub struct WorkerParts {
    /// The database.
    pub store: Arc<dyn Store>,
    /// The node's bus.
    pub bus: LocalBus,
    /// Rung when there may be something to claim for the engine.
    pub wake: Arc<Notify>,
    /// Task logs.
    pub logbook: Logbook,
    /// The declared actions.
    pub catalogue: Arc<Catalogue>,
    /// Checks what workers submit.
    pub resolver: Arc<Resolver>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub rng: Arc<dyn Rng>,
    /// The numbers.
    pub settings: WorkerSettings,
    /// Ends what waits: the node goes down.
    pub closing: CancellationToken,
}

/// What both the handle and its loops work with.
struct Shared {
    parts: WorkerParts,
    reports: Arc<ReportBook>,
    commits: Group<ChunkCommit, Committed>,
    desk: Desk,
}

/// What workers may ask of the engine. Cheap to clone; its loops end with the last clone.
#[derive(Clone)]
pub struct Workers {
    shared: Arc<Shared>,
    _loops: Arc<Vec<AbortOnDropHandle<()>>>,
}

/// A chunk that a worker says it holds.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// The task.
    pub task: TaskId,
    /// The token that came with it.
    pub token: FencingToken,
    /// Its number, where it was said.
    pub chunk: Option<i64>,
}

/// What became of the outcome of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is committed; `again` = it had been before.
    Committed {
        /// Whether this was a repetition.
        again: bool,
    },
    /// The chunk is not this worker's any more. Nothing changed.
    Stale,
}

/// A report of progress, or what is wrong with it.
pub type Read = std::result::Result<Reported, Vec<FieldFault>>;

impl Workers {
    /// Starts the handle and its loops. Needs a tokio runtime.
    #[must_use]
    pub fn start(parts: WorkerParts) -> Self {
        let (store, bus, wake) = (parts.store.clone(), parts.bus.clone(), parts.wake.clone());
        let reports = Arc::new(ReportBook::new(store.clone(), bus.clone(), wake.clone(), parts.clock.clone()));
        let commits = Group::start(Turn::on(store.as_ref()), move |items, _again| {
            let (store, bus, wake) = (store.clone(), bus.clone(), wake.clone());
            async move {
                let (watch, count) = (Stopwatch::start(), items.len());
                watch.committed("chunks", count, store.commit(items).await, &bus, &wake)
            }
        });
        let shared = Arc::new(Shared { parts, reports, commits, desk: Desk::default() });
        let reports = shared.reports.clone();
        let mut loops = vec![
            AbortOnDropHandle::new(tokio::spawn(async move { reports.run().await })),
            AbortOnDropHandle::new(tokio::spawn(desk::run(shared.clone()))),
        ];
        if let Some(every) = shared.parts.settings.sweep_ms {
            loops.push(AbortOnDropHandle::new(tokio::spawn(sweep(shared.clone(), Duration::from_millis(every)))));
        }
        Self { shared, _loops: Arc::new(loops) }
    }

    /// Whether workers run the chunks of an action.
    #[must_use]
    pub fn run(&self, action: &str) -> bool {
        self.shared.pulled(action).is_some()
    }

    /// A place to wait for chunks; none when too many polls of this key wait already.
    #[must_use]
    pub fn place(&self, key: &str) -> Option<Permit> {
        self.shared.desk.place(key)
    }

    /// Chunks for a worker: at once where some are due, else as soon as some are, and none when the wait is over. Chunks that
    /// are dropped before they are [`Lent::delivered`] are given back.
    ///
    /// # Errors
    /// When the database did not answer in all that time.
    pub async fn claim(&self, permit: Permit, ask: Ask) -> Result<Vec<Lent>> {
        desk::wait(&self.shared, permit, ask).await
    }

    /// Commits outcomes, each by itself; `tenant` is that of the worker, none for all tenants.
    ///
    /// # Errors
    /// Those of the store; what was committed all the same is answered as such when it comes again.
    pub async fn commit(&self, tenant: Option<&str>, items: Vec<(Held, Value)>) -> Result<Vec<Taken>> {
        let tasks = self.shared.tasks(tenant, items.iter().map(|(held, _)| held.task)).await?;
        let answers = items.into_iter().map(|(held, answer)| {
            // Tokens only grow: an older one than was just read is stale for good.
            let task = tasks.get(&held.task).filter(|task| task.fencing_token == held.token).cloned();
            if task.is_none() {
                measure::stale("chunk", lost(&tasks, held).into());
            }
            async move {
                match task {
                    Some(task) => self.shared.commit(&task, held, &answer).await,
                    None => Ok(Taken::Stale),
                }
            }
        });
        join_all(answers).await.into_iter().collect()
    }

    /// Takes reports of progress. They are stored at most every half second a task, and with the chunk's own commit.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn report(&self, tenant: Option<&str>, items: Vec<(Held, Read)>) -> Result<Vec<Renewed>> {
        let tasks = self.shared.tasks(tenant, items.iter().map(|(held, _)| held.task)).await?;
        let shared = &self.shared;
        let take = |(held, report): (Held, Read)| {
            let (answer, task) = shared.standing(&tasks, held);
            match (task, report) {
                (None, _) => measure::stale("report", lost(&tasks, held).into()),
                (Some(_), Ok(report)) => shared.reports.take(held.task, held.token, report),
                (Some(task), Err(faults)) => {
                    exchange::tell_faults(&shared.parts.logbook, &exchange::origin(task), &faults);
                }
            }
            answer
        };
        Ok(items.into_iter().map(take).collect())
    }

    /// Takes lines for the logs of tasks.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn log(&self, tenant: Option<&str>, items: Vec<(Held, Vec<(Level, String)>)>) -> Result<Vec<Renewed>> {
        let tasks = self.shared.tasks(tenant, items.iter().map(|(held, _)| held.task)).await?;
        let take = |(held, lines): (Held, Vec<(Level, String)>)| {
            let (answer, task) = self.shared.standing(&tasks, held);
            if let Some(origin) = task.map(exchange::origin) {
                for (level, text) in lines {
                    self.shared.parts.logbook.log(&origin, level, "handler", &text);
                }
            }
            answer
        };
        Ok(items.into_iter().map(take).collect())
    }

    /// Lengthens leases, and tells which tasks were asked to stop.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn renew(&self, tenant: Option<&str>, held: Vec<Held>) -> Result<Vec<Renewed>> {
        let names = held.iter().map(|held| (held.task, held.token)).collect();
        let lease_ms = self.shared.parts.settings.lease_ms;
        let params = RenewLent { tenant: tenant.map(str::to_owned), held: names, lease_ms };
        let answers = self.shared.parts.store.renew_lent(params).await?;
        let refused = held.iter().zip(&answers).filter(|(_, answer)| **answer == Renewed::Stale);
        let refused: Vec<Held> = refused.map(|(held, _)| *held).collect();
        if !refused.is_empty()
            && let Ok(tasks) = self.shared.tasks(tenant, refused.iter().map(|held| held.task)).await
        {
            measure::stale("renewal", refused.iter().filter(|held| lost(&tasks, **held)).count());
        }
        Ok(answers.into_iter().map(|answer| self.shared.with_stop(answer)).collect())
    }
}

impl Shared {
    /// An action, if workers run its chunks.
    fn pulled(&self, action: &str) -> Option<Arc<Action>> {
        self.parts.catalogue.actions.get(action).filter(|action| action.handler == HandlerRef::Pull)
    }

    /// Those of the tasks that this worker may know of: of its tenant, with an action that workers run.
    async fn tasks(&self, tenant: Option<&str>, ids: impl Iterator<Item = TaskId>) -> Result<BTreeMap<TaskId, Task>> {
        let reach = Reach { tenant: tenant.map(str::to_owned), owner: None };
        let ids: Vec<TaskId> = ids.collect::<BTreeSet<_>>().into_iter().collect();
        let tasks = self.parts.store.tasks(&reach, &ids).await?;
        Ok(tasks.into_iter().filter(|t| self.pulled(&t.action).is_some()).map(|t| (t.id, t)).collect())
    }

    /// How a chunk stands by what was just read, with its task where it is this worker's.
    fn standing<'a>(&self, tasks: &'a BTreeMap<TaskId, Task>, held: Held) -> (Renewed, Option<&'a Task>) {
        let current = |task: &&Task| {
            task.fencing_token == held.token
                && task.chunk_until.is_some()
                && held.chunk.is_none_or(|chunk| chunk == task.chunks + 1)
        };
        match tasks.get(&held.task).filter(current) {
            None => (Renewed::Stale, None),
            Some(task) if matches!(task.state, State::Pausing | State::Cancelling) => (Renewed::Stop, Some(task)),
            Some(task) => (self.with_stop(Renewed::Ok), Some(task)),
        }
    }

    /// A node that goes down asks for an end as well: on a file nobody else takes the outcome meanwhile.
    fn with_stop(&self, answer: Renewed) -> Renewed {
        if answer == Renewed::Ok && self.parts.closing.is_cancelled() { Renewed::Stop } else { answer }
    }

    async fn commit(&self, task: &Task, held: Held, answer: &Value) -> Result<Taken> {
        let chunk = held.chunk.unwrap_or(task.chunks + 1);
        let mut origin = exchange::origin(task);
        origin.chunk = chunk;
        let (outcome, faults) = match Outcome::parse(answer) {
            Ok(read) => read,
            Err(bad) => (exchange::bad_outcome(bad.to_string()), Vec::new()),
        };
        let (outcome, lines) = exchange::settled(outcome, || self.reports.withdraw(task.id, held.token));
        let (outcome, children) = exchange::with_children(&self.parts.resolver, task, outcome, Vec::new());
        let mut end = ChunkEnd::Answered(Box::new(outcome));
        let ending = ChunkCommit { children, ..self.ending(task, held.token, chunk, end.clone()) };
        let mut committed = self.commits.call(ending).await?;
        if let Some(fault) = &committed.child_fault {
            end = ChunkEnd::Answered(Box::new(Outcome::Fail(fault.failure())));
            committed = self.commits.call(self.ending(task, held.token, chunk, end.clone())).await?;
        }
        measure::chunk_ended(&end, &committed.ended);
        if matches!(committed.ended, Ended::Applied { .. }) {
            let logbook = &self.parts.logbook;
            exchange::tell_faults(logbook, &origin, &faults);
            for line in lines {
                logbook.log(&origin, Level::Info, "handler", &line);
            }
            exchange::tell_failure(logbook, &origin, &end, &committed);
        }
        Ok(match committed.ended {
            Ended::Applied { .. } => Taken::Committed { again: false },
            Ended::Repeated => Taken::Committed { again: true },
            Ended::Stale => Taken::Stale,
        })
    }

    /// The end of a chunk, for its commit. A worker's lease is never kept: the next chunk is claimed like any other.
    fn ending(&self, task: &Task, token: FencingToken, chunk: i64, end: ChunkEnd) -> ChunkCommit {
        ChunkCommit {
            task: task.id,
            token,
            chunk,
            effects: Vec::new(),
            children: Vec::new(),
            end,
            retry: self.pulled(&task.action).map(|action| action.retry).unwrap_or_default(),
            unit_random: self.parts.rng.unit(),
            continue_for_ms: None,
        }
    }
}

/// Whether a worker holds on to a chunk that somebody else has taken since. One that has merely ended, and a task that the
/// worker may not know of, are no loss.
fn lost(tasks: &BTreeMap<TaskId, Task>, held: Held) -> bool {
    tasks.get(&held.task).is_some_and(|task| held.token < task.fencing_token)
}

/// Takes what time has undone, where no engine of this node does.
async fn sweep(shared: Arc<Shared>, every: Duration) {
    let parts = &shared.parts;
    let params = || SweepParams {
        limit: SWEEP_AT_ONCE,
        all: false,
        cancel_grace_ms: parts.settings.cancel_grace_ms,
        retries: retries(&parts.catalogue, parts.rng.as_ref()),
    };
    let store = parts.store.as_ref();
    // Whoever has no engine shares the database with those who have one.
    let still = end_still(every, parts.settings.lease_ms, store);
    let sweeps = sweep_every(every, store, &parts.bus, &parts.wake, params);
    tokio::join!(sweeps, still, analyze_grown(every, store));
}

/// What a poll is told when nobody looked for it any more.
fn nobody_looked() -> StoreError {
    StoreError::Unavailable("nobody looked for chunks in time".into())
}
