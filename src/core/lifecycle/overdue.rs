//! What time undoes: leases that ran out, cancels that no chunk answered, deadlines.

use super::super::chunk::Failure;
use super::super::task::{ErrorKind, State, Task, WaitReason, limits};
use super::super::transition::{Event, Refused, next};
use super::{Step, SweepTerms, told_error};

impl Task {
    /// The sweep looks at it: a lease that ran out, a cancel whose grace is over, a deadline that has passed. `false` when
    /// nothing is due.
    pub fn sweep(&mut self, terms: &SweepTerms, step: &mut Step) -> Result<bool, Refused> {
        let now = step.now;
        if self.deadline.is_some_and(|d| d <= now) && !self.state.is_final() {
            self.end_overdue(step)?;
            return Ok(true);
        }
        let Some(lease_until) = self.lease_until else { return Ok(false) };
        step.node.clone_from(&self.lease_owner);
        // Renewed up to the end of its time: its worker is alive and slow. Otherwise it has vanished.
        if self.chunk_is_over(now) && self.chunk_until == Some(lease_until) {
            return self.run_over(terms, step).map(|()| true);
        }
        if (terms.all && self.chunk_until.is_none()) || lease_until <= now {
            self.lose_lease(step)?;
            return Ok(true);
        }
        let over = self.stop.as_ref().is_some_and(|s| s.at.plus(terms.cancel_grace_ms) <= now);
        if self.state == State::Cancelling && over {
            self.rob();
            self.enter(Event::GraceOver, step)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// The time of the chunk is over, and the worker outside that runs it cannot be stopped from here: it is robbed, and the
    /// chunk counts as a failed attempt.
    fn run_over(&mut self, terms: &SweepTerms, step: &mut Step) -> Result<(), Refused> {
        next(self.state, self.under_way(), Event::Retry)?;
        self.rob();
        let failure = Failure::new(ErrorKind::Timeout, "timeout", "A step took longer than its limit.");
        self.end_failed(&failure, (terms.retry, terms.unit_random), step).map(drop)
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
}
