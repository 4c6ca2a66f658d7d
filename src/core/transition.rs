//! The transition table: which state follows which event, and the word that the timeline records for it.
//!
//! ```text
//!            submit            claim                 done
//!   (none) ─────────▶ queued ─────────▶ running ─────────────▶ succeeded
//!      │               ▲  ▲               │ ▲ │
//!      │ key full      │  └── retry ──────┘ │ ├─ failure ─────▶ failed ────┐
//!      ▼     slot free │                    │ │                            │ resume: queued, or blocked
//!   blocked ───────────┘        more, delay └─┤ cancel asked               │ when its key is full
//!                                             ├──────▶ cancelling ─▶ cancelled ─┤
//!                                             │ pause asked                │
//!                                             └──────▶ pausing ────▶ paused ────┘
//! ```
//!
//! Everything not listed in [`TABLE`] is refused and changes nothing. "Under way" means that a chunk holds the lease.
//! docs/states.md shows the same table for people; a test holds the two together.

use super::task::State;

/// What can happen to a task after it was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A slot of its concurrency key is free.
    SlotFree,
    /// Its key turned out to be full when it was to be claimed.
    KeyFull,
    /// A node takes the next chunk.
    Claim,
    /// The chunk committed and says that there is more.
    More,
    /// The chunk committed and says that the work is done.
    Done,
    /// The chunk failed and attempts are left.
    Retry,
    /// The chunk failed for good: permanent, attempts or budget used up, bad outcome.
    Fail,
    /// A child that it waits for did not succeed, and must.
    ChildFailed,
    /// The deadline of the whole task is over.
    DeadlineOver,
    /// The lease ran out and the sweep took it.
    LeaseLost,
    /// The lease ran out once too often.
    LeasesUsedUp,
    /// The node drains and hands the task back.
    Drained,
    /// Somebody asks for a cancel.
    Cancel,
    /// Somebody asks for a pause.
    Pause,
    /// An operator cancels without waiting for the chunk.
    ForceCancel,
    /// A cancel was asked and the chunk has not answered within its grace.
    GraceOver,
    /// Somebody resumes it from its checkpoint.
    Resume,
    /// As resume, but its concurrency key is full.
    ResumeBlocked,
    /// Its pack was switched off.
    PackOff,
    /// Its pack, which held it, was switched on.
    PackOn,
    /// The same, but its concurrency key is full.
    PackOnBlocked,
}

impl Event {
    /// All events.
    pub const ALL: [Self; 21] = [
        Self::SlotFree,
        Self::KeyFull,
        Self::Claim,
        Self::More,
        Self::Done,
        Self::Retry,
        Self::Fail,
        Self::ChildFailed,
        Self::DeadlineOver,
        Self::LeaseLost,
        Self::LeasesUsedUp,
        Self::Drained,
        Self::Cancel,
        Self::Pause,
        Self::ForceCancel,
        Self::GraceOver,
        Self::Resume,
        Self::ResumeBlocked,
        Self::PackOff,
        Self::PackOn,
        Self::PackOnBlocked,
    ];
}

/// One arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// State before.
    pub from: State,
    /// Whether a chunk has to hold the lease.
    pub under_way: bool,
    /// What happens.
    pub event: Event,
    /// State after.
    pub to: State,
    /// The word in the timeline.
    pub reason: &'static str,
}

const fn arrow(from: State, under_way: bool, event: Event, to: State, reason: &'static str) -> Arrow {
    Arrow { from, under_way, event, to, reason }
}

const FREE: bool = false;
const UNDER_WAY: bool = true;
use State::{Blocked, Cancelled, Cancelling, Failed, Paused, Pausing, Queued, Running, Succeeded};

