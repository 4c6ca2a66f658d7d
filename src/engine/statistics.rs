//! Looks for tables that have grown, and has the database server count them anew before its plans are those of another time.
//! It decides nothing about a task, and where it fails, the server's own upkeep comes by a little later.

use crate::store::Store;
use std::time::Duration;

/// Looks again and again.
pub(super) async fn analyze_grown(every: Duration, store: &dyn Store) {
    loop {
        tokio::time::sleep(every).await;
        match store.analyze_grown().await {
            Ok(tables) if tables.is_empty() => {}
            Ok(tables) => tracing::debug!(tables = tables.join(", "), "had the database server count what has grown"),
            // That the database does not answer is told by those who need it.
            Err(e) => tracing::debug!(error = %e, "tables that have grown could not be counted"),
        }
    }
}
