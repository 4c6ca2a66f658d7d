//! What children do to their parent: they count in its progress, end its wait, or fail it. And what a parent's end means for
//! them.
//!
//! Whether all children have ended is the caller's to find out, from their rows and under the parent's lock.

use super::super::chunk::Failure;
use super::super::family::{Family, OnFailure};
use super::super::progress::Reported;
use super::super::task::{ErrorKind, Hold, State, Task};
use super::super::transition::{Event, Refused};
use super::{Step, told_error};

impl Task {
    /// Its chunk submitted children, of this weight together.
    pub fn add_children(&mut self, count: i64, weight: i64, step: &mut Step) {
        let own = (self.progress.current, self.progress.total);
        let family = self.family.get_or_insert_with(|| Family::of(own.0, own.1));
        family.children += count;
        family.weight += weight;
        self.show_family(step);
    }

    /// What is done of its children was looked at, in thousandths of their weight.
    pub fn roll_up(&mut self, done_milli: i64, step: &mut Step) {
        if let Some(family) = self.family.as_mut().filter(|_| !self.state.is_final()) {
            family.done_milli = family.done_milli.max(done_milli);
            self.show_family(step);
        }
    }

    /// All children that it waited for have ended: its next chunk is due, unless somebody paused it or a slot is missing.
    pub fn children_ended(&mut self, step: &mut Step) {
        self.awaits = None;
        if let Some(family) = &mut self.family {
            family.done_milli = family.weight * 1_000;
            self.show_family(step);
        }
        if matches!(self.state, State::Queued | State::Running) {
            self.due_at = step.now;
            self.wait = Some(self.waits_for());
            self.estimator.pause_clock(step.now);
            self.note(Some(self.state), "children-ended".to_owned(), step);
        }
    }

    /// A child that it waits for did not succeed, and has to: it fails with it.
    pub fn child_failed(&mut self, child: &Task, step: &mut Step) -> Result<(), Refused> {
        self.enter(Event::ChildFailed, step)?;
        let text = match (&child.error, child.state) {
            (Some(error), State::Failed) => format!("A part of it failed: {}", error.message),
            (_, State::Failed) => "A part of it failed.".to_owned(),
            _ => "A part of it was cancelled.".to_owned(),
        };
        let failure = Failure::new(ErrorKind::Handler, "child-failed", text).detail(format!("task {}", child.id));
        self.note_failure(&failure, None, step);
        self.error = Some(told_error(&failure, false, step.now));
        Ok(())
    }

    /// Whether it holds a slot of its key again when it goes on: not one that is held while a chunk runs, if it waits for its
    /// children.
    pub(super) fn takes_slot_back(&self) -> bool {
        self.awaits.is_none() || self.hold() == Some(Hold::Task)
    }

    /// It goes on after a stop. If it waits for its children, their work is its own: the clock of its estimate runs.
    pub(super) fn go_on_waiting(&mut self, step: &Step) {
        if self.awaits.is_some() {
            self.estimator.resume_clock(step.now);
        }
    }

    /// Whether its open children are to be cancelled: somebody cancels it, or it failed while it waited for them. A parent
    /// that succeeds, or fails by itself, leaves them be.
    #[must_use]
    pub fn takes_children_down(&self) -> bool {
        self.family.is_some()
            && match self.state {
                State::Cancelling | State::Cancelled => true,
                State::Failed => self.awaits.is_some(),
                _ => false,
            }
    }

    /// Whether a resume of it, as it is now, brings a child back, as that is now: one that was cancelled, with a parent that
    /// was cancelled or waited; one that failed, with a parent that its failure failed.
    #[must_use]
    pub fn brings_back(&self, child: &Task) -> bool {
        match child.state {
            State::Cancelled => {
                self.state == State::Cancelled || (self.state == State::Failed && self.awaits.is_some())
            }
            State::Failed => self.state.is_final() && self.awaits == Some(OnFailure::Fail),
            _ => false,
        }
    }

    /// A report of its own handler, joined with what its children have done; `None` for a task without children.
    pub(super) fn with_children(&mut self, report: &Reported) -> Option<Reported> {
        let family = self.family.as_mut()?;
        family.tell(report.current, report.total);
        let (current, total) = family.shown();
        Some(Reported { current: Some(current), total: Some(total), ..report.clone() })
    }

    fn show_family(&mut self, step: &mut Step) {
        self.take_report(&Reported::default(), step);
    }
}
