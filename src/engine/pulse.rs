//! How a node is doing: what its loops and its claims last did, for the registry of nodes.
//!
//! Must never decide anything, and never wait: whoever notes something here goes on at once.

use crate::core::node::{FAULT_CHARS, Fault, LoopHealth, Standing};
use crate::core::time::Millis;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A loop that should have turned so many times over counts as standing still.
const PERIODS: i64 = 3;
/// What a turn may take on top of that, ms.
const TURN_MS: i64 = 10_000;

/// What is noted. Shared by a node's loops and whoever tells of them.
#[derive(Debug, Default)]
pub struct Pulse(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    claimed: i64,
    executed: i64,
    last_claim_at: Option<Millis>,
    last_claim_error: Option<Fault>,
    loops: Vec<Loop>,
}

#[derive(Debug)]
struct Loop {
    name: &'static str,
    every_ms: i64,
    turned_at: Option<Millis>,
    starts: i64,
}

impl Pulse {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There is a loop that turns so often, ms.
    pub(super) fn expect(&self, name: &'static str, every_ms: u64) {
        let every_ms = i64::try_from(every_ms).unwrap_or(i64::MAX / PERIODS);
        self.noted().loops.push(Loop { name, every_ms, turned_at: None, starts: 0 });
    }

    /// A loop begins a turn.
    pub(super) fn turns(&self, name: &str, now: Millis) {
        if let Some(one) = self.noted().loops.iter_mut().find(|one| one.name == name) {
            one.turned_at = Some(now);
        }
    }

    /// A loop is started; each time but the first, because it broke down.
    pub(super) fn starts(&self, name: &str) {
        if let Some(one) = self.noted().loops.iter_mut().find(|one| one.name == name) {
            one.starts += 1;
        }
    }

    /// A claim took so many chunks.
    pub(super) fn claimed(&self, count: usize, now: Millis) {
        if count > 0 {
            let mut noted = self.noted();
            noted.claimed = noted.claimed.saturating_add(i64::try_from(count).unwrap_or(i64::MAX));
            noted.last_claim_at = Some(now);
        }
    }

    /// A claim failed.
    pub(super) fn claim_failed(&self, why: &str, now: Millis) {
        let message = why.chars().take(FAULT_CHARS).collect();
        self.noted().last_claim_error = Some(Fault { at: now, message });
    }

    /// A chunk was brought to an end.
    pub(super) fn executed(&self) {
        let mut noted = self.noted();
        noted.executed = noted.executed.saturating_add(1);
    }

    /// What there is to tell of it.
    #[must_use]
    pub fn standing(&self, now: Millis) -> Standing {
        let noted = self.noted();
        let health = |one: &Loop| LoopHealth {
            name: one.name.to_owned(),
            ok: one.turned_at.is_some_and(|at| now.since(at) <= one.every_ms.saturating_mul(PERIODS) + TURN_MS),
            turned_at: one.turned_at,
            breakdowns: (one.starts - 1).max(0),
        };
        Standing {
            claimed: noted.claimed,
            executed: noted.executed,
            last_claim_at: noted.last_claim_at,
            last_claim_error: noted.last_claim_error.clone(),
            loops: noted.loops.iter().map(health).collect(),
            ..Standing::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_stands_still_is_told_and_so_is_the_last_fault_of_a_claim() {
        let pulse = Pulse::default();
        pulse.expect("claim", 1_000);
        assert!(!pulse.standing(Millis(0)).loops[0].ok, "it has not begun");
        pulse.turns("claim", Millis(0));
        assert!(pulse.standing(Millis(13_000)).loops[0].ok);
        assert!(!pulse.standing(Millis(13_001)).loops[0].ok);
        pulse.claimed(0, Millis(5));
        pulse.claimed(2, Millis(7));
        pulse.claim_failed(&"x".repeat(1_000), Millis(9));
        pulse.executed();
        pulse.starts("claim");
        pulse.starts("claim");
        let told = pulse.standing(Millis(10));
        assert_eq!((told.claimed, told.executed, told.last_claim_at), (2, 1, Some(Millis(7))));
        assert_eq!(told.loops[0].breakdowns, 1);
        let fault = told.last_claim_error.unwrap();
        assert_eq!((fault.at, fault.message.chars().count()), (Millis(9), FAULT_CHARS));
    }
}
