//! What a person asks of a task: cancel, pause, resume. Asking again for what is asked or so already changes nothing.

use super::super::ids::TaskId;
use super::super::progress::tidy;
use super::super::task::{State, StopRequest, Task, WaitReason, limits};
use super::super::transition::{Event, Refused, next};
use super::{Ask, NO_PROGRESS, Step};

impl Task {
    /// A person asks. `Ok(false)`: it was asked before, or is so already; nothing changes. `key_full` tells a resume that
    /// its concurrency key has no free slot, and who is ahead.
    pub fn ask(
        &mut self,
        ask: Ask,
        reason: Option<&str>,
        key_full: Option<Option<TaskId>>,
        step: &mut Step,
    ) -> Result<bool, Refused> {
        let because = reason.map(|r| tidy(r, limits::REASON_CHARS));
        let because = because.as_deref();
        match (ask, self.state) {
            (Ask::Pause, _) if self.held_by_pack() => {
                self.keep_paused(step);
                Ok(true)
            }
            (Ask::Resume, state) if self.held_by_pack() => Err(Refused { state, event: Event::Resume }),
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

    fn resume(&mut self, key_full: Option<Option<TaskId>>, step: &mut Step) -> Result<bool, Refused> {
        let takes_slot = self.takes_slot_back();
        let key_full = key_full.filter(|_| !self.slot_held && takes_slot);
        self.enter(if key_full.is_some() { Event::ResumeBlocked } else { Event::Resume }, step)?;
        (self.attempts, self.failures, self.reclaims, self.idle_chunks) = (0, 0, 0, 0);
        // The error stays until the next committed chunk, so that the handler can know what it stopped at.
        (self.finished_at, self.deadline) = (None, None);
        (self.seen_at, self.read_at, self.archived_at) = (None, None, None);
        self.warnings.retain(|w| w != NO_PROGRESS);
        self.due_at = step.now.max(self.run_at);
        self.gated = key_full.is_some();
        self.blocked_by = key_full.flatten();
        self.slot_held = self.concurrency.is_some() && takes_slot && key_full.is_none();
        self.wait = Some(if self.gated { WaitReason::Concurrency } else { self.waits_for() });
        self.go_on_waiting(step);
        Ok(true)
    }
}
