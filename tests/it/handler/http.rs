//! Handlers that are endpoints of another application: what is sent, what each answer means, what may be called back.

mod answers;
mod callbacks;
mod calls;

use crate::support::played::Target;
use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use taskbell::app::clock::SystemClock;
use taskbell::core::chunk::{Failure, Outcome};
use taskbell::core::effect::SqlValue;
use taskbell::core::progress::Reported;
use taskbell::core::signing::SigningKeys;
use taskbell::handler::http::HttpHandler;
use taskbell::handler::{ChunkContext, ChunkHost, ChunkIn, FileContent, Handler, HandlerError};
use taskbell::outbound::{AllowList, Outbound, SystemResolver};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEWER: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
/// Longer than any of these calls takes.
const AMPLE: Duration = Duration::from_secs(20);

/// A server's side that keeps the log.
#[derive(Default)]
struct Host(Mutex<Vec<String>>);

#[async_trait]
impl ChunkHost for Host {
    fn report(&self, _: Reported) {}

    fn log(&self, level: &str, text: String) {
        self.0.lock().unwrap().push(format!("{level} {text}"));
    }

    fn stop_requested(&self) -> bool {
        false
    }

    async fn stopped(&self) {
        std::future::pending().await
    }

    async fn lease_is_current(&self) -> bool {
        true
    }

    async fn open_file(&self, _: &str) -> Result<FileContent, HandlerError> {
        unreachable!("the application reads files by the callback")
    }

    async fn save_artifact(&self, _: &str, _: &str, _: Bytes) -> Result<String, HandlerError> {
        unreachable!("the application keeps files by the callback")
    }

    async fn query(&self, _: &'static str, _: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>, HandlerError> {
        unreachable!("the application reads its own tables")
    }
}

fn chunk(attempt: u32, checkpoint: Value) -> ChunkIn {
    serde_json::from_value(json!({
        "task": {"id": "01932b6e-7a00-7000-8000-000000000001", "tenant": "default", "action": "import", "title": "Import",
            "owner": "alice", "record": null, "params": {"b": 1, "a": "é"}, "idempotencyKey": null,
            "createdAt": "2026-11-29T12:00:00.000Z", "schedule": null},
        "chunk": 13, "attempt": attempt, "fencingToken": 3, "checkpoint": checkpoint, "lastError": null,
        "progress": {"current": 1200, "total": 5000}, "deadline": null
    }))
    .unwrap()
}

fn handler(url: &str, secrets: &[&str], timeout: Duration) -> HttpHandler {
    let url: url::Url = url.parse().unwrap();
    let allow = [format!("{}:{}", url.host_str().unwrap(), url.port_or_known_default().unwrap())];
    HttpHandler {
        keys: SigningKeys::parse(secrets.iter().copied()).unwrap(),
        timeout,
        callback_url: "http://127.0.0.1:9/api/v1/callback".into(),
        outbound: Arc::new(Outbound::new(AllowList::parse(&allow).unwrap(), Arc::new(SystemResolver))),
        clock: Arc::new(SystemClock::default()),
        url,
    }
}

/// One chunk at a target: its outcome or failure, and what went to the log.
async fn run(target: &Target, chunk: ChunkIn) -> (Result<Outcome, Failure>, Vec<String>) {
    run_by(&handler(&target.url("/run"), &[SECRET], AMPLE), chunk).await
}

async fn run_by(handler: &HttpHandler, chunk: ChunkIn) -> (Result<Outcome, Failure>, Vec<String>) {
    let host = Arc::new(Host::default());
    let answer = handler.run(&ChunkContext::new(chunk, host.clone())).await;
    let log = host.0.lock().unwrap().clone();
    (answer.map_err(|error| error.into_failure().expect("an application hands nothing back")), log)
}
