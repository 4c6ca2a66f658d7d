//! How long things took, and how they ended, for the metrics: the calls that would stand between the lines of the loops.
//!
//! Must never decide anything: no number that is taken here comes back into the engine.

use super::commands::announce;
use crate::bus::LocalBus;
use crate::core::chunk::Outcome;
use crate::core::lifecycle::{ChunkEnd, Ended};
use crate::core::metric;
use crate::core::submit::Submitted;
use crate::core::time::Millis;
use crate::store::{Result, Written};
use metrics::{counter, gauge, histogram};
use std::time::Instant;
use tokio::sync::Notify;

/// A length of time that is being taken.
pub(super) struct Stopwatch(Instant);

impl Stopwatch {
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Writes it into a histogram.
    pub fn tell(&self, name: &'static str) {
        histogram!(name).record(self.0.elapsed());
    }

    /// The commit of so many items of a kind, tried to its end; announces what it changed.
    pub fn committed<T>(
        self,
        kind: &'static str,
        items: usize,
        written: Result<Written<T>>,
        bus: &LocalBus,
        wake: &Notify,
    ) -> Result<T> {
        histogram!(metric::COMMIT_ITEMS, "kind" => kind).record(items as f64);
        histogram!(metric::COMMIT_SECONDS, "kind" => kind).record(self.0.elapsed());
        Ok(announce(bus, wake, written?))
    }
}

/// What became of clicks.
pub(super) fn submitted(answers: &[Submitted]) {
    for answer in answers {
        let word = match answer {
            Submitted::Created(_) => "created",
            Submitted::Replayed(_) => "replayed",
            Submitted::Skipped(_) => "skipped",
            Submitted::Refused(_) => "refused",
        };
        counter!(metric::SUBMITS, "answer" => word).increment(1);
    }
}

/// Chunks were claimed that were due at these instants.
pub(super) fn claimed(due: impl Iterator<Item = Millis>, now: Millis) {
    for due_at in due {
        counter!(metric::CLAIMS).increment(1);
        histogram!(metric::PICKUP_SECONDS).record(now.since(due_at).max(0) as f64 / 1_000.0);
    }
}

/// So many chunks are under way.
pub(super) fn running(count: usize) {
    gauge!(metric::RUNNING).set(count as f64);
}

/// So many polls of workers wait on this node.
pub(super) fn polls(count: usize) {
    gauge!(metric::WORKER_POLLS).set(count as f64);
}

/// A chunk was committed, or was refused as stale.
pub(super) fn chunk_ended(end: &ChunkEnd, ended: &Ended) {
    let outcome = match (end, ended) {
        (_, Ended::Stale) => {
            stale("chunk", 1);
            "lost"
        }
        (ChunkEnd::HandedBack | ChunkEnd::Undelivered, _) => "handed-back",
        (ChunkEnd::Answered(outcome), _) => match **outcome {
            Outcome::More { .. } => "more",
            Outcome::Done { .. } => "done",
            Outcome::Fail(_) => "failed",
        },
    };
    chunk(outcome);
}

/// A chunk is over.
pub(super) fn chunk(outcome: &'static str) {
    counter!(metric::CHUNKS, "outcome" => outcome).increment(1);
}

/// Writes of stale owners were refused.
pub(super) fn stale(write: &'static str, count: usize) {
    if count > 0 {
        counter!(metric::STALE_WRITES, "write" => write).increment(count as u64);
    }
}

/// So many more of a number without labels.
pub(super) fn more(name: &'static str, count: usize) {
    if count > 0 {
        counter!(name).increment(count as u64);
    }
}
