//! Trying a verb again after an expected conflict: two nodes gave the same key away, or locked rows in orders that cannot
//! both be had. The database has undone the whole transaction then, so the verb begins anew and decides on what is there now.
//!
//! Conflicts are many and short, so their budget is large and its waits are short. Other transient faults (no connection, a
//! database that is away) are not tried again here: whoever called knows how long it may wait.

use super::StoreError;
use crate::core::metric;
use metrics::counter;
use std::time::Duration;

/// The most tries of one verb.
const TRIES: u32 = 30;
/// The longest wait before the n-th further try grows by this much with each.
const STEP_MS: u64 = 2;
/// The longest wait.
const LONGEST_MS: u64 = 50;

/// What one call of a verb may spend on conflicts.
#[derive(Debug, Default)]
pub(super) struct Budget {
    spent: u32,
}

impl Budget {
    /// Whether this is a further try.
    pub(super) fn again(&self) -> bool {
        self.spent > 0
    }

    /// Whether the verb begins anew after this fault; waits for its turn where it does. The second try comes at once, the
    /// next ones after a random wait, so that those who met do not meet again.
    pub(super) async fn allows(&mut self, fault: &StoreError) -> bool {
        if !matches!(fault, StoreError::Conflict(_)) {
            return false;
        }
        let again = self.spent + 1 < TRIES;
        counter!(metric::CONFLICTS, "then" => if again { "again" } else { "given-up" }).increment(1);
        if !again {
            return false;
        }
        if self.spent > 0 {
            let longest = LONGEST_MS.min(STEP_MS * u64::from(self.spent));
            tokio::time::sleep(Duration::from_millis(rand::random_range(0..=longest))).await;
        }
        self.spent += 1;
        true
    }
}

/// Runs a verb until it succeeds, fails for good, or its budget is spent. `$budget` names the budget inside the verb.
macro_rules! until_settled {
    ($budget:ident, $verb:expr) => {{
        let mut $budget = $crate::store::retry::Budget::default();
        loop {
            match $verb {
                Err(fault) if $budget.allows(&fault).await => tracing::debug!(%fault, "a verb begins anew"),
                settled => break settled,
            }
        }
    }};
}

pub(super) use until_settled;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_conflict_is_tried_again_until_the_budget_is_spent_and_nothing_else_is() {
        let mut tries = 0;
        let settled: Result<(), StoreError> = until_settled!(budget, {
            tries += 1;
            assert_eq!(budget.again(), tries > 1);
            Err(StoreError::Conflict("met".into()))
        });
        assert!(matches!(settled, Err(StoreError::Conflict(_))));
        assert_eq!(tries, TRIES);
        for other in [StoreError::Unavailable("away".into()), StoreError::Busy("full".into()), StoreError::Stale] {
            assert!(!Budget::default().allows(&other).await, "{other}");
        }
    }
}
