//! The demo's company on a database of its own, and a node that is moved by hand: one chunk at a time, with or without
//! its commit.

use crate::support::ground::Ground;
use async_trait::async_trait;
use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use taskbell::config::Settings;
use taskbell::core::action::HandlerRef;
use taskbell::core::chunk::{Failure, Outcome};
use taskbell::core::effect::SqlValue;
use taskbell::core::ids::TaskId;
use taskbell::core::lifecycle::{Ask, ChunkEnd};
use taskbell::core::principal::{Principal, Role};
use taskbell::core::progress::Reported;
use taskbell::core::retry::RetryPolicy;
use taskbell::core::submit::Submit;
use taskbell::core::task::{ErrorKind, State, Task};
use taskbell::demo;
use taskbell::handler::script::{PoolSettings, ScriptHandler, ScriptPool};
use taskbell::handler::{ChunkContext, ChunkHost, ChunkIn, Counted, FileContent, Handler, HandlerError, TaskInfo};
use taskbell::store::{AskParams, Asked, ChunkCommit, ClaimParams, Committed, Reach, Store, SweepParams};

/// The action that is a script.
const SCRIPT: &str = "clean-contacts";

/// A chunk that has answered and is not committed yet.
pub struct Answered {
    pub outcome: Outcome,
    commit: ChunkCommit,
}

impl Answered {
    /// The same chunk with its statements, but failed at its very end.
    pub fn but_failed(mut self) -> Self {
        self.outcome = Outcome::Fail(Failure::new(ErrorKind::Handler, "late", "Too late."));
        self.commit.end = ChunkEnd::Answered(Box::new(self.outcome.clone()));
        self
    }
}

pub struct Company {
    pub store: Arc<dyn Store>,
    files: Arc<Files>,
    clock_shift_ms: Arc<AtomicI64>,
    script: OnceLock<Arc<dyn Handler>>,
    ground: Ground,
}

/// What was uploaded, and what handlers kept.
#[derive(Default)]
struct Files {
    uploads: Mutex<BTreeMap<String, Bytes>>,
    artifacts: Mutex<Vec<(String, String)>>,
}

struct Host {
    store: Arc<dyn Store>,
    files: Arc<Files>,
}

#[async_trait]
impl ChunkHost for Host {
    fn report(&self, _: Reported) {}

    fn log(&self, _: &str, _: String) {}

    fn stop_requested(&self) -> bool {
        false
    }

    async fn stopped(&self) {
        std::future::pending().await
    }

    async fn lease_is_current(&self) -> bool {
        true
    }

    async fn open_file(&self, id: &str) -> Result<FileContent, HandlerError> {
        let bytes = self.files.uploads.lock().unwrap()[id].clone();
        Ok(FileContent { name: "upload.csv".into(), bytes })
    }

    async fn save_artifact(&self, name: &str, _: &str, bytes: Bytes) -> Result<String, HandlerError> {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        self.files.artifacts.lock().unwrap().push((name.to_owned(), text));
        Ok("artifact-1".into())
    }

    async fn query(&self, sql: &'static str, values: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>, HandlerError> {
        self.store.query(sql, values).await.map_err(|error| HandlerError::retry("query", error.to_string()))
    }
}

fn user() -> Principal {
    Principal { tenant: "default".into(), user: "user".into(), role: Role::User, scopes: Vec::new() }
}

impl Company {
    pub async fn open() -> Self {
        let (ground, clock_shift_ms) = (Ground::usual().await, Arc::new(AtomicI64::new(0)));
        let store = ground.open_shifted(clock_shift_ms.clone()).await;
        demo::prepare(store.as_ref()).await.unwrap();
        Self { store, files: Arc::default(), clock_shift_ms, script: OnceLock::new(), ground }
    }

    pub fn upload(&self, id: &str, text: impl Into<Bytes>) {
        self.files.uploads.lock().unwrap().insert(id.to_owned(), text.into());
    }

    pub fn artifacts(&self) -> Vec<(String, String)> {
        self.files.artifacts.lock().unwrap().clone()
    }

    pub async fn submit(&self, action: &str, params: Value) -> TaskId {
        let submit = Submit::new(user(), action, params);
        let id = submit.id;
        self.store.submit(vec![submit]).await.unwrap();
        id
    }

    /// The shipped script, run by a process of the built binary.
    fn script(&self) -> Arc<dyn Handler> {
        let start = || -> Arc<dyn Handler> {
            let mut actions = Settings::load(None, std::iter::empty(), true).unwrap().settings.declared();
            actions.retain(|action| action.key == SCRIPT);
            let path = self.ground.path().join("data/demo/clean-contacts.js");
            actions[0].handler = HandlerRef::Script(path.clone());
            demo::unpack(&actions).unwrap();
            let exe = PathBuf::from(env!("CARGO_BIN_EXE_taskbell"));
            let pool = ScriptPool::start(PoolSettings { size: 1, exe });
            let limit = Duration::from_millis(actions[0].chunk_timeout_ms.unsigned_abs());
            Arc::new(ScriptHandler::new(path, actions[0].budgets, limit, pool).unwrap())
        };
        self.script.get_or_init(start).clone()
    }

