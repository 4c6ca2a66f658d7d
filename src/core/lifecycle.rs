//! What each event does to a task: one function per kind of change, all pure, used by every store.
//!
//! Each function asks [`super::transition`] for the arrow first, so nothing changes when it is refused, and then sets all
//! columns that belong to the new state in [`Task::enter`]: a combination that must not exist cannot be built here.
//!
//! The fencing rule: whoever takes a lease away from its owner (sweep, forced cancel, deadline) raises the token, exactly as
//! a claim does. Hence a writer whose token is the newest was never robbed; if the lease is free all the same, it has given
//! the chunk up itself, and what it sends is a repetition that is answered again and applied once.

mod asks;
mod ends;
mod family;
mod overdue;
mod packs;
#[cfg(test)]
mod tests;

use super::chunk::{Failure, Outcome};
use super::ids::FencingToken;
use super::progress::{Applied, Reported, tidy};
use super::retry::RetryPolicy;
use super::task::{FailedAttempt, Hold, State, Task, TaskError, TimelineEvent, WaitReason, limits};
use super::time::Millis;
use super::transition::{Event, Refused, next};

/// When and by whom a change happens; gathers the timeline entries that the change causes.
#[derive(Debug, Default)]
pub struct Step {
    /// The database's now.
    pub now: Millis,
    /// The person or key behind it.
    pub actor: Option<String>,
    /// The node behind it.
    pub node: Option<String>,
    /// What the change wrote into timelines.
    pub events: Vec<TimelineEvent>,
}

impl Step {
    /// A step that no person caused.
    #[must_use]
    pub fn at(now: Millis) -> Self {
        Self { now, ..Self::default() }
    }
}

/// What a person may ask of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// End it; its committed work stays.
    Cancel,
    /// End it without waiting for the chunk under way.
    ForceCancel,
    /// Stop it at its next checkpoint.
    Pause,
    /// Go on from the checkpoint.
    Resume,
}

/// The end of a chunk, as its node reports it.
#[derive(Clone, Debug)]
pub enum ChunkEnd {
    /// The handler answered.
    Answered(Box<Outcome>),
    /// The node drains, or a fault that is not the handler's ended the chunk; no attempt is used.
    HandedBack,
    /// The chunk did not reach the worker outside that asked for it; no attempt is used, and the token is raised, for nobody
    /// knows whether it reached it after all.
    Undelivered,
}

impl ChunkEnd {
    /// Whether it says that the task is done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Answered(outcome) if matches!(**outcome, Outcome::Done { .. }))
    }
}

/// What became of a reported chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Applied. `continues` = the lease stays and the same node runs the next chunk at once.
    Applied {
        /// The lease was kept.
        continues: bool,
    },
    /// The same chunk had been reported before; answered again, applied once.
    Repeated,
    /// The lease belongs to somebody else, or to nobody any more. Nothing changed.
    Stale,
}

impl Ended {
    /// Whether the node that reported the end of a chunk under a token runs the next one at once; `task` is as it is after
    /// the commit. A repeated end may answer a commit whose first answer was lost: if that one kept the lease, the work goes
    /// on there.
    #[must_use]
    pub fn keeps_lease(self, task: &Task, token: FencingToken, chunk: i64) -> bool {
        match self {
            Self::Applied { continues } => continues,
            Self::Repeated => task.under_way() && task.fencing_token == token && task.chunks == chunk,
            Self::Stale => false,
        }
    }
}

/// How time is held against a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct SweepTerms {
    /// Every lease of a node, whether it ran out or not: the one process of a file database has just started. A worker
    /// outside lives on without it.
    pub all: bool,
    /// How long a chunk may take to answer a cancel, ms.
    pub cancel_grace_ms: i64,
    /// The action's retry rule, for the chunk of a worker outside that ran over its time.
    pub retry: RetryPolicy,
    /// Randomness for the jitter, in `[0, 1)`.
    pub unit_random: f64,
}

