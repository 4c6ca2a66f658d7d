//! A store in the hands of a test: verbs in short words, time that only the test moves, and the checks that follow every
//! test.
//!
//! Each writing verb goes through here, so that what it told its watchers can be held against the rows: revisions, heads
//! and tokens only grow, and the last thing that was told of a task is what its row says.

use super::invariants::assert_invariants;
use super::words::{ended, operator};
use crate::support::clock::StillClock;
use crate::support::postgres::{self, Database};
use serde_json::Value;
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use taskbell::core::change::Change;
use taskbell::core::chunk::Outcome;
use taskbell::core::ids::{Head, TaskId};
use taskbell::core::lifecycle::Ask;
use taskbell::core::principal::Principal;
use taskbell::core::progress::Reported;
use taskbell::core::retry::RetryPolicy;
use taskbell::core::submit::{Submit, Submitted};
use taskbell::core::task::{State, Task};
use taskbell::core::time::Millis;
use taskbell::store::memory::MemoryStore;
use taskbell::store::migrate::Mode;
use taskbell::store::postgres::{PostgresOptions, PostgresStore};
use taskbell::store::sqlite::{Durability, SqliteOptions, SqliteStore};
use taskbell::store::{
    AskParams, Asked, ChunkCommit, ClaimParams, Claimed, Committed, Reach, RenewParams, Renewed, Report, Store,
    SweepParams, Written,
};
use tempfile::TempDir;

/// Length of a lease in the suite, ms.
pub const LEASE_MS: i64 = 30_000;
/// How long a chunk may take to answer a cancel, ms.
pub const GRACE_MS: i64 = 60_000;
/// The actions that the suite's nodes can run.
pub const ACTIONS: [&str; 3] = ["import", "recalculate", "sync"];
/// The packs that they know; there is none until a test registers it.
pub const PACKS: [&str; 2] = ["stock", "till"];
/// The retry rule of all of them.
pub const RETRY: RetryPolicy = RetryPolicy { max_attempts: 3, base_ms: 5_000, cap_ms: 300_000 };

/// A store, its clock, and what it told so far.
pub struct Fixture {
    pub store: Arc<dyn Store>,
    clock: Arc<AtomicI64>,
    told: Mutex<Heard>,
    home: Home,
}

/// Where the rows are; goes after the store.
enum Home {
    Memory,
    Folder(TempDir),
    Database(Database),
}

#[derive(Default)]
struct Heard {
    tasks: BTreeMap<TaskId, Task>,
    heads: BTreeMap<(String, String), Head>,
}

impl Fixture {
    /// The reference model.
    pub fn memory() -> Self {
        let clock = StillClock::default();
        let hand = clock.hand();
        Self::over(Arc::new(MemoryStore::new(Arc::new(clock))), hand, Home::Memory)
    }

    fn over(store: Arc<dyn Store>, clock: Arc<AtomicI64>, home: Home) -> Self {
        Self { store, clock, told: Mutex::default(), home }
    }

