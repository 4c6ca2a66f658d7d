//! What each event does to a task: one function per kind of change, all pure, used by every store.
//!
//! Each function asks [`super::transition`] for the arrow first, so nothing changes when it is refused, and then sets all
//! columns that belong to the new state in [`Task::enter`]: a combination that must not exist cannot be built here.
//!
//! The fencing rule: whoever takes a lease away from its owner (sweep, forced cancel, deadline) raises the token, exactly as
//! a claim does. Hence a writer whose token is the newest was never robbed; if the lease is free all the same, it has given
//! the chunk up itself, and what it sends is a repetition that is answered again and applied once.

use super::chunk::{Failure, Outcome, Told};
use super::ids::FencingToken;
use super::progress::{Applied, Reported, tidy};
use super::retry::RetryPolicy;
use super::task::{ErrorKind, Hold, State, StopRequest, Task, TaskError, TimelineEvent, WaitReason, limits};
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
            self.wait = Some(WaitReason::Paused);
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
        });
    }

    fn release_lease(&mut self) {
        self.lease_owner = None;
        self.lease_until = None;
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
        (self.attempts + 1).min(self.max_attempts.max(1))
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
        self.wait = Some(WaitReason::Capacity);
        self.blocked_by = None;
        Ok(())
    }

    /// A report between commits. `None` when the writer is not the owner any more.
    pub fn report(&mut self, token: FencingToken, report: &Reported, step: &mut Step) -> Option<Applied> {
        (self.fencing_token == token && self.under_way()).then(|| self.take_report(report, step))
    }

    fn take_report(&mut self, report: &Reported, step: &mut Step) -> Applied {
        let applied = self.progress.apply(report, step.now);
        if let Some((Some(old), new)) = applied.total_revised {
            let new = new.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
            self.note(Some(self.state), format!("total-revised: {old} to {new}"), step);
        }
        if applied.changed {
            self.estimator.sample(step.now, self.progress.current);
        }
        applied
    }

    /// The end of a chunk, as its node reports it: guarded by token and chunk number.
    pub fn end_chunk(&mut self, end: &ChunkEnd, terms: &EndTerms, step: &mut Step) -> Ended {
        if terms.token != self.fencing_token {
            return Ended::Stale;
        }
        if terms.chunk == self.chunks || (terms.chunk == self.chunks + 1 && !self.under_way()) {
            return Ended::Repeated;
        }
        if terms.chunk != self.chunks + 1 {
            return Ended::Stale;
        }
        step.node.clone_from(&self.lease_owner);
        let continues = match end {
            ChunkEnd::HandedBack => self.end_drained(step),
            ChunkEnd::Answered(outcome) => match outcome.as_ref() {
                Outcome::More { checkpoint, delay_ms, told } => {
                    self.end_more(checkpoint.is_some(), *delay_ms, told, terms, step)
                }
                Outcome::Done { result, told } => self.end_done(result.is_some(), told, step),
                Outcome::Fail(failure) => self.end_failed(failure, terms, step),
            },
        };
        match continues {
            Ok(continues) => Ended::Applied { continues },
            Err(_) => Ended::Stale,
        }
    }

    fn end_drained(&mut self, step: &mut Step) -> Result<bool, Refused> {
        self.enter(Event::Drained, step)?;
        if self.state == State::Running {
            self.free_for_next(step.now, WaitReason::Capacity);
            self.estimator.pause_clock(step.now);
        }
        Ok(false)
    }

    fn end_more(
        &mut self,
        with_checkpoint: bool,
        delay_ms: i64,
        told: &Told,
        terms: &EndTerms,
        step: &mut Step,
    ) -> Result<bool, Refused> {
        let current_before = self.progress.current;
        let moved = with_checkpoint && terms.checkpoint_hash != self.checkpoint_hash;
        self.commit_work(told, step);
        if with_checkpoint {
            self.checkpoint_hash = terms.checkpoint_hash;
        }
        if moved || delay_ms > 0 || self.progress.current != current_before {
            self.idle_chunks = 0;
            self.warnings.retain(|w| w != NO_PROGRESS);
        } else {
            self.idle_chunks += 1;
        }
        if self.idle_chunks >= limits::IDLE_CHUNKS_FAIL {
            let failure = Failure::new(
                ErrorKind::NoProgress,
                NO_PROGRESS,
                format!("{} steps in a row changed nothing.", self.idle_chunks),
            );
            return self.fail(&failure, step);
        }
        self.enter(Event::More, step)?;
        if self.idle_chunks == limits::IDLE_CHUNKS_WARN {
            self.warnings.push(NO_PROGRESS.to_owned());
            self.note(Some(self.state), NO_PROGRESS.to_owned(), step);
        }
        if self.state != State::Running {
            return Ok(false);
        }
        match terms.continue_for_ms {
            Some(lease_ms) if delay_ms == 0 => {
                self.lease_until = Some(step.now.plus(lease_ms));
                Ok(true)
            }
            _ => {
                let wait = if delay_ms > 0 { WaitReason::Delay } else { WaitReason::Capacity };
                self.estimator.plan_gap(step.now, delay_ms);
                self.free_for_next(step.now.plus(delay_ms), wait);
                Ok(false)
            }
        }
    }

    fn end_done(&mut self, with_result: bool, told: &Told, step: &mut Step) -> Result<bool, Refused> {
        self.commit_work(told, step);
        self.has_result = with_result;
        self.enter(Event::Done, step)?;
        Ok(false)
    }

    /// What a committed chunk resets and adds up.
    fn commit_work(&mut self, told: &Told, step: &mut Step) {
        self.chunks += 1;
        self.attempts = 0;
        self.reclaims = 0;
        self.error = None;
        let sum = |a: i64, b: i64| a.saturating_add(b).min(super::progress::MAX_COUNT);
        self.rows.ok = sum(self.rows.ok, told.rows.ok);
        self.rows.skipped = sum(self.rows.skipped, told.rows.skipped);
        self.rows.failed = sum(self.rows.failed, told.rows.failed);
        self.take_report(&told.report, step);
    }

    fn end_failed(&mut self, failure: &Failure, terms: &EndTerms, step: &mut Step) -> Result<bool, Refused> {
        self.attempts += 1;
        self.failures += 1;
        if !(failure.retryable && terms.retry.allows_another(self.attempts, self.failures)) {
            return self.fail(failure, step);
        }
        let delay_ms = terms.retry.delay_ms(self.attempts, terms.unit_random, failure.retry_after_ms);
        self.error = Some(told_error(failure, true, step.now));
        self.enter(Event::Retry, step)?;
        if self.state == State::Queued {
            self.free_for_next(step.now.plus(delay_ms), WaitReason::Retry);
            self.estimator.pause_clock(step.now);
        }
        Ok(false)
    }

    fn fail(&mut self, failure: &Failure, step: &mut Step) -> Result<bool, Refused> {
        self.enter(Event::Fail, step)?;
        self.error = Some(told_error(failure, false, step.now));
        Ok(false)
    }

    fn free_for_next(&mut self, due_at: Millis, wait: WaitReason) {
        self.release_lease();
        self.due_at = due_at;
        self.wait = Some(wait);
        self.slot_held &= self.hold() == Some(Hold::Task);
    }

    /// The sweep looks at it: a lease that ran out (`all` = every lease, for the one process of a file database that has
    /// just started), a cancel whose grace is over, a deadline that has passed. `false` when nothing is due.
    pub fn sweep(&mut self, all: bool, cancel_grace_ms: i64, step: &mut Step) -> Result<bool, Refused> {
        let now = step.now;
        if self.deadline.is_some_and(|d| d <= now) && !self.state.is_final() {
            self.end_overdue(step)?;
            return Ok(true);
        }
        let Some(lease_until) = self.lease_until else { return Ok(false) };
        step.node.clone_from(&self.lease_owner);
        if all || lease_until <= now {
            self.lose_lease(step)?;
            return Ok(true);
        }
        let over = self.stop.as_ref().is_some_and(|s| s.at.plus(cancel_grace_ms) <= now);
        if self.state == State::Cancelling && over {
            self.rob();
            self.enter(Event::GraceOver, step)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// The deadline of the whole task is over.
    pub fn end_overdue(&mut self, step: &mut Step) -> Result<(), Refused> {
        next(self.state, self.under_way(), Event::DeadlineOver)?;
        self.rob();
        self.enter(Event::DeadlineOver, step)?;
        if self.state == State::Failed {
            let failure = Failure::new(ErrorKind::Deadline, "deadline", "The task did not end within its time limit.");
            self.error = Some(told_error(&failure, false, step.now));
        }
        Ok(())
    }

    fn lose_lease(&mut self, step: &mut Step) -> Result<(), Refused> {
        let used_up = self.reclaims >= limits::RECLAIMS;
        let event = if used_up { Event::LeasesUsedUp } else { Event::LeaseLost };
        next(self.state, self.under_way(), event)?;
        self.rob();
        self.reclaims += 1;
        self.takeovers += 1;
        self.estimator.lose_clock();
        self.enter(event, step)?;
        if used_up {
            if self.state == State::Failed {
                let text = format!("The node that ran this step was lost {} times.", self.reclaims);
                let failure = Failure::new(ErrorKind::LeaseLost, "lease-lost", text);
                self.error = Some(told_error(&failure, false, step.now));
            }
            return Ok(());
        }
        if self.state == State::Running {
            self.free_for_next(step.now, WaitReason::Capacity);
        }
        Ok(())
    }

    /// A person asks. `Ok(false)`: it was asked before, or is so already; nothing changes. `key_full` tells a resume that
    /// its concurrency key has no free slot, and who is ahead.
    pub fn ask(
        &mut self,
        ask: Ask,
        reason: Option<&str>,
        key_full: Option<Option<super::ids::TaskId>>,
        step: &mut Step,
    ) -> Result<bool, Refused> {
        let because = reason.map(|r| tidy(r, limits::REASON_CHARS));
        let because = because.as_deref();
        match (ask, self.state) {
            (Ask::Cancel, State::Cancelling | State::Cancelled)
            | (Ask::ForceCancel, State::Cancelled)
            | (Ask::Pause, State::Pausing | State::Paused)
            | (Ask::Resume, State::Queued | State::Blocked) => Ok(false),
            (Ask::Cancel | Ask::Pause, _) => {
                let event = if ask == Ask::Cancel { Event::Cancel } else { Event::Pause };
                let was_under_way = self.under_way();
                self.enter_because(event, because, step)?;
                if was_under_way {
                    let actor = step.actor.clone().unwrap_or_default();
                    let reason = because.map(str::to_owned);
                    self.stop = Some(StopRequest { actor, reason, at: step.now });
                }
                Ok(true)
            }
            (Ask::ForceCancel, State::Queued | State::Blocked | State::Paused) => {
                self.enter_because(Event::Cancel, because, step)?;
                Ok(true)
            }
            (Ask::ForceCancel, _) => {
                next(self.state, self.under_way(), Event::ForceCancel)?;
                self.rob();
                self.enter_because(Event::ForceCancel, because, step)?;
                Ok(true)
            }
            (Ask::Resume, State::Pausing) => {
                self.enter(Event::Resume, step)?;
                self.stop = None;
                Ok(true)
            }
            (Ask::Resume, _) => self.resume(key_full, step),
        }
    }

    fn resume(&mut self, key_full: Option<Option<super::ids::TaskId>>, step: &mut Step) -> Result<bool, Refused> {
        let key_full = key_full.filter(|_| !self.slot_held);
        self.enter(if key_full.is_some() { Event::ResumeBlocked } else { Event::Resume }, step)?;
        (self.attempts, self.failures, self.reclaims, self.idle_chunks) = (0, 0, 0, 0);
        // The error stays until the next committed chunk, so that the handler can know what it stopped at.
        (self.finished_at, self.deadline) = (None, None);
        (self.seen_at, self.read_at, self.archived_at) = (None, None, None);
        self.warnings.retain(|w| w != NO_PROGRESS);
        self.due_at = step.now.max(self.run_at);
        self.gated = key_full.is_some();
        self.blocked_by = key_full.flatten();
        self.slot_held = self.concurrency.is_some() && key_full.is_none();
        self.wait = Some(if self.gated { WaitReason::Concurrency } else { WaitReason::Capacity });
        Ok(true)
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
