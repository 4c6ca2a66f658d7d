//! What a switched pack does to its tasks. Off: they are paused, those with a chunk under way at its end. On: exactly those go
//! on, with the attempts and the due instant that they had; what a person paused stays paused.
//!
//! Whether a pause is the pack's or a person's is told by `wait`: [`WaitReason::PackDisabled`] from the switch on, also while
//! the chunk under way comes to its end. A person who pauses such a task makes the pause a person's.

use super::super::ids::TaskId;
use super::super::task::{State, StopRequest, Task, WaitReason};
use super::super::transition::{Event, Refused, next};
use super::Step;

impl Task {
    /// Whether its pack keeps it from going on.
    #[must_use]
    pub fn held_by_pack(&self) -> bool {
        matches!(self.state, State::Pausing | State::Paused) && self.wait == Some(WaitReason::PackDisabled)
    }

    /// Its pack was switched off. `false` when there is nothing to stop.
    pub fn pack_off(&mut self, step: &mut Step) -> Result<bool, Refused> {
        if !matches!(self.state, State::Queued | State::Blocked | State::Running) {
            return Ok(false);
        }
        let under_way = self.under_way();
        next(self.state, under_way, Event::PackOff)?;
        self.wait = Some(WaitReason::PackDisabled);
        self.enter(Event::PackOff, step)?;
        if under_way {
            self.stop = Some(StopRequest { actor: "pack".to_owned(), reason: None, at: step.now });
        }
        Ok(true)
    }

    /// Its pack was switched on. `key_full` tells that its concurrency key has no free slot, and who is ahead. `false` when it
    /// is not the pack that holds it.
    pub fn pack_on(&mut self, key_full: Option<Option<TaskId>>, step: &mut Step) -> Result<bool, Refused> {
        if !self.held_by_pack() {
            return Ok(false);
        }
        if self.state == State::Pausing {
            self.enter(Event::PackOn, step)?;
            (self.wait, self.stop) = (None, None);
            return Ok(true);
        }
        let takes_slot = self.takes_slot_back();
        let key_full = key_full.filter(|_| !self.slot_held && takes_slot);
        self.enter(if key_full.is_some() { Event::PackOnBlocked } else { Event::PackOn }, step)?;
        self.gated = key_full.is_some();
        self.blocked_by = key_full.flatten();
        self.slot_held = self.concurrency.is_some() && takes_slot && key_full.is_none();
        self.wait = Some(match () {
            () if self.gated => WaitReason::Concurrency,
            () if self.awaits.is_some() => WaitReason::Children,
            () if self.due_at <= step.now => WaitReason::Capacity,
            () if self.attempts > 0 => WaitReason::Retry,
            () if self.started_at.is_none() => WaitReason::Scheduled,
            () => WaitReason::Delay,
        });
        self.go_on_waiting(step);
        Ok(true)
    }

    /// A person pauses what its pack has stopped already: it stays paused when the pack is switched on.
    pub(super) fn keep_paused(&mut self, step: &mut Step) {
        self.wait = (self.state == State::Paused).then_some(WaitReason::Paused);
        self.note(Some(self.state), "pause".to_owned(), step);
    }
}