    /// Claims and runs the one chunk that is due, without its commit; `None` when nothing is due.
    pub async fn run_chunk(&self) -> Option<Answered> {
        let natives = demo::natives();
        let claim = ClaimParams {
            node: "n".into(),
            actions: natives.names().into_iter().chain([SCRIPT.to_owned()]).collect(),
            packs: Vec::new(),
            tenants: Vec::new(),
            limit: 1,
            lease_ms: 30_000,
            after_tenant: None,
            many_wait: false,
            seats: None,
        };
        let claimed = self.store.claim(claim).await.unwrap().answer.pop()?;
        let (task, documents) = (claimed.task, claimed.documents);
        let chunk = ChunkIn {
            task: TaskInfo {
                id: task.id,
                tenant: task.tenant.clone(),
                action: task.action.clone(),
                title: task.action.clone(),
                owner: task.owner.clone(),
                record: None,
                params: documents.params,
                idempotency_key: None,
                created_at: task.created_at,
                schedule: None,
            },
            chunk: task.chunks + 1,
            attempt: task.attempt(),
            fencing_token: task.fencing_token,
            checkpoint: documents.checkpoint,
            last_error: task.error.as_ref().map(|error| error.code.clone()),
            progress: Counted { current: task.progress.current, total: task.progress.total },
            deadline: None,
        };
        let number = chunk.chunk;
        let host = Host { store: self.store.clone(), files: self.files.clone() };
        let cx = ChunkContext::new(chunk, Arc::new(host));
        let handler = if task.action == SCRIPT { self.script() } else { natives.get(&task.action).unwrap() };
        let outcome = match handler.run(&cx).await {
            Ok(outcome) => outcome,
            Err(error) => Outcome::Fail(error.into_failure().expect("no handler of the demo hands back")),
        };
        outcome.check().unwrap();
        let commit = ChunkCommit {
            task: task.id,
            token: task.fencing_token,
            chunk: number,
            end: ChunkEnd::Answered(Box::new(outcome.clone())),
            effects: cx.take_effects(),
            children: Vec::new(),
            retry: RetryPolicy::default(),
            unit_random: 0.5,
            continue_for_ms: None,
        };
        Some(Answered { outcome, commit })
    }

    /// Commits what a chunk answered; may be done twice.
    pub async fn commit(&self, answered: &Answered) -> Committed {
        let committed = self.store.commit(vec![answered.commit.clone()]).await.unwrap().answer.remove(0);
        assert_eq!(committed.effect_fault, None);
        committed
    }

    /// Lets time pass, in the database.
    pub fn wait(&self, ms: i64) {
        self.clock_shift_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// What happens when the process is killed and starts again.
    pub async fn kill(&self) {
        let sweep = SweepParams { limit: 100, all: true, cancel_grace_ms: 60_000, retries: Default::default() };
        self.store.sweep(sweep).await.unwrap();
    }

    /// Runs chunks until the task ends. Of each three chunks one is killed before its commit and one is committed twice.
    /// Checks on the way that progress never falls and never says that all is done before it is.
    pub async fn run_to_the_end(&self, id: TaskId) -> Task {
        let mut before = 0;
        for round in 0.. {
            let Some(answered) = self.run_chunk().await else { break };
            if round % 3 == 1 {
                self.kill().await;
                continue;
            }
            self.commit(&answered).await;
            if round % 3 == 2 {
                self.commit(&answered).await;
            }
            let task = self.task(id).await;
            assert!(task.progress.current >= before, "{} after {before}", task.progress.current);
            before = task.progress.current;
        }
        self.task(id).await
    }

    pub async fn resume(&self, id: TaskId) {
        self.ask(id, Ask::Resume).await;
    }

    /// Ends a task for good, also while a chunk is under way.
    pub async fn cancel(&self, id: TaskId) {
        self.kill().await;
        self.ask(id, Ask::Cancel).await;
    }

    async fn ask(&self, task: TaskId, ask: Ask) {
        let params = AskParams { caller: user(), task, ask, reason: None };
        let asked = self.store.ask(vec![params]).await.unwrap().answer.remove(0);
        assert!(matches!(asked, Asked::Done { changed: true, .. }), "{asked:?}");
    }

    pub async fn task(&self, id: TaskId) -> Task {
        self.store.tasks(&Reach::default(), &[id]).await.unwrap().remove(0)
    }

    pub async fn result(&self, id: TaskId) -> Value {
        assert_eq!(self.task(id).await.state, State::Succeeded);
        self.store.documents(id).await.unwrap().result.unwrap()
    }

    /// The whole numbers of the one row that a statement answers with.
    pub async fn numbers(&self, sql: &'static str) -> Vec<i64> {
        let rows = self.store.query(sql, Vec::new()).await.unwrap();
        assert_eq!(rows.len(), 1);
        rows[0]
            .iter()
            .map(|value| match value {
                SqlValue::Int(n) => *n,
                SqlValue::Null => 0,
                other => panic!("{other:?} is no whole number"),
            })
            .collect()
    }
}
