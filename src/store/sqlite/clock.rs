//! The clock of a SQLite file: that of the machine, which SQLite would ask too, except that it never goes back.
//!
//! A wall clock that is set back by hours must not stop due tasks and leases for hours. So time goes on from the latest
//! reading at the pace of the monotonic clock until the wall clock has caught up; one that is set forward is followed at
//! once. After a restart the wall clock is all there is.

use crate::core::time::Millis;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The clock of one opened file; its clones are the same clock.
#[derive(Clone, Debug)]
pub(super) struct FileClock {
    shift_ms: Arc<AtomicI64>,
    held: bool,
    started: Instant,
    latest: Arc<Mutex<Latest>>,
}

/// The latest instant, and when it was by the monotonic clock; ms.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    now_ms: i64,
    mono_ms: i64,
}

impl Latest {
    /// Goes on from the latest instant, or jumps to the wall clock where that is ahead.
    fn read(&mut self, wall_ms: i64, mono_ms: i64) -> i64 {
        let passed_ms = (mono_ms - self.mono_ms).max(0);
        *self = Self { now_ms: wall_ms.max(self.now_ms.saturating_add(passed_ms)), mono_ms };
        self.now_ms
    }
}

impl FileClock {
    /// `shift_ms` moves it; `held` makes that alone the time.
    pub(super) fn new(shift_ms: Arc<AtomicI64>, held: bool) -> Self {
        Self { shift_ms, held, started: Instant::now(), latest: Arc::default() }
    }

    pub(super) fn now(&self) -> Millis {
        let shift_ms = self.shift_ms.load(Ordering::Relaxed);
        if self.held {
            return Millis(shift_ms);
        }
        let ms = |span: std::time::Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        let wall_ms = ms(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        Millis(latest.read(wall_ms, ms(self.started.elapsed())).saturating_add(shift_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    #[test]
    fn a_wall_clock_that_is_set_back_neither_stops_time_nor_turns_it_back() {
        let mut clock = Latest::default();
        assert_eq!(clock.read(10 * HOUR_MS, 0), 10 * HOUR_MS);
        assert_eq!(clock.read(8 * HOUR_MS, 0), 10 * HOUR_MS);
        assert_eq!(clock.read(8 * HOUR_MS + 5_000, 5_000), 10 * HOUR_MS + 5_000, "a lease ends when it should");
        assert_eq!(clock.read(11 * HOUR_MS, 6_000), 11 * HOUR_MS, "one that is set forward is followed");
    }

    #[test]
    fn small_steps_add_up_to_the_time_that_has_passed() {
        let mut clock = Latest::default();
        clock.read(HOUR_MS, 0);
        for mono_ms in 1..=10_000 {
            clock.read(0, mono_ms);
        }
        assert_eq!(clock.now_ms, HOUR_MS + 10_000);
    }
}