    /// A file of its own.
    pub async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let hand = StillClock::default().hand();
        let options = SqliteOptions {
            durability: Durability::Normal,
            clock_shift_ms: hand.clone(),
            clock_held: true,
            ..SqliteOptions::new(folder.path().join("taskbell.db"))
        };
        let store = SqliteStore::open(options, Mode::Apply, &mut |_, _, _| {}).await.unwrap();
        Self::over(Arc::new(store), hand, Home::Folder(folder))
    }

    /// A database of its own on the server of the tests.
    pub async fn postgres() -> Self {
        let database = Database::migrated().await;
        let hand = StillClock::default().hand();
        let options =
            PostgresOptions { clock_shift_ms: hand.clone(), clock_held: true, ..postgres::options(&database.url()) };
        let store = PostgresStore::open(options, Mode::Check, &mut |_, _, _| {}).await.unwrap();
        Self::over(Arc::new(store), hand, Home::Database(database))
    }

    /// The file, of a store that has one.
    pub fn path(&self) -> PathBuf {
        match &self.home {
            Home::Folder(folder) => folder.path().join("taskbell.db"),
            _ => panic!("this store has no file"),
        }
    }

    /// The database, of a store that is on a server.
    pub fn database(&self) -> &Database {
        match &self.home {
            Home::Database(database) => database,
            _ => panic!("this store is on no server"),
        }
    }

    /// Runs statements on what the store has written, past it.
    pub async fn execute(&self, sql: &'static str) {
        match &self.home {
            Home::Memory => panic!("this store has no database"),
            Home::Folder(_) => {
                let options = SqliteConnectOptions::new().filename(self.path());
                let mut file = SqliteConnection::connect_with(&options).await.unwrap();
                sqlx::raw_sql(sql).execute(&mut file).await.unwrap();
            }
            Home::Database(database) => database.execute(sql).await,
        }
    }

    /// Another opening of what this one has opened, as by another process, with the clock of the machine.
    pub async fn opened_again(&self) -> Arc<dyn Store> {
        let mut told = |_: usize, _: usize, _: &str| {};
        match &self.home {
            Home::Memory => panic!("nobody else can open this store"),
            Home::Folder(_) => {
                Arc::new(SqliteStore::open(SqliteOptions::new(self.path()), Mode::Apply, &mut told).await.unwrap())
            }
            Home::Database(database) => {
                let options = postgres::options(&database.url());
                Arc::new(PostgresStore::open(options, Mode::Apply, &mut told).await.unwrap())
            }
        }
    }

    /// The database's now.
    pub fn now(&self) -> Millis {
        Millis(self.clock.load(Ordering::SeqCst))
    }

    /// Lets time pass.
    pub fn pass(&self, ms: i64) {
        self.clock.fetch_add(ms, Ordering::SeqCst);
    }

    /// Takes note of what a verb told its watchers, and gives its answer.
    pub fn heard<T>(&self, written: Written<T>) -> T {
        let mut told = self.told.lock().unwrap();
        for change in written.changes {
            let owner = change.owner();
            let owner = (owner.0.to_owned(), owner.1.to_owned());
            let head = told.heads.entry(owner).or_default();
            assert!(change.head() >= *head, "a head fell: {head:?}, then {change:?}");
            *head = change.head();
            match change {
                Change::Task(task) => {
                    if let Some(before) = told.tasks.insert(task.id, (*task).clone()) {
                        assert!(task.revision > before.revision, "a revision did not grow: {before:?}, then {task:?}");
                        assert!(task.head > before.head, "a head did not grow: {before:?}, then {task:?}");
                        assert!(task.fencing_token >= before.fencing_token, "a token fell: {before:?}, then {task:?}");
                    }
                }
                Change::Gone { id, revision, .. } => {
                    if let Some(before) = told.tasks.remove(&id) {
                        assert!(revision > before.revision, "the end of {id} has an old revision");
                    }
                }
            }
        }
        written.answer
    }

    /// Expects no more of tasks whose end was not told by way of here.
    pub fn forget(&self, tasks: &BTreeSet<TaskId>) {
        self.told.lock().unwrap().tasks.retain(|id, _| !tasks.contains(id));
    }

    /// What must hold after every test.
    pub async fn check(&self) {
        assert_invariants(self.store.as_ref()).await;
        let told = self.told.lock().unwrap().tasks.clone();
        let ids: Vec<TaskId> = told.keys().copied().collect();
        let rows = self.store.tasks(&Reach::default(), &ids).await.unwrap();
        assert_eq!(rows.len(), told.len(), "a task is gone and nobody was told");
        for row in rows {
            // A renewed lease is no change that anybody watches.
            let last = Task { lease_until: row.lease_until, ..told[&row.id].clone() };
            assert_eq!(last, row, "what was told last is not what the row says");
        }
    }

    pub async fn submit(&self, items: Vec<Submit>) -> Vec<Submitted> {
        self.heard(self.store.submit(items).await.unwrap())
    }

    /// One click.
    pub async fn click(&self, item: Submit) -> Submitted {
        self.submit(vec![item]).await.pop().unwrap()
    }

    /// One click that must become a task.
    pub async fn new_task(&self, item: Submit) -> TaskId {
        match self.click(item).await {
            Submitted::Created(task) => task.id,
            other => panic!("no new task: {other:?}"),
        }
    }

    pub async fn claim(&self, limit: usize) -> Vec<Claimed> {
        self.claim_on("n1", limit).await
    }

    pub async fn claim_on(&self, node: &str, limit: usize) -> Vec<Claimed> {
        self.heard(self.store.claim(claim_params(node, limit)).await.unwrap())
    }

    /// The one chunk that may be claimed now.
    pub async fn claim_one(&self) -> Claimed {
        self.claim(1).await.pop().expect("a chunk can be claimed")
    }

    /// Claims until a certain task is among the claimed; the others run on.
    pub async fn claim_task(&self, id: TaskId) -> Claimed {
        loop {
            let claimed = self.claim_one().await;
            if claimed.task.id == id {
                return claimed;
            }
        }
    }

    pub async fn commit(&self, item: ChunkCommit) -> Committed {
        self.heard(self.store.commit(vec![item]).await.unwrap()).pop().unwrap()
    }

    /// Ends a claimed chunk with an outcome.
    pub async fn end(&self, claimed: &Claimed, outcome: Outcome) -> Committed {
        self.commit(ended(claimed, outcome)).await
    }

    pub async fn ask(&self, id: TaskId, ask: Ask) -> Asked {
        self.ask_as(&operator(), id, ask).await
    }

    pub async fn ask_as(&self, caller: &Principal, task: TaskId, ask: Ask) -> Asked {
        let params = AskParams { caller: caller.clone(), task, ask, reason: Some("because".into()) };
        self.heard(self.store.ask(vec![params]).await.unwrap()).pop().unwrap()
    }

    /// Asks for something that must change the task.
    pub async fn must(&self, id: TaskId, ask: Ask) -> Task {
        match self.ask(id, ask).await {
            Asked::Done { task, changed: true } => *task,
            other => panic!("{ask:?} changed nothing: {other:?}"),
        }
    }

    pub async fn sweep(&self) -> usize {
        let params = SweepParams { limit: 500, all: false, cancel_grace_ms: GRACE_MS, retries: Default::default() };
        self.heard(self.store.sweep(params).await.unwrap())
    }

    pub async fn renew(&self, node: &str, claimed: &[&Claimed]) -> Vec<Renewed> {
        let held = claimed.iter().map(|c| (c.task.id, c.task.fencing_token)).collect();
        self.store.renew(RenewParams { node: node.into(), held, lease_ms: LEASE_MS, waits: false }).await.unwrap()
    }

    /// A report between commits; `false` = stale.
    pub async fn report(&self, claimed: &Claimed, report: Value) -> bool {
        let report = Report {
            task: claimed.task.id,
            token: claimed.task.fencing_token,
            report: Reported::parse(&report).unwrap(),
        };
        self.heard(self.store.report(vec![report]).await.unwrap()).pop().unwrap()
    }

    pub async fn get(&self, id: TaskId) -> Task {
        self.store.tasks(&Reach::default(), &[id]).await.unwrap().pop().expect("the task exists")
    }

    pub async fn state(&self, id: TaskId) -> State {
        self.get(id).await.state
    }

    /// Lets the leases of all running chunks end and takes them.
    pub async fn lose_leases(&self) {
        self.pass(LEASE_MS + 1);
        self.sweep().await;
    }

    /// The words in a task's timeline.
    pub async fn reasons(&self, id: TaskId) -> Vec<String> {
        let events = self.store.events(id, 0, 10_000).await.unwrap();
        events.into_iter().map(|e| e.reason).collect()
    }
}

