//! The end of a chunk: guarded by token and chunk number, applied once.

use super::super::chunk::{Failure, Outcome, Told};
use super::super::progress::MAX_COUNT;
use super::super::retry::RetryPolicy;
use super::super::task::{ErrorKind, State, Task, WaitReason, limits};
use super::super::transition::{Event, Refused, next};
use super::{ChunkEnd, EndTerms, Ended, NO_PROGRESS, Step, told_error};

impl Task {
    /// The end of a chunk, as its node reports it: guarded by token and chunk number.
    pub fn end_chunk(&mut self, end: &ChunkEnd, terms: &EndTerms, step: &mut Step) -> Ended {
        // Token 0 is that of a task that nobody has claimed yet.
        if terms.token != self.fencing_token || terms.token.0 < 1 {
            return Ended::Stale;
        }
        if terms.chunk == self.chunks || (terms.chunk == self.chunks + 1 && !self.under_way()) {
            return Ended::Repeated;
        }
        // The committed work is written before the arrow is taken, so what cannot end is refused first.
        if terms.chunk != self.chunks + 1 || next(self.state, true, Event::Done).is_err() {
            return Ended::Stale;
        }
        if self.chunk_is_over(step.now) {
            return Ended::Stale;
        }
        step.node.clone_from(&self.lease_owner);
        let continues = match end {
            ChunkEnd::HandedBack => self.end_drained(step),
            ChunkEnd::Undelivered => {
                self.rob();
                self.end_drained(step)
            }
            ChunkEnd::Answered(outcome) => match outcome.as_ref() {
                Outcome::More { checkpoint, delay_ms, told } => {
                    self.end_more(checkpoint.is_some(), *delay_ms, told, terms, step)
                }
                Outcome::Done { result, told } => self.end_done(result.is_some(), told, step),
                Outcome::Fail(failure) => self.end_failed(failure, (terms.retry, terms.unit_random), step),
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
        if moved || delay_ms > 0 || terms.children > 0 || self.progress.current != current_before {
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
        self.awaits = told.wait.filter(|_| !self.state.is_final());
        if self.state != State::Running {
            return Ok(false);
        }
        if self.awaits.is_some() {
            // Its children's work is its own: the clock of the estimate runs on.
            self.free_for_next(step.now, WaitReason::Children);
            self.note(Some(self.state), "children".to_owned(), step);
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
        let sum = |a: i64, b: i64| a.saturating_add(b).min(MAX_COUNT);
        self.rows.ok = sum(self.rows.ok, told.rows.ok);
        self.rows.skipped = sum(self.rows.skipped, told.rows.skipped);
        self.rows.failed = sum(self.rows.failed, told.rows.failed);
        self.take_report(&told.report, step);
    }

    /// The chunk failed; `retry` and `unit_random` say whether and when it is tried again.
    pub(super) fn end_failed(
        &mut self,
        failure: &Failure,
        (retry, unit_random): (RetryPolicy, f64),
        step: &mut Step,
    ) -> Result<bool, Refused> {
        self.attempts += 1;
        self.failures += 1;
        if !(failure.retryable && retry.allows_another(self.attempts, self.failures)) {
            return self.fail(failure, step);
        }
        let delay_ms = retry.delay_ms(self.attempts, unit_random, failure.retry_after_ms);
        self.error = Some(told_error(failure, true, step.now));
        self.enter(Event::Retry, step)?;
        self.note_failure(failure, Some(delay_ms).filter(|_| self.state == State::Queued), step);
        if self.state == State::Queued {
            self.free_for_next(step.now.plus(delay_ms), WaitReason::Retry);
            self.estimator.pause_clock(step.now);
        }
        Ok(false)
    }

    fn fail(&mut self, failure: &Failure, step: &mut Step) -> Result<bool, Refused> {
        self.enter(Event::Fail, step)?;
        self.note_failure(failure, None, step);
        self.error = Some(told_error(failure, false, step.now));
        Ok(false)
    }
}