/// How a chunk's end is judged.
#[derive(Clone, Copy, Debug)]
pub struct EndTerms {
    /// The token that the chunk was claimed with.
    pub token: FencingToken,
    /// The number of the chunk, from 1.
    pub chunk: i64,
    /// The action's retry rule.
    pub retry: RetryPolicy,
    /// Randomness for the jitter, in `[0, 1)`.
    pub unit_random: f64,
    /// Lease length if the node wants to run the next chunk at once, ms.
    pub continue_for_ms: Option<i64>,
    /// Hash of the checkpoint that comes with it.
    pub checkpoint_hash: Option<i64>,
    /// How many children come with it.
    pub children: usize,
}

impl Task {
    /// Takes the arrow of an event and sets what belongs to the state it leads to.
    fn enter(&mut self, event: Event, step: &mut Step) -> Result<(), Refused> {
        self.enter_because(event, None, step)
    }

    /// The same with the reason that a person gave, which the timeline keeps.
    fn enter_because(&mut self, event: Event, because: Option<&str>, step: &mut Step) -> Result<(), Refused> {
        let arrow = next(self.state, self.under_way(), event)?;
        let from = self.state;
        self.state = arrow.to;
        if arrow.to.is_final() {
            self.finished_at = Some(step.now);
            self.release_lease();
            self.wait = None;
            self.blocked_by = None;
            self.gated = false;
            self.slot_held = false;
            self.stop = None;
            (self.seen_at, self.read_at, self.archived_at) = (None, None, None);
            self.estimator.pause_clock(step.now);
        } else if arrow.to == State::Paused {
            self.release_lease();
            self.wait = self.wait.filter(|why| *why == WaitReason::PackDisabled).or(Some(WaitReason::Paused));
            self.blocked_by = None;
            self.gated = false;
            self.slot_held &= self.hold() == Some(Hold::Task) && self.started_at.is_some();
            self.stop = None;
            self.estimator.pause_clock(step.now);
        }
        let silent = matches!(event, Event::More | Event::Claim | Event::KeyFull | Event::SlotFree);
        if from != arrow.to || !silent {
            let reason = because.map_or_else(|| arrow.reason.to_owned(), |why| format!("{}: {why}", arrow.reason));
            self.note(Some(from), reason, step);
        }
        Ok(())
    }

    /// Writes a line into the timeline.
    pub fn note(&mut self, from: Option<State>, reason: String, step: &mut Step) {
        self.event_count += 1;
        step.events.push(TimelineEvent {
            task: self.id,
            seq: self.event_count,
            at: step.now,
            from,
            to: self.state,
            reason,
            actor: step.actor.clone(),
            node: step.node.clone(),
            attempt: self.attempt(),
            chunk: self.chunks,
            failure: None,
        });
    }

    /// Adds to the line that was just written why the attempt failed, and when the next one follows.
    fn note_failure(&self, failure: &Failure, delay_ms: Option<i64>, step: &mut Step) {
        if let Some(line) = step.events.last_mut().filter(|line| line.task == self.id && line.seq == self.event_count) {
            let message = tidy(&failure.message, limits::REASON_CHARS);
            let (kind, code) = (failure.kind, failure.code.clone());
            line.failure = Some(FailedAttempt { kind, code, message, delay_ms });
        }
    }

    fn release_lease(&mut self) {
        self.lease_owner = None;
        self.lease_until = None;
        self.chunk_until = None;
    }

    fn rob(&mut self) {
        if self.under_way() {
            self.fencing_token = self.fencing_token.next();
        }
    }

    /// How it holds its slot, if it has a concurrency key.
    #[must_use]
    pub fn hold(&self) -> Option<Hold> {
        self.concurrency.as_ref().map(|c| c.hold)
    }

