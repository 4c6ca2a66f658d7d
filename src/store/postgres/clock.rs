//! The clock of the database server. Every transaction that begins with a question hears what time it is there; one that is to be
//! a single statement reckons on from what was heard a moment ago, and so need not ask.
//!
//! What is reckoned lies behind the server's time by what an answer takes to come, and so never ahead of it, but for how much
//! faster than the server's our own clock goes in half a second.

use crate::core::time::Millis;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the server's time is reckoned on.
const RECKONED: Duration = Duration::from_millis(500);

/// The clock of the database server, which a test may move or hold.
#[derive(Clone, Debug)]
pub struct Clock {
    shift_ms: Arc<AtomicI64>,
    held: bool,
    /// What the server said last, ms, and when it was heard.
    heard: Arc<Mutex<Option<(Instant, i64)>>>,
}

impl Clock {
    pub(super) fn new(shift_ms: Arc<AtomicI64>, held: bool) -> Self {
        Self { shift_ms, held, heard: Arc::default() }
    }

    fn last_heard(&self) -> MutexGuard<'_, Option<(Instant, i64)>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The instant at which it is held.
    pub(super) fn held(&self) -> Option<Millis> {
        self.held.then(|| self.shifted(0))
    }

    /// What the server says now, moved.
    pub(super) fn hears(&self, server_ms: i64) -> Millis {
        *self.last_heard() = Some((Instant::now(), server_ms));
        self.shifted(server_ms)
    }

    /// The server's time without asking it, if it has told it a moment ago.
    pub(super) fn reckoned(&self) -> Option<Millis> {
        self.held().or_else(|| {
            let (at, server_ms) = (*self.last_heard())?;
            let passed = at.elapsed();
            (passed < RECKONED).then(|| self.shifted(server_ms + passed.as_millis() as i64))
        })
    }

    fn shifted(&self, server_ms: i64) -> Millis {
        Millis(server_ms.saturating_add(self.shift_ms.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_time_is_reckoned_on_for_a_moment_and_then_asked_for() {
        let clock = Clock::new(Arc::new(AtomicI64::new(5)), false);
        assert_eq!(clock.reckoned(), None, "nothing was heard yet");
        assert_eq!(clock.hears(1_000), Millis(1_005));
        let long_ago = Instant::now().checked_sub(RECKONED).unwrap();
        *clock.last_heard() = Some((long_ago, 1_000));
        assert_eq!(clock.reckoned(), None);
        let passed = Duration::from_millis(100);
        *clock.last_heard() = Some((Instant::now().checked_sub(passed).unwrap(), 1_000));
        assert!(clock.reckoned().is_none_or(|now| now >= Millis(1_105)));
    }

    #[test]
    fn a_clock_that_is_held_stands_still() {
        let shift = Arc::new(AtomicI64::new(7));
        let clock = Clock::new(shift.clone(), true);
        clock.hears(1_000);
        assert_eq!((clock.held(), clock.reckoned()), (Some(Millis(7)), Some(Millis(7))));
        shift.store(9, Ordering::Relaxed);
        assert_eq!(clock.reckoned(), Some(Millis(9)));
    }
}
