//! When a failed chunk is tried again, and when not any more.
//!
//! Delay n = min(cap, base · 2^(n−1)) with ±10 % jitter, so that tasks that failed together do not come back together.
//! Two counters bound the trying: failures in a row of one chunk (a committed chunk sets them back to 0), and all
//! failures of the task, so that a task which commits one chunk between two failures does not go on for ever.
//!
//! Never zero, never negative, never overflowing, whatever the attempt number: a delay of 0 is a hot loop.

use serde::{Deserialize, Serialize};

/// The longest wait that a handler may ask for: one day, as long as a planned gap between chunks may be.
pub const MAX_RETRY_AFTER_MS: i64 = 86_400_000;
/// Half of the width of the jitter.
const JITTER: f64 = 0.1;
/// All failures of a task that are allowed, in multiples of `max_attempts`.
const BUDGET_FACTOR: u32 = 10;

/// How an action's failed chunks are retried. Written by the configuration, read by the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetryPolicy {
    /// Attempts of one chunk, the first one included; at least 1.
    pub max_attempts: u32,
    /// The delay after the first failure, in ms; at least 1.
    pub base_ms: i64,
    /// The longest delay before jitter, in ms; at least `base_ms`.
    pub cap_ms: i64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 3, base_ms: 5_000, cap_ms: 300_000 }
    }
}

impl RetryPolicy {
    /// Milliseconds from the failure of attempt number `attempt` (from 1; 0 counts as 1) to the next start.
    /// `unit_random` is uniform in `[0, 1)`. A longer `retry_after_ms` wins, up to [`MAX_RETRY_AFTER_MS`].
    #[must_use]
    pub fn delay_ms(&self, attempt: u32, unit_random: f64, retry_after_ms: Option<i64>) -> i64 {
        let base = self.base_ms.max(1);
        // 2^62 times the smallest base is beyond any cap that can be reached, and still fits.
        let factor = 1_i64 << attempt.saturating_sub(1).min(62);
        let planned = base.saturating_mul(factor).min(self.cap_ms.max(base));
        let unit = if unit_random.is_finite() { unit_random.clamp(0.0, 1.0) } else { 0.5 };
        // A float cast saturates, so the largest cap stays the largest delay.
        let jittered = (planned as f64 * (1.0 - JITTER + 2.0 * JITTER * unit)) as i64;
        let asked = retry_after_ms.unwrap_or(0).min(MAX_RETRY_AFTER_MS);
        jittered.max(asked).max(1)
    }

    /// All failures that the whole task may use before it fails for good.
    #[must_use]
    pub fn failure_budget(&self) -> u32 {
        self.max_attempts.max(1).saturating_mul(BUDGET_FACTOR)
    }

    /// Whether another attempt is left after `attempt` attempts of this chunk failed and the task had `failures` in all.
    #[must_use]
    pub fn allows_another(&self, attempt: u32, failures: u32) -> bool {
        attempt < self.max_attempts.max(1) && failures < self.failure_budget()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIDDLE: f64 = 0.5;

    #[test]
    fn delays_double_from_the_base_up_to_the_cap() {
        let policy = RetryPolicy::default();
        let delays: Vec<_> = (1..=8).map(|n| policy.delay_ms(n, MIDDLE, None)).collect();
        assert_eq!(delays, [5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
        assert_eq!(policy.delay_ms(0, MIDDLE, None), 5_000);
    }

    /// Row: H1.
    #[test]
    fn no_attempt_number_wraps_the_delay_to_nothing() {
        let policy = RetryPolicy { base_ms: 30_000, cap_ms: 3_600_000, ..RetryPolicy::default() };
        let mut last = 0;
        for attempt in (1..=100).chain([i32::MAX as u32, u32::MAX]) {
            let (low, high) = (policy.delay_ms(attempt, 0.0, None), policy.delay_ms(attempt, 1.0, None));
            assert!(low >= policy.base_ms / 2 && high <= policy.cap_ms * 11 / 10, "{attempt}: {low}..{high}");
            let middle = policy.delay_ms(attempt, MIDDLE, None);
            assert!(middle >= last, "{attempt}");
            last = middle;
        }
    }

    /// Row: H1.
    #[test]
    fn a_handler_that_always_fails_is_not_hammered() {
        let policy = RetryPolicy { max_attempts: 1_000, base_ms: 30_000, cap_ms: 3_600_000 };
        let starts: Vec<_> = (1..1_000)
            .scan(0, |at, attempt| {
                *at += policy.delay_ms(attempt, 0.0, None);
                Some(*at)
            })
            .collect();
        let end = starts[starts.len() - 1];
        assert!(starts.iter().filter(|at| **at > end - 60_000).count() < 3);
    }

    #[test]
    fn a_longer_wish_of_the_handler_wins_and_a_shorter_one_does_not() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.delay_ms(1, MIDDLE, Some(30_000)), 30_000);
        for shorter in [1, 0, -7, i64::MIN] {
            assert_eq!(policy.delay_ms(1, MIDDLE, Some(shorter)), 5_000);
        }
        assert_eq!(policy.delay_ms(1, MIDDLE, Some(i64::MAX)), MAX_RETRY_AFTER_MS);
    }

    #[test]
    fn attempts_in_a_row_and_failures_in_all_are_both_bounded() {
        let policy = RetryPolicy::default();
        assert!(policy.allows_another(2, 2) && !policy.allows_another(3, 3));
        assert!(policy.allows_another(1, 29) && !policy.allows_another(1, 30));
        let never = RetryPolicy { max_attempts: 0, ..policy };
        assert!(!never.allows_another(1, 1));
        assert_eq!(RetryPolicy { max_attempts: u32::MAX, ..policy }.failure_budget(), u32::MAX);
    }

    proptest! {
        #[test]
        fn every_delay_is_positive_and_within_its_bounds(
            attempt in any::<u32>(), base_ms in any::<i64>(), cap_ms in any::<i64>(), unit in any::<f64>(),
        ) {
            let policy = RetryPolicy { max_attempts: 3, base_ms, cap_ms };
            let delay = policy.delay_ms(attempt, unit, None);
            let (base, cap) = (base_ms.max(1), cap_ms.max(base_ms).max(1));
            prop_assert!(delay >= 1 && delay >= base / 2);
            prop_assert!(delay as f64 <= cap as f64 * 1.1 + 1.0);
        }

        #[test]
        fn one_more_failure_never_shortens_the_wait(attempt in 1..200_u32, unit in 0.0..1.0_f64, base_ms in 1..100_000_i64) {
            let policy = RetryPolicy { base_ms, ..RetryPolicy::default() };
            prop_assert!(policy.delay_ms(attempt + 1, unit, None) >= policy.delay_ms(attempt, unit, None));
        }
    }
}
