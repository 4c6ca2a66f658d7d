//! Scripts, run by real processes of the built binary.

mod answers;
mod budgets;
mod compat;
mod fetch;
mod field;
mod hostile;
mod nested;
mod pace;
mod pool;
mod surface;
mod twenty;
mod v8;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use taskbell::core::budget::Budgets;
use taskbell::core::chunk::{Failure, Outcome};
use taskbell::core::effect::SqlValue;
use taskbell::core::progress::Reported;
use taskbell::handler::script::{PoolSettings, ScriptHandler, ScriptPool};
use taskbell::handler::{ChunkContext, ChunkHost, ChunkIn, FileContent, Handler, HandlerError};
use tempfile::TempDir;
use tokio::sync::watch;

/// Memory of a chunk, where a test says nothing else, bytes.
const MEMORY: u64 = 64 * 1024 * 1024;

/// The budgets of an action that sets none, but for the statements, so that time is what ends an endless script.
const ROOMY: Budgets = Budgets {
    memory_bytes: MEMORY,
    statements: 1_000_000_000_000,
    stack_bytes: 1024 * 1024,
    nesting: 32,
    output_bytes: 8 * 1024 * 1024,
    log_bytes: 8 * 1024 * 1024,
};

/// A server's side that keeps what it is told.
struct Host {
    reports: Mutex<Vec<Reported>>,
    log: Mutex<Vec<(String, String)>>,
    stop: watch::Sender<bool>,
    lease: watch::Sender<bool>,
    files: BTreeMap<String, Bytes>,
}

impl Host {
    fn new() -> Self {
        Self {
            reports: Mutex::default(),
            log: Mutex::default(),
            stop: watch::Sender::new(false),
            lease: watch::Sender::new(true),
            files: BTreeMap::new(),
        }
    }

    fn with_file(mut self, id: &str, bytes: impl Into<Bytes>) -> Self {
        self.files.insert(id.into(), bytes.into());
        self
    }

    fn log(&self) -> Vec<(String, String)> {
        self.log.lock().unwrap().clone()
    }

    fn texts(&self) -> Vec<String> {
        self.log().into_iter().map(|(_, text)| text).collect()
    }

    fn reports(&self) -> Vec<Reported> {
        self.reports.lock().unwrap().clone()
    }

    /// The newest value of each count.
    fn counted(&self) -> (Option<i64>, Option<i64>) {
        self.reports().iter().fold((None, None), |(current, total), report| {
            (report.current.or(current), report.total.flatten().or(total))
        })
    }
}

#[async_trait]
impl ChunkHost for Host {
    fn report(&self, report: Reported) {
        self.reports.lock().unwrap().push(report);
    }

    fn log(&self, level: &str, text: String) {
        self.log.lock().unwrap().push((level.to_owned(), text));
    }

    fn stop_requested(&self) -> bool {
        *self.stop.borrow()
    }

    async fn stopped(&self) {
        let _ = self.stop.subscribe().wait_for(|stop| *stop).await;
    }

    async fn lease_is_current(&self) -> bool {
        *self.lease.borrow()
    }

    async fn open_file(&self, id: &str) -> Result<FileContent, HandlerError> {
        match self.files.get(id) {
            Some(bytes) => Ok(FileContent { name: format!("{id}.csv"), bytes: bytes.clone() }),
            None => Err(HandlerError::permanent("file-unknown", format!("there is no file {id}"))),
        }
    }

    async fn save_artifact(&self, _: &str, _: &str, _: Bytes) -> Result<String, HandlerError> {
        unreachable!("scripts keep no result files")
    }

    async fn query(&self, _: &'static str, _: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>, HandlerError> {
        unreachable!("scripts read no tables")
    }
}

/// A pool and a folder of scripts.
struct Rig {
    pool: Arc<ScriptPool>,
    folder: TempDir,
}

impl Rig {
    fn new(size: usize) -> Self {
        let exe = PathBuf::from(env!("CARGO_BIN_EXE_taskbell"));
        Self { pool: ScriptPool::start(PoolSettings { size, exe }), folder: TempDir::new().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn handler(&self, name: &str, text: &str, memory_bytes: u64, time: Duration) -> ScriptHandler {
        self.bounded(name, text, Budgets { memory_bytes, ..ROOMY }, time)
    }

    fn bounded(&self, name: &str, text: &str, budgets: Budgets, time: Duration) -> ScriptHandler {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        ScriptHandler::new(path, budgets, time, Arc::clone(&self.pool)).unwrap()
    }

    /// Runs one chunk of a script that is well within every limit.
    async fn run(&self, text: &str) -> Result<Outcome, HandlerError> {
        self.run_with(text, &Arc::new(Host::new()), chunk()).await
    }

    async fn run_with(&self, text: &str, host: &Arc<Host>, chunk: ChunkIn) -> Result<Outcome, HandlerError> {
        run(&self.handler("script.js", text, MEMORY, Duration::from_secs(60)), host, chunk).await
    }

    /// Runs one chunk of the body of a script, and how long it took.
    async fn body(&self, body: &str, memory_bytes: u64, time: Duration) -> (Result<Outcome, HandlerError>, Duration) {
        let handler = self.handler("script.js", &function(body), memory_bytes, time);
        let began = Instant::now();
        (run(&handler, &Arc::new(Host::new()), chunk()).await, began.elapsed())
    }
}

async fn run(handler: &ScriptHandler, host: &Arc<Host>, chunk: ChunkIn) -> Result<Outcome, HandlerError> {
    handler.run(&ChunkContext::new(chunk, Arc::clone(host) as Arc<dyn ChunkHost>)).await
}

fn function(body: &str) -> String {
    format!("export default async function (task, cx) {{ {body} }}")
}

/// A chunk of a task in its middle.
fn chunk() -> ChunkIn {
    serde_json::from_value(json!({
        "task": {
            "id": "01890a5d-ac96-774b-bcce-b302099a8057", "tenant": "default", "action": "import-customers",
            "title": "Import customers", "owner": "alice", "record": {"type": "customer-import", "id": "42"},
            "params": {"file": "f1", "nested": {"list": [1, 2]}}, "idempotencyKey": null,
            "createdAt": "2026-11-29T12:00:00.000Z", "schedule": null
        },
        "chunk": 13, "attempt": 2, "fencingToken": 3, "checkpoint": {"row": 1200},
        "progress": {"current": 1200, "total": 5000}, "deadline": "2026-11-29T18:00:00.000Z"
    }))
    .unwrap()
}

/// The result of a task that is done.
fn result(ended: Result<Outcome, HandlerError>) -> Value {
    match ended {
        Ok(Outcome::Done { result, .. }) => result.unwrap_or(Value::Null),
        other => panic!("not done: {other:?}"),
    }
}

/// The failure of a chunk that failed.
fn failure(ended: Result<Outcome, HandlerError>) -> Failure {
    match ended {
        Err(error) => error.into_failure().expect("it failed"),
        Ok(outcome) => panic!("no failure: {outcome:?}"),
    }
}

/// Waits until something is so.
async fn eventually(what: &str, so: impl Fn() -> bool) {
    crate::support::eventually(what, Duration::from_secs(30), async || so().then_some(())).await;
}
