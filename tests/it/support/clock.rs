//! A clock that stands still unless a test moves it.

use std::sync::atomic::{AtomicI64, Ordering};
use taskbell::core::time::{Clock, Millis, Mono};

/// Time in the hands of a test. Starts at 2026-11-29T12:00:00Z.
pub struct StillClock(AtomicI64);

impl Default for StillClock {
    fn default() -> Self {
        Self(AtomicI64::new(1_795_953_600_000))
    }
}

impl Clock for StillClock {
    fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }

    fn mono(&self) -> Mono {
        Mono(self.0.load(Ordering::SeqCst).unsigned_abs())
    }
}
