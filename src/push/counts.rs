//! The counts of an owner, read once for all of the owner's connections.
//!
//! Counts are never moved up or down here. A change of state or of a mark makes the last reading old; the first connection
//! that has to tell it reads anew, the others wait for that reading.

use super::protocol::CountsView;
use crate::store::{Reach, Result, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Mutex;

/// The counts of one owner.
#[derive(Debug, Default)]
pub(super) struct SharedCounts {
    changes: AtomicU64,
    read: Mutex<Option<(u64, Arc<CountsView>)>>,
}

impl SharedCounts {
    /// What was read before is old. Called before the change is delivered to any connection.
    pub fn changed(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts that hold everything up to the last [`Self::changed`].
    pub async fn read(&self, store: &dyn Store, tenant: &str, owner: &str) -> Result<Arc<CountsView>> {
        let wanted = self.changes.load(Ordering::SeqCst);
        let mut read = self.read.lock().await;
        if let Some((at, counts)) = &*read
            && *at >= wanted
        {
            return Ok(counts.clone());
        }
        let at = self.changes.load(Ordering::SeqCst);
        let reach = Reach { tenant: Some(tenant.to_owned()), owner: Some(owner.to_owned()) };
        let counts = Arc::new(CountsView(store.counts(&reach, false).await?));
        *read = Some((at, counts.clone()));
        Ok(counts)
    }
}
