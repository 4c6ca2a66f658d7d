//! A clock that stands still unless a test moves it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use taskbell::core::time::{Clock, Millis, Mono};

/// Time in the hands of a test. Starts at 2026-11-29T12:00:00Z.
pub struct StillClock(Arc<AtomicI64>);

impl Default for StillClock {
    fn default() -> Self {
        Self(Arc::new(AtomicI64::new(1_795_953_600_000)))
    }
}

impl StillClock {
    /// What moves it: ms since 1970.
    pub fn hand(&self) -> Arc<AtomicI64> {
        self.0.clone()
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
