//! Connections that lead to a server which takes no writes any more.
//!
//! After a fail-over behind one address, what was connected before may still lead to the old server, which now only reads, for
//! as long as it stays open. So a transaction that a server refuses to let write makes all connections outdated that are as
//! old as that: they are closed as they are next looked at, and new ones lead to whoever has the address now. While there is
//! nobody who takes writes that happens over and over, and so not more than once a second.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two times.
const PAUSE: Duration = Duration::from_secs(1);

/// Since when connections are outdated.
#[derive(Debug, Default)]
pub(super) struct Outdated(Mutex<Option<Instant>>);

impl Outdated {
    /// Whatever is connected now is outdated.
    pub(super) fn note(&self) {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if since.is_none_or(|at| at.elapsed() >= PAUSE) {
            *since = Some(Instant::now());
        }
    }

    /// Whether a connection of this age is.
    pub(super) fn holds(&self, age: Duration) -> bool {
        let since = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        since.is_some_and(|at| at.elapsed() <= age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_connected_before_is_outdated_and_what_comes_after_is_not() {
        let outdated = Outdated::default();
        assert!(!outdated.holds(Duration::from_secs(3_600)));
        outdated.note();
        assert!(outdated.holds(Duration::from_secs(3_600)));
        assert!(!outdated.holds(Duration::ZERO));
    }

    #[test]
    fn a_server_that_goes_on_refusing_does_not_outdate_each_connection_as_it_comes() {
        let outdated = Outdated::default();
        outdated.note();
        let since = *outdated.0.lock().unwrap();
        outdated.note();
        assert_eq!(*outdated.0.lock().unwrap(), since);
    }
}
