//! Waiting for a condition with a limit: the only way in which a test may let time pass.

use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often the condition is looked at.
const STEP: Duration = Duration::from_millis(5);

/// Waits until `condition` gives a value, and answers with it; fails with `what` when `limit` is over.
pub async fn eventually<T>(what: &str, limit: Duration, condition: impl AsyncFn() -> Option<T>) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = condition().await {
            return found;
        }
        assert!(Instant::now() < end, "{what}: not so within {limit:?}");
        sleep(STEP).await;
    }
}
