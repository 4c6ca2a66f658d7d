//! Connections that are of no use any more: they lead to a server which takes no writes, or to nobody.
//!
//! After a fail-over behind one address, what was connected before may still lead to the old server, which now only reads, for
//! as long as it stays open. So a transaction that a server refuses to let write makes all connections outdated that are as
//! old as that: they are closed as they are next looked at, and new ones lead to whoever has the address now. While there is
//! nobody who takes writes that happens over and over, and so not more than once a second.
//!
//! A line that was cut without a word takes every question and answers none, and nobody tells: so a question is given up after
//! [`ANSWER_TIMEOUT`], and what was connected then is outdated.

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The longest that an answer is waited for: longer than the server lets a statement take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(35);
/// Between two times.
const PAUSE: Duration = Duration::from_secs(1);

/// Since when connections are outdated.
#[derive(Debug, Default)]
pub(in crate::store) struct Outdated {
    since: Mutex<Option<Instant>>,
}

impl Outdated {
    fn since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whatever is connected now is outdated.
    pub(super) fn note(&self) {
        let mut since = self.since();
        if since.is_none_or(|at| at.elapsed() >= PAUSE) {
            *since = Some(Instant::now());
        }
    }

    /// Whether a connection of this age is.
    pub(super) fn holds(&self, age: Duration) -> bool {
        self.since().is_some_and(|at| at.elapsed() <= age)
    }

    /// Asks something, and waits for the answer only so long.
    pub(super) async fn answer<T>(
        &self,
        question: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        self.answer_within(ANSWER_TIMEOUT, question).await
    }

    async fn answer_within<T>(
        &self,
        limit: Duration,
        question: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        tokio::time::timeout(limit, question).await.unwrap_or_else(|_| {
            self.note();
            Err(sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, "the database does not answer")))
        })
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
        let since = *outdated.since();
        outdated.note();
        assert_eq!(*outdated.since(), since);
    }

    #[tokio::test]
    async fn a_question_that_nobody_answers_ends_and_outdates_what_is_connected() {
        let outdated = Outdated::default();
        let soon = Duration::from_millis(10);
        assert!(outdated.answer_within(soon, async { Ok(1) }).await.is_ok_and(|answer| answer == 1));
        assert!(!outdated.holds(Duration::from_secs(3_600)));
        let silent = outdated.answer_within(soon, std::future::pending::<Result<(), _>>()).await;
        assert!(matches!(silent, Err(sqlx::Error::Io(_))));
        assert!(outdated.holds(Duration::from_secs(3_600)));
    }
}