/// Every arrow there is.
pub const TABLE: &[Arrow] = &[
    // Waiting for the first chunk, or for the next attempt of one.
    arrow(Queued, FREE, Event::Claim, Running, "claimed"),
    arrow(Queued, FREE, Event::KeyFull, Blocked, "concurrency"),
    arrow(Queued, FREE, Event::ChildFailed, Failed, "child-failed"),
    arrow(Queued, FREE, Event::DeadlineOver, Failed, "deadline"),
    arrow(Queued, FREE, Event::Cancel, Cancelled, "cancel"),
    arrow(Queued, FREE, Event::Pause, Paused, "pause"),
    arrow(Queued, FREE, Event::PackOff, Paused, "pack"),
    // Behind others of its key.
    arrow(Blocked, FREE, Event::SlotFree, Queued, "slot-free"),
    arrow(Blocked, FREE, Event::ChildFailed, Failed, "child-failed"),
    arrow(Blocked, FREE, Event::DeadlineOver, Failed, "deadline"),
    arrow(Blocked, FREE, Event::Cancel, Cancelled, "cancel"),
    arrow(Blocked, FREE, Event::Pause, Paused, "pause"),
    arrow(Blocked, FREE, Event::PackOff, Paused, "pack"),
    // Running, in a gap between two chunks. A key held per chunk may be full or free again here.
    arrow(Running, FREE, Event::Claim, Running, "claimed"),
    arrow(Running, FREE, Event::KeyFull, Running, "concurrency"),
    arrow(Running, FREE, Event::SlotFree, Running, "slot-free"),
    arrow(Running, FREE, Event::ChildFailed, Failed, "child-failed"),
    arrow(Running, FREE, Event::DeadlineOver, Failed, "deadline"),
    arrow(Running, FREE, Event::Cancel, Cancelled, "cancel"),
    arrow(Running, FREE, Event::Pause, Paused, "pause"),
    arrow(Running, FREE, Event::PackOff, Paused, "pack"),
    arrow(Running, FREE, Event::ForceCancel, Cancelled, "forced"),
    // Running, a chunk under way.
    arrow(Running, UNDER_WAY, Event::More, Running, "more"),
    arrow(Running, UNDER_WAY, Event::Done, Succeeded, "done"),
    arrow(Running, UNDER_WAY, Event::Retry, Queued, "retry"),
    arrow(Running, UNDER_WAY, Event::Fail, Failed, "failed"),
    arrow(Running, UNDER_WAY, Event::DeadlineOver, Failed, "deadline"),
    arrow(Running, UNDER_WAY, Event::LeaseLost, Running, "lease-lost"),
    arrow(Running, UNDER_WAY, Event::LeasesUsedUp, Failed, "lease-lost"),
    arrow(Running, UNDER_WAY, Event::Drained, Running, "drained"),
    arrow(Running, UNDER_WAY, Event::Cancel, Cancelling, "cancel"),
    arrow(Running, UNDER_WAY, Event::Pause, Pausing, "pause"),
    arrow(Running, UNDER_WAY, Event::PackOff, Pausing, "pack"),
    arrow(Running, UNDER_WAY, Event::ForceCancel, Cancelled, "forced"),
    // A pause was asked; the chunk has not ended yet.
    arrow(Pausing, UNDER_WAY, Event::More, Paused, "paused"),
    arrow(Pausing, UNDER_WAY, Event::Done, Succeeded, "done"),
    arrow(Pausing, UNDER_WAY, Event::Retry, Paused, "paused"),
    arrow(Pausing, UNDER_WAY, Event::Fail, Failed, "failed"),
    arrow(Pausing, UNDER_WAY, Event::DeadlineOver, Failed, "deadline"),
    arrow(Pausing, UNDER_WAY, Event::LeaseLost, Paused, "lease-lost"),
    arrow(Pausing, UNDER_WAY, Event::LeasesUsedUp, Failed, "lease-lost"),
    arrow(Pausing, UNDER_WAY, Event::Drained, Paused, "drained"),
    arrow(Pausing, UNDER_WAY, Event::Cancel, Cancelling, "cancel"),
    arrow(Pausing, UNDER_WAY, Event::Resume, Running, "resume"),
    arrow(Pausing, UNDER_WAY, Event::PackOn, Running, "pack"),
    arrow(Pausing, UNDER_WAY, Event::ForceCancel, Cancelled, "forced"),
    // Paused at its checkpoint.
    arrow(Paused, FREE, Event::Cancel, Cancelled, "cancel"),
    arrow(Paused, FREE, Event::ChildFailed, Failed, "child-failed"),
    arrow(Paused, FREE, Event::DeadlineOver, Failed, "deadline"),
    arrow(Paused, FREE, Event::Resume, Queued, "resume"),
    arrow(Paused, FREE, Event::ResumeBlocked, Blocked, "resume"),
    arrow(Paused, FREE, Event::PackOn, Queued, "pack"),
    arrow(Paused, FREE, Event::PackOnBlocked, Blocked, "pack"),
    // A cancel was asked; only a committed end still wins against it.
    arrow(Cancelling, UNDER_WAY, Event::More, Cancelled, "cancelled"),
    arrow(Cancelling, UNDER_WAY, Event::Done, Succeeded, "done"),
    arrow(Cancelling, UNDER_WAY, Event::Retry, Cancelled, "cancelled"),
    arrow(Cancelling, UNDER_WAY, Event::Fail, Cancelled, "cancelled"),
    arrow(Cancelling, UNDER_WAY, Event::DeadlineOver, Cancelled, "cancelled"),
    arrow(Cancelling, UNDER_WAY, Event::LeaseLost, Cancelled, "lease-lost"),
    arrow(Cancelling, UNDER_WAY, Event::LeasesUsedUp, Cancelled, "lease-lost"),
    arrow(Cancelling, UNDER_WAY, Event::Drained, Cancelled, "drained"),
    arrow(Cancelling, UNDER_WAY, Event::ForceCancel, Cancelled, "forced"),
    arrow(Cancelling, UNDER_WAY, Event::GraceOver, Cancelled, "forced"),
    // Ended. Success is for ever.
    arrow(Failed, FREE, Event::Resume, Queued, "resume"),
    arrow(Failed, FREE, Event::ResumeBlocked, Blocked, "resume"),
    arrow(Cancelled, FREE, Event::Resume, Queued, "resume"),
    arrow(Cancelled, FREE, Event::ResumeBlocked, Blocked, "resume"),
];

