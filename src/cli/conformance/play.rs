//! One task as it is played: its next chunk, and what came back for it. The call and the reading of the answer are those of
//! the server itself.

use super::Setup;
use super::desk::Desk;
use crate::app::clock::SystemClock;
use crate::core::chunk::{Failure, Outcome};
use crate::core::ids::{FencingToken, TaskId};
use crate::core::progress::FieldFault;
use crate::core::time::{Clock as _, Millis};
use crate::handler::http::{CallbackTo, answer, call};
use crate::handler::{ChunkIn, Counted, TaskInfo};
use crate::outbound::{AllowList, Call, CallFault, Outbound, Reply, SystemResolver};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// How often one chunk is tried before it counts as failed.
const ATTEMPTS: u32 = 5;
/// The longest pause before a further attempt, whatever `Retry-After` says.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// An outcome with what was dropped from its progress, or the failure that the answer counts as.
pub(super) type Told = Result<(Outcome, Vec<FieldFault>), Failure>;

/// Plays tasks to one handler.
pub(super) struct Player<'a> {
    pub setup: &'a Setup,
    pub desk: &'a Desk,
    outbound: Outbound,
    clock: SystemClock,
}

impl<'a> Player<'a> {
    /// A player for a handler. Whoever runs the command has named its address, so it may be any.
    pub(super) fn new(setup: &'a Setup, desk: &'a Desk) -> Self {
        let host = setup.url.host_str().unwrap_or_default();
        let named = format!("{host}:{}", setup.url.port_or_known_default().unwrap_or_default());
        let entries = [named.as_str(), "0.0.0.0/0", "::/0"];
        let outbound = Outbound::new(AllowList::parse(&entries).unwrap_or_default(), Arc::new(SystemResolver));
        Self { setup, desk, outbound, clock: SystemClock::default() }
    }

    /// This second.
    pub(super) fn now_seconds(&self) -> i64 {
        self.clock.now().0.div_euclid(1_000)
    }

    /// A new task, at its first chunk.
    pub(super) fn task(&self) -> ChunkIn {
        first_chunk(&self.setup.action, &self.setup.params, self.clock.now())
    }

    /// The call of a chunk as the server makes it.
    pub(super) fn call(&self, chunk: &ChunkIn, callback: CallbackTo) -> Call {
        let Setup { url, keys, timeout, .. } = self.setup;
        call::signed(url, keys, chunk, call::body(chunk, callback), self.now_seconds(), *timeout)
    }

    /// Sends any call.
    pub(super) async fn send(&self, call: Call) -> Result<Reply, CallFault> {
        self.outbound.send(call).await
    }

    /// Sends any call, and reads the answer as the server does.
    pub(super) async fn told(&self, call: Call) -> Told {
        let timeout = self.setup.timeout;
        match self.send(call).await {
            Ok(reply) => answer::outcome(reply, self.clock.now(), timeout).await,
            Err(fault) => Err(answer::no_answer(&fault, timeout)),
        }
    }

    /// One attempt of a chunk.
    pub(super) async fn attempt(&self, chunk: &ChunkIn) -> Told {
        self.told(self.call(chunk, self.desk.enter())).await
    }

    /// A chunk until it has an outcome: what may pass is tried again, as a new claim, after a pause.
    pub(super) async fn settle(&self, chunk: &mut ChunkIn) -> Result<Outcome, String> {
        loop {
            let failure = match self.attempt(chunk).await {
                Ok((Outcome::Fail(failure), _)) | Err(failure) => failure,
                Ok((outcome, faults)) if faults.is_empty() => return Ok(outcome),
                Ok((_, faults)) => {
                    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
                    return Err(format!("chunk {}: its progress is dropped: {}", chunk.chunk, faults.join(", ")));
                }
            };
            if !failure.retryable || chunk.attempt >= ATTEMPTS {
                return Err(format!("chunk {}, attempt {}: {}", chunk.chunk, chunk.attempt, shown(&failure)));
            }
            let asked = failure.retry_after_ms.map_or(0, i64::unsigned_abs);
            tokio::time::sleep(Duration::from_millis(asked).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)).await;
            again(chunk);
        }
    }
}

/// A new task of an action, at its first chunk.
pub(super) fn first_chunk(action: &str, params: &Value, created_at: Millis) -> ChunkIn {
    let task = TaskInfo {
        id: TaskId::new(),
        tenant: "default".into(),
        action: action.to_owned(),
        title: action.to_owned(),
        owner: "conformance".into(),
        record: None,
        params: params.clone(),
        idempotency_key: None,
        created_at,
        schedule: None,
    };
    ChunkIn {
        task,
        chunk: 1,
        attempt: 1,
        fencing_token: FencingToken(1),
        checkpoint: None,
        last_error: None,
        progress: Counted::default(),
        deadline: None,
    }
}

/// A failure in one line.
pub(super) fn shown(failure: &Failure) -> String {
    let detail = failure.detail.as_ref().map(|d| format!(" ({d})")).unwrap_or_default();
    format!("{}: {}{detail}", failure.code, failure.message)
}

/// The same chunk once more, under a new claim.
pub(super) fn again(chunk: &mut ChunkIn) {
    chunk.attempt += 1;
    chunk.fencing_token = chunk.fencing_token.next();
}

/// The chunk after an outcome; `false` when the work is done.
pub(super) fn advance(chunk: &mut ChunkIn, outcome: &Outcome) -> bool {
    let Outcome::More { checkpoint, told, .. } = outcome else { return false };
    if let Some(checkpoint) = checkpoint {
        chunk.checkpoint = Some(checkpoint.clone());
    }
    chunk.progress.current = told.report.current.unwrap_or(chunk.progress.current);
    chunk.progress.total = told.report.total.unwrap_or(chunk.progress.total);
    chunk.chunk += 1;
    chunk.attempt = 1;
    true
}

/// Whether two outcomes say the same of the work; lines of log and texts may differ.
pub(super) fn same_work(one: &Outcome, other: &Outcome) -> bool {
    let bare = |outcome: &Outcome| {
        let mut outcome = outcome.clone();
        if let Some(told) = outcome.told_mut() {
            told.log.clear();
            told.report.message = None;
        }
        outcome
    };
    bare(one) == bare(other)
}

/// An outcome in some words.
pub(super) fn word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::More { checkpoint, .. } => format!("more from {}", checkpoint.as_ref().unwrap_or(&Value::Null)),
        Outcome::Done { .. } => "done".to_owned(),
        Outcome::Fail(failure) => format!("failed with {}", failure.code),
    }
}
