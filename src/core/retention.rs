//! How long ended tasks and their logs are kept, by outcome. Only ended tasks have an age: one that has not ended is kept
//! whatever it is, and one that was resumed counts from its next end.
//!
//! A task goes no earlier than the time over which it answers for its idempotency key; its log goes with it at the latest.
//! Lengths are milliseconds, 0 or more.

use super::task::State;
use super::time::Millis;

/// How long what is kept; each from the end of the task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Tasks that succeeded, ms.
    pub succeeded_ms: i64,
    /// Tasks that failed, ms.
    pub failed_ms: i64,
    /// Tasks that were cancelled, ms.
    pub cancelled_ms: i64,
    /// Logs of tasks that are kept longer, ms.
    pub logs_ms: i64,
}

impl Keep {
    /// How long a task of this outcome is kept; absent for one that has not ended.
    #[must_use]
    pub fn task_ms(&self, state: State) -> Option<i64> {
        match state {
            State::Succeeded => Some(self.succeeded_ms),
            State::Failed => Some(self.failed_ms),
            State::Cancelled => Some(self.cancelled_ms),
            _ => None,
        }
    }

    /// The shortest of them: what was accepted later than this ago has nothing to lose.
    #[must_use]
    pub fn shortest_ms(&self) -> i64 {
        self.succeeded_ms.min(self.failed_ms).min(self.cancelled_ms).min(self.logs_ms)
    }

    /// Whether a task's time is over. `key_ms`: how long after its success it answers for an idempotency key; 0 = for none.
    #[must_use]
    pub fn task_over(&self, end: &End, key_ms: i64, now: Millis) -> bool {
        let answers_ms = if end.state == State::Succeeded { key_ms } else { 0 };
        self.task_ms(end.state).is_some_and(|ms| now.since(end.at) >= ms.max(answers_ms))
    }

    /// Whether the time of its log is over.
    #[must_use]
    pub fn log_over(&self, end: &End, now: Millis) -> bool {
        self.task_ms(end.state).is_some_and(|ms| now.since(end.at) >= ms.min(self.logs_ms))
    }
}

/// How and when a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// A final state.
    pub state: State,
    /// When.
    pub at: Millis,
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: Keep = Keep { succeeded_ms: 30, failed_ms: 90, cancelled_ms: 60, logs_ms: 40 };

    fn over(state: State, key_ms: i64, now: i64) -> (bool, bool) {
        let end = End { state, at: Millis(1_000) };
        (KEEP.task_over(&end, key_ms, Millis(1_000 + now)), KEEP.log_over(&end, Millis(1_000 + now)))
    }

    #[test]
    fn each_outcome_has_its_own_time_and_the_log_goes_with_its_task_at_the_latest() {
        assert_eq!(over(State::Succeeded, 0, 29), (false, false));
        assert_eq!(over(State::Succeeded, 0, 30), (true, true));
        assert_eq!(over(State::Cancelled, 0, 40), (false, true));
        assert_eq!(over(State::Cancelled, 0, 60), (true, true));
        assert_eq!(over(State::Failed, 0, 89), (false, true));
        assert_eq!(over(State::Failed, 0, 90), (true, true));
        assert_eq!(KEEP.shortest_ms(), 30);
    }

    #[test]
    fn a_success_is_kept_while_it_answers_for_its_key() {
        assert_eq!(over(State::Succeeded, 50, 49), (false, true));
        assert_eq!(over(State::Succeeded, 50, 50), (true, true));
        // What did not succeed holds its key no longer.
        assert_eq!(over(State::Failed, 500, 90), (true, true));
    }

    #[test]
    fn what_has_not_ended_has_no_age() {
        for state in [State::Queued, State::Blocked, State::Running, State::Pausing, State::Paused, State::Cancelling] {
            assert_eq!(over(state, 0, i64::MAX / 2), (false, false));
        }
    }
}