/// The event does not fit the state; nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{event:?} is not possible while {}", state.as_str())]
pub struct Refused {
    /// The state it is in.
    pub state: State,
    /// What was asked.
    pub event: Event,
}

/// The arrow for an event, or why there is none.
pub fn next(state: State, under_way: bool, event: Event) -> Result<Arrow, Refused> {
    TABLE
        .iter()
        .find(|a| a.from == state && a.event == event && a.under_way == under_way)
        .copied()
        .ok_or(Refused { state, event })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_one_arrow_per_state_chunk_and_event() {
        for (i, a) in TABLE.iter().enumerate() {
            for b in &TABLE[i + 1..] {
                assert!(!(a.from == b.from && a.event == b.event && a.under_way == b.under_way), "{a:?} and {b:?}");
            }
        }
    }

    /// Proves: G15.
    #[test]
    fn every_pair_that_is_not_listed_is_refused() {
        let mut refused = 0;
        for state in State::ALL {
            for under_way in [false, true] {
                for event in Event::ALL {
                    let listed = TABLE.iter().find(|a| (a.from, a.under_way, a.event) == (state, under_way, event));
                    match (next(state, under_way, event), listed) {
                        (Ok(got), Some(want)) => assert_eq!(got, *want),
                        (Err(e), None) => {
                            assert_eq!(e, Refused { state, event });
                            refused += 1;
                        }
                        (got, want) => panic!("{state:?} {under_way} {event:?}: {got:?}, listed {want:?}"),
                    }
                }
            }
        }
        assert_eq!(refused + TABLE.len(), 9 * 2 * 21);
    }

    #[test]
    fn the_documentation_lists_exactly_these_arrows() {
        let documented: Vec<(String, bool, String, String, String)> = include_str!("../../docs/states.md")
            .lines()
            .skip_while(|l| !l.starts_with("| from | chunk |"))
            .skip(2)
            .take_while(|l| l.starts_with('|'))
            .map(|l| {
                let cells: Vec<&str> = l.split('|').map(|c| c.trim().trim_matches('`')).collect();
                let event = cells[3].rsplit_once("(`").unwrap().1.trim_end_matches("`)");
                (cells[1].into(), cells[2] == "under way", event.into(), cells[4].into(), cells[5].into())
            })
            .collect();
        let ours: Vec<_> = TABLE
            .iter()
            .map(|a| {
                (
                    a.from.as_str().to_owned(),
                    a.under_way,
                    format!("{:?}", a.event),
                    a.to.as_str().to_owned(),
                    a.reason.to_owned(),
                )
            })
            .collect();
        assert_eq!(documented, ours);
    }

    /// Proves: G15.
    #[test]
    fn a_final_state_changes_only_by_resume_and_success_never() {
        for a in TABLE.iter().filter(|a| a.from.is_final()) {
            assert!(matches!(a.event, Event::Resume | Event::ResumeBlocked));
            assert_ne!(a.from, Succeeded);
        }
    }

    #[test]
    fn every_state_but_success_can_be_left() {
        for state in State::ALL.into_iter().filter(|s| *s != Succeeded) {
            assert!(TABLE.iter().any(|a| a.from == state && a.to != state), "{state:?} is a trap");
        }
    }
}