pub fn claim_params(node: &str, limit: usize) -> ClaimParams {
    ClaimParams {
        node: node.into(),
        actions: ACTIONS.map(str::to_owned).to_vec(),
        packs: PACKS.map(str::to_owned).to_vec(),
        tenants: Vec::new(),
        limit,
        lease_ms: LEASE_MS,
        after_tenant: None,
        many_wait: false,
        seats: None,
    }
}

/// Runs each body on each kind of store, and checks the invariants after it.
macro_rules! store_suite {
    ($($name:ident)*) => {
        crate::store::fixture::suite_on! { on_memory: crate::store::fixture::Fixture::memory(); $($name)* }
        crate::store::fixture::database_suite! { $($name)* }
    };
}
pub(crate) use store_suite;

/// The same for bodies that need a database: business tables, or a second process.
macro_rules! database_suite {
    ($($name:ident)*) => {
        crate::store::fixture::suite_on! { on_sqlite: crate::store::fixture::Fixture::sqlite().await; $($name)* }
        crate::store::fixture::suite_on! { on_postgres: crate::store::fixture::Fixture::postgres().await; $($name)* }
    };
}
pub(crate) use database_suite;

macro_rules! suite_on {
    ($module:ident: $open:expr; $($name:ident)*) => {
        mod $module {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let fixture = $open;
                super::$name(&fixture).await;
                fixture.check().await;
            })*
        }
    };
}
pub(crate) use suite_on;