    /// The attempt that runs, waits or ended, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        // An ended task makes no further attempt: it stands at the last one that was made.
        let attempt = if self.state.is_final() { self.attempts.max(1) } else { self.attempts + 1 };
        attempt.min(self.max_attempts.max(1))
    }

    /// A node takes the next chunk. The caller has seen to the slot of a concurrency key.
    pub fn claim(&mut self, node: &str, lease_ms: i64, step: &mut Step) -> Result<(), Refused> {
        let taken_over = self.reclaims > 0;
        step.node = Some(node.to_owned());
        let from = self.state;
        self.enter(Event::Claim, step)?;
        if taken_over && from == self.state {
            self.note(Some(from), "claimed".to_owned(), step);
        }
        self.fencing_token = self.fencing_token.next();
        self.lease_owner = Some(node.to_owned());
        self.lease_until = Some(step.now.plus(lease_ms));
        self.chunk_until = None;
        self.started_at.get_or_insert(step.now);
        if self.deadline.is_none() {
            self.deadline = self.timeout_ms.map(|ms| step.now.plus(ms));
        }
        self.wait = None;
        self.blocked_by = None;
        self.slot_held = self.concurrency.is_some();
        self.estimator.resume_clock(step.now);
        Ok(())
    }

    /// The lease that goes on from chunk to chunk lasts until then: its commit took its time.
    pub fn lengthen_lease(&mut self, until: Millis) {
        self.lease_until = self.lease_until.map(|end| end.max(until));
    }

    /// A worker outside runs the chunk that was just claimed. Nobody here can stop it, so the lease ends with the time of the
    /// chunk at the latest, and no renewal goes beyond.
    pub fn lend_chunk(&mut self, limit_ms: i64, step: &Step) {
        let until = step.now.plus(limit_ms);
        self.chunk_until = Some(until);
        self.lease_until = self.lease_until.map(|end| end.min(until));
    }

    /// Whether a worker outside has had all the time of its chunk.
    #[must_use]
    pub fn chunk_is_over(&self, now: Millis) -> bool {
        self.chunk_until.is_some_and(|until| until <= now)
    }

    /// Its key turned out to be full: it waits for a slot, without a claim, a token or an attempt.
    pub fn gate(&mut self, behind: Option<super::ids::TaskId>, step: &mut Step) -> Result<(), Refused> {
        self.enter(Event::KeyFull, step)?;
        self.gated = true;
        self.slot_held = false;
        self.wait = Some(WaitReason::Concurrency);
        self.blocked_by = behind;
        Ok(())
    }

    /// A slot is its own now.
    pub fn open_gate(&mut self, step: &mut Step) -> Result<(), Refused> {
        self.enter(Event::SlotFree, step)?;
        self.gated = false;
        self.slot_held = true;
        self.wait = Some(self.waits_for());
        self.blocked_by = None;
        Ok(())
    }

    /// What keeps it from running once nothing else does: its children, or that every place is taken.
    fn waits_for(&self) -> WaitReason {
        if self.awaits.is_some() { WaitReason::Children } else { WaitReason::Capacity }
    }

    /// A report between commits. `None` when the writer is not the owner any more.
    pub fn report(&mut self, token: FencingToken, report: &Reported, step: &mut Step) -> Option<Applied> {
        let current = self.fencing_token == token && self.under_way() && !self.chunk_is_over(step.now);
        current.then(|| self.take_report(report, step))
    }

    fn take_report(&mut self, report: &Reported, step: &mut Step) -> Applied {
        match self.with_children(report) {
            None => self.show(report, step),
            Some(together) => self.show(&together, step),
        }
    }

    fn show(&mut self, report: &Reported, step: &mut Step) -> Applied {
        let applied = self.progress.apply(report, step.now);
        if let Some((Some(old), new)) = applied.total_revised {
            let new = new.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
            self.note(Some(self.state), format!("total-revised: {old} to {new}"), step);
            self.estimator.revise(old);
        }
        if applied.changed {
            self.estimator.sample(step.now, self.progress.current);
        }
        applied
    }

    fn free_for_next(&mut self, due_at: Millis, wait: WaitReason) {
        self.release_lease();
        self.due_at = due_at;
        self.wait = Some(wait);
        self.slot_held &= self.hold() == Some(Hold::Task);
    }
}

/// The warning of a task whose chunks change nothing.
const NO_PROGRESS: &str = "no-progress";

fn told_error(failure: &Failure, retryable: bool, at: Millis) -> TaskError {
    TaskError {
        kind: failure.kind,
        code: failure.code.clone(),
        message: failure.message.clone(),
        detail: failure.detail.clone(),
        retryable,
        at,
    }
}
