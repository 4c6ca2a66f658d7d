//! A node in this process over a database, with handlers that are closures: for what one node has to do.

use super::ground::Ground;
use async_trait::async_trait;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use taskbell::app::clock::{SystemClock, SystemRng};
use taskbell::bus::LocalBus;
use taskbell::core::action::{Action, Actions, CancelRight, HandlerRef, Localized};
use taskbell::core::budget::Budgets;
use taskbell::core::chunk::Outcome;
use taskbell::core::ids::TaskId;
use taskbell::core::principal::{Principal, Role, Scope};
use taskbell::core::redact::Redactor;
use taskbell::core::resolve::Resolver;
use taskbell::core::retention::Keep;
use taskbell::core::retry::RetryPolicy;
use taskbell::core::submit::{Submit, Submitted};
use taskbell::core::task::{State, Task};
use taskbell::core::view::Catalogue;
use taskbell::engine::commands::Commands;
use taskbell::engine::commands::workers::{WorkerParts, WorkerSettings, Workers};
use taskbell::engine::logbook::Logbook;
use taskbell::engine::{Engine, EngineParts, EngineSettings};
use taskbell::handler::{ChunkContext, Handler, HandlerError, Registry};
use taskbell::store::files::Files;
use taskbell::store::logs::{LogLimits, MemoryLogs};
use taskbell::store::{Reach, Store};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How long a test waits for something that takes well under a second.
pub const SOON: Duration = Duration::from_secs(10);

/// What a closure answers for a chunk.
pub type Answer = Result<Outcome, HandlerError>;

struct Closure<F>(F);

#[async_trait]
impl<F, Fut> Handler for Closure<F>
where
    F: Fn(Arc<Call>) -> Fut + Send + Sync,
    Fut: Future<Output = Answer> + Send,
{
    async fn run(&self, cx: &ChunkContext) -> Answer {
        // The closure's future may not borrow the context, so it gets what it needs by a pointer that outlives the call.
        let (effects, call) = Call::new(cx);
        let answer = (self.0)(call.clone()).await;
        for (sql, values) in effects.lock().unwrap().drain(..) {
            cx.execute(sql, values);
        }
        answer
    }
}

