//! A task as it is played to a worker: its chunk is handed out, its lease is watched, and what comes back for it is judged.

use super::super::play::first_chunk;
use super::service::{Answer, Asked, Service};
use crate::app::clock::SystemClock;
use crate::core::chunk::Outcome;
use crate::core::time::Clock as _;
use crate::handler::ChunkIn;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// An empty answer to a claim is not hurried, so that a worker with free hands does not spin.
const EMPTY_AFTER: Duration = Duration::from_millis(200);
/// How long a lease may be over before it is swept.
const SWEPT_AFTER: Duration = Duration::from_secs(1);
/// How long a worker may take to come at all.
const COMES_WITHIN: Duration = Duration::from_secs(60);

/// What is played, and to whom.
pub(in crate::cli::conformance) struct Player {
    pub service: Service,
    pub action: String,
    pub params: Value,
    /// The longest one chunk may take.
    pub timeout: Duration,
    /// The length of a lease.
    pub lease: Duration,
    pub chunks: u32,
}

/// What goes wrong with a chunk on purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nothing.
    #[default]
    None,
    /// The first commit is taken, and its answer lost.
    LostAnswer,
    /// The first commit is to come later.
    Later,
    /// Every answer about it asks for a stop.
    Stop,
    /// The lease is lost before the commit.
    LostLease,
}

/// What was seen of a chunk.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The outcome that counts; none when the lease was lost.
    pub outcome: Option<Outcome>,
    /// How often the lease was renewed.
    pub renewals: usize,
    /// How often an answer asked for a stop or told of a lost lease.
    pub told: usize,
    /// How often it was committed.
    pub commits: usize,
}

impl Player {
    /// A new task, at its first chunk.
    pub(super) fn task(&self) -> ChunkIn {
        first_chunk(&self.action, &self.params, SystemClock::default().now())
    }

    /// The next claim of the worker.
    pub(super) async fn claim(&mut self) -> Result<Asked, String> {
        let end = Instant::now() + COMES_WITHIN;
        loop {
            let asked = self.next(end).await.map_err(|()| format!("it did not ask for {COMES_WITHIN:?}"))?;
            if asked.call != "claim" {
                stale(asked);
                continue;
            }
            let named = asked.body["actions"].as_array().is_some_and(|all| all.iter().any(|a| *a == self.action));
            if named {
                return Ok(asked);
            }
            let fault = format!("it asks for {}, and not for {} (--action)", asked.body["actions"], self.action);
            asked.answer(Answer::Json(json!({"chunks": []})));
            return Err(fault);
        }
    }

    async fn next(&mut self, end: Instant) -> Result<Asked, ()> {
        timeout_at(end, self.service.next()).await.map_err(|_| ())
    }

    /// Hands a chunk out and waits for its outcome.
    pub(super) async fn play(&mut self, chunk: &ChunkIn, trouble: Trouble) -> Result<Seen, String> {
        let claim = self.claim().await?;
        claim.answer(Answer::Json(json!({"chunks": [self.out(chunk)], "later": {"version": 2}})));
        let (mut seen, mut first) = (Seen::default(), None);
        let mut heard = Instant::now();
        let end = heard + self.timeout;
        loop {
            let asked = match self.next(end).await {
                Ok(asked) => asked,
                Err(()) => return Err(format!("no outcome within {:?} (--timeout)", self.timeout)),
            };
            if asked.call == "claim" {
                if trouble == Trouble::LostLease && seen.told > 0 {
                    // It has let go of it and asks for more.
                    empty_later(asked);
                    return Ok(seen);
                }
                empty_later(asked);
                continue;
            }
            let Some(item) = self.about(chunk, &asked) else {
                stale(asked);
                continue;
            };
            let silence = heard.elapsed();
            if silence > self.lease + SWEPT_AFTER {
                stale(asked);
                return Err(format!("its lease was over: nothing was heard for {silence:?} of {:?}", self.lease));
            }
            heard = Instant::now();
            if asked.call != "commit" {
                seen.renewals += usize::from(asked.call == "renew");
                seen.told += usize::from(matches!(trouble, Trouble::Stop | Trouble::LostLease));
                answer_items(
                    asked,
                    match trouble {
                        Trouble::Stop => "stop",
                        Trouble::LostLease => "stale",
                        _ => "ok",
                    },
                );
                continue;
            }
            seen.commits += 1;
            if trouble == Trouble::LostLease {
                seen.told += 1;
                if seen.commits > 1 {
                    stale(asked);
                    return Err("it commits again what was answered as stale".into());
                }
                stale(asked);
                continue;
            }
            let outcome = read(&item)?;
            match (trouble, first.replace(item.clone())) {
                (Trouble::LostAnswer, None) => asked.answer(Answer::Break),
                (Trouble::Later, None) => asked.answer(Answer::Later(503, 1)),
                (_, before) => {
                    if let Some(before) = before.filter(|before| *before != item) {
                        return Err(format!("first {before}, then {item}"));
                    }
                    let item = json!({"task": chunk.task.id, "result": "ok", "repeated": seen.commits > 1, "later": 1});
                    asked.answer(Answer::Json(json!({"items": [item]})));
                    seen.outcome = Some(outcome);
                    return Ok(seen);
                }
            }
        }
    }

    /// The chunk as the service hands it out.
    fn out(&self, chunk: &ChunkIn) -> Value {
        let mut out = serde_json::to_value(chunk).expect("a chunk is plain data");
        out["leaseMs"] = json!(u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX));
        out["timeoutMs"] = json!(u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX));
        out["later"] = json!([]);
        out
    }

    /// The item of a request that is about this chunk under its claim.
    fn about(&self, chunk: &ChunkIn, asked: &Asked) -> Option<Value> {
        let items = asked.body["items"].as_array()?;
        let same = |item: &&Value| {
            item["task"] == json!(chunk.task.id)
                && item["fencingToken"] == json!(chunk.fencing_token)
                && item.get("chunk").is_none_or(|n| *n == json!(chunk.chunk))
        };
        items.iter().find(same).cloned()
    }
}

fn read(item: &Value) -> Result<Outcome, String> {
    match Outcome::parse(&item["outcome"]) {
        Ok((outcome, faults)) if faults.is_empty() => Ok(outcome),
        Ok((_, faults)) => {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            Err(format!("its progress is dropped: {}", faults.join(", ")))
        }
        Err(bad) => Err(format!("bad-outcome: {bad}")),
    }
}

/// Answers all items with the same word.
fn answer_items(asked: Asked, word: &str) {
    let items = asked.body["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let items: Vec<Value> = items.iter().map(|item| json!({"task": item["task"], "result": word})).collect();
    asked.answer(Answer::Json(json!({"items": items})));
}

/// What is not, or not any more, of this worker.
fn stale(asked: Asked) {
    answer_items(asked, "stale");
}

/// Nothing is due.
fn empty_later(asked: Asked) {
    tokio::spawn(async move {
        tokio::time::sleep(EMPTY_AFTER).await;
        asked.answer(Answer::Json(json!({"chunks": []})));
    });
}
