//! The clock and the randomness that everybody is given: the only place that reads the machine's.

use crate::core::time::{Clock, Millis, Mono, Rng};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        // A machine whose clock stands before 1970 gets 1970: wrong either way, but no panic.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn mono(&self) -> Mono {
        Mono(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

/// The thread's random source.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRng;

impl Rng for SystemRng {
    fn unit(&self) -> f64 {
        rand::random()
    }
}