type Effects = Arc<std::sync::Mutex<Vec<(&'static str, Vec<taskbell::core::effect::SqlValue>)>>>;

/// What a closure sees of its chunk.
pub struct Call {
    pub chunk: i64,
    pub attempt: u32,
    pub checkpoint: Option<serde_json::Value>,
    pub params: serde_json::Value,
    effects: Effects,
}

impl Call {
    fn new(cx: &ChunkContext) -> (Effects, Arc<Self>) {
        let effects = Effects::default();
        let input = cx.chunk_in();
        let call = Self {
            chunk: input.chunk,
            attempt: input.attempt,
            checkpoint: input.checkpoint.clone(),
            params: input.task.params.clone(),
            effects: effects.clone(),
        };
        (effects, Arc::new(call))
    }

    /// Puts a statement into the chunk's commit.
    pub fn execute(&self, sql: &'static str, values: Vec<taskbell::core::effect::SqlValue>) {
        self.effects.lock().unwrap().push((sql, values));
    }
}

/// A handler that is a closure.
pub fn closure<F, Fut>(run: F) -> Arc<dyn Handler>
where
    F: Fn(Arc<Call>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Answer> + Send + 'static,
{
    Arc::new(Closure(run))
}

/// An answer as a handler would write it in JSON.
pub fn answer(json: serde_json::Value) -> Answer {
    Ok(Outcome::parse(&json).unwrap().0)
}

/// An action with rules that make tests short.
pub fn action(key: &str) -> Action {
    Action {
        key: key.to_owned(),
        title: Localized::plain(key),
        group: Localized::plain("test"),
        description: Localized::default(),
        handler: HandlerRef::Native(key.to_owned()),
        pack: None,
        params: serde_json::json!({}),
        record: None,
        roles: vec![Role::User],
        idempotency: None,
        concurrency: None,
        retry: RetryPolicy { max_attempts: 3, base_ms: 50, cap_ms: 200 },
        chunk_timeout_ms: 5_000,
        timeout_ms: None,
        budgets: Budgets::default(),
        undo_window_ms: 0,
        cancel: CancelRight::Owner,
    }
}

/// The user that tests click as.
pub fn alice() -> Principal {
    Principal {
        tenant: "default".into(),
        user: "alice".into(),
        role: Role::User,
        scopes: vec![Scope::TasksRead, Scope::TasksWrite],
    }
}

/// An operator of the same tenant.
pub fn operator() -> Principal {
    Principal { user: "olga".into(), role: Role::Operator, ..alice() }
}

/// A click of alice.
pub fn click(action: &str, params: serde_json::Value) -> Submit {
    Submit::new(alice(), action, params)
}

/// A node over a database.
pub struct Node {
    pub store: Arc<dyn Store>,
    pub logs: Arc<MemoryLogs>,
    pub files: Files,
    pub bus: LocalBus,
    pub catalogue: Arc<Catalogue>,
    pub commands: Commands,
    pub workers: Workers,
    pub engine: Engine,
}

/// A day, ms.
const DAY_MS: i64 = 86_400_000;

/// Settings that make tests short.
pub fn short_settings() -> EngineSettings {
    EngineSettings {
        node: "test-node".into(),
        parallelism: 4,
        tenants: Vec::new(),
        lease_ms: 3_000,
        heartbeat_ms: 1_000,
        poll_ms: 200,
        sweep_ms: 200,
        drain_grace_ms: 1_000,
        cancel_grace_ms: 1_000,
        keep: Keep { succeeded_ms: DAY_MS, failed_ms: DAY_MS, cancelled_ms: DAY_MS, logs_ms: DAY_MS },
        retain_ms: 200,
    }
}

impl Node {
    /// Starts a node with actions and their handlers.
    pub async fn start(ground: &Ground, handlers: Vec<(Action, Arc<dyn Handler>)>) -> Self {
        Self::start_with(ground, handlers, short_settings()).await
    }

    /// The same with settings.
    pub async fn start_with(
        ground: &Ground,
        handlers: Vec<(Action, Arc<dyn Handler>)>,
        settings: EngineSettings,
    ) -> Self {
        Self::start_on(ground.open().await, LocalBus::default(), ground.path(), handlers, settings).await
    }

    /// A node over a store that is open, heard on a bus, with its files under a folder.
    pub async fn start_on(
        store: Arc<dyn Store>,
        bus: LocalBus,
        folder: &Path,
        handlers: Vec<(Action, Arc<dyn Handler>)>,
        settings: EngineSettings,
    ) -> Self {
        let wake = Arc::new(Notify::new());
        let clock = Arc::new(SystemClock::default());
        let logs = Arc::new(MemoryLogs::new(LogLimits::default()));
        let actions: Vec<Action> = handlers.iter().map(|(a, _)| a.clone()).collect();
        let own = handlers.into_iter().filter(|(a, _)| a.handler != HandlerRef::Pull);
        let registry = Registry::new(own.map(|(a, h)| (a.key, h)));
        let commands = Commands::new(store.clone(), bus.clone(), wake.clone());
        let files = Files::in_folder(&folder.join("files"), store.clone()).unwrap();
        let catalogue = Arc::new(Catalogue {
            actions: Actions::new(actions),
            open_records: HashSet::from(["shared".to_owned()]),
            ..Catalogue::default()
        });
        let resolver = Arc::new(Resolver::new(catalogue.clone()).unwrap());
        let logbook = Logbook::start(logs.clone(), bus.clone(), clock.clone(), Redactor::new([]));
        let workers = Workers::start(WorkerParts {
            store: store.clone(),
            bus: bus.clone(),
            wake: wake.clone(),
            logbook: logbook.clone(),
            catalogue: catalogue.clone(),
            resolver: resolver.clone(),
            clock: clock.clone(),
            rng: Arc::new(SystemRng),
            settings: WorkerSettings {
                lease_ms: settings.lease_ms,
                poll_ms: settings.poll_ms,
                cancel_grace_ms: settings.cancel_grace_ms,
                sweep_ms: None,
            },
            closing: CancellationToken::new(),
        });
        let engine = Engine::start(EngineParts {
            store: store.clone(),
            files: files.clone(),
            logbook,
            bus: bus.clone(),
            wake,
            registry,
            catalogue: catalogue.clone(),
            resolver: resolver.clone(),
            clock,
            rng: Arc::new(SystemRng),
            settings,
        })
        .await
        .unwrap();
        Self { store, logs, files, bus, catalogue, commands, workers, engine }
    }

    /// Clicks; the task's id.
    pub async fn click(&self, submit: Submit) -> TaskId {
        match self.commands.submit(submit).await.unwrap() {
            Submitted::Created(task) => task.id,
            other => panic!("not a new task: {other:?}"),
        }
    }

    /// A task as it is now.
    pub async fn task(&self, id: TaskId) -> Task {
        self.store.tasks(&Reach::default(), &[id]).await.unwrap().pop().expect("the task exists")
    }

    /// Waits until a task is in a state.
    pub async fn until(&self, id: TaskId, state: State) -> Task {
        let what = format!("task {id} is {state:?}");
        super::eventually(&what, SOON, async || Some(self.task(id).await).filter(|t| t.state == state)).await
    }
}
