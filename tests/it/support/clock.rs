//! Clocks in the hands of tests: one that stands still unless it is moved, and one that goes on and may be pushed.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime};
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

/// The machine's time, which a test may push forward.
pub struct PushedClock {
    start: Instant,
    by_ms: Arc<AtomicI64>,
}

impl Default for PushedClock {
    fn default() -> Self {
        Self { start: Instant::now(), by_ms: Arc::default() }
    }
}

impl PushedClock {
    /// What pushes it, ms.
    pub fn hand(&self) -> Arc<AtomicI64> {
        self.by_ms.clone()
    }
}

impl Clock for PushedClock {
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        Millis(since.as_millis() as i64 + self.by_ms.load(Ordering::SeqCst))
    }

    fn mono(&self) -> Mono {
        Mono(self.start.elapsed().as_millis() as u64 + self.by_ms.load(Ordering::SeqCst).unsigned_abs())
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
