//! Snapshots of notification centers: one reading for all who ask at the same time, kept for a moment, few at once.
//!
//! Whoever asks has read the owner's head just before and names it; a kept snapshot serves exactly when it has that head or
//! a newer one, and so holds all that was committed before it was asked for.

use super::frames::Frames;
use super::item::Item;
use super::limits::Limits;
use super::locked;
use super::protocol::CountsView;
use super::registry::OwnerKey;
use crate::core::ids::Head;
use crate::core::metric;
use crate::core::time::{Clock, Millis, Mono};
use crate::store::{Result, Store};
use metrics::counter;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// One consistent look at an owner's center.
#[derive(Debug)]
pub struct Snapshot {
    /// The owner's head.
    pub head: Head,
    /// The database's now.
    pub as_of: Millis,
    /// The unfinished, the unseen, then the newest.
    pub items: Vec<Arc<Item>>,
    /// There are more.
    pub more: bool,
    /// The counts that belong to it.
    pub counts: CountsView,
    /// Frames that were made of it.
    pub(super) frames: Frames,
}

/// For what a snapshot of a center is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The page asked, and has everything up to this head of this database's incarnation.
    Answer(Option<Head>),
    /// Something may have been missed.
    IfNewer,
    /// Time alone has changed what is shown, or something was taken to be sent and was not.
    Anew,
}

/// What is told for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owed {
    /// That the page has everything.
    Same,
    /// Nothing: it was told everything.
    Nothing,
    /// A snapshot.
    Snapshot,
}

impl Wanted {
    /// What is owed to a page that was told everything up to `told`, when the database's head is `head`.
    #[must_use]
    pub fn owed(self, head: Head, told: Option<Head>) -> Owed {
        match self {
            Self::Answer(have) if have == Some(head) => Owed::Same,
            Self::IfNewer if told == Some(head) => Owed::Nothing,
            _ => Owed::Snapshot,
        }
    }
}

/// How many readings are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reads {
    /// At this moment.
    pub now: usize,
    /// At once, at most, since the start.
    pub most: usize,
}

/// One owner's reading under way, or the last one.
type Flight = tokio::sync::Mutex<Option<(Mono, Arc<Snapshot>)>>;

/// Reads snapshots.
pub struct Snapshots {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    flights: Mutex<HashMap<OwnerKey, Arc<Flight>>>,
    gate: Semaphore,
    places: usize,
    most: AtomicUsize,
    keep_ms: u64,
}

impl Snapshots {
    /// Nothing read yet.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, limits: &Limits) -> Self {
        let (places, keep_ms) = (limits.snapshot_count, limits.snapshot_ms);
        let (gate, most) = (Semaphore::new(places), AtomicUsize::new(0));
        Self { store, clock, flights: Mutex::default(), gate, places, most, keep_ms }
    }

    /// How many readings are under way.
    pub fn reads(&self) -> Reads {
        let now = self.places - self.gate.available_permits();
        Reads { now, most: self.most.load(Ordering::Relaxed) }
    }

    /// A snapshot that holds everything up to `head` at least.
    pub async fn read(&self, owner: &OwnerKey, head: Head) -> Result<Arc<Snapshot>> {
        let flight = locked(&self.flights).entry(owner.clone()).or_default().clone();
        let mut kept = flight.lock().await;
        if let Some((at, snapshot)) = &*kept
            && snapshot.head >= head
            && self.clock.mono() - *at < self.keep_ms
        {
            return Ok(snapshot.clone());
        }
        let _place = self.gate.acquire().await.expect("the gate is never closed");
        self.most.fetch_max(self.reads().now, Ordering::Relaxed);
        let center = self.store.center(&owner.0, &owner.1).await?;
        counter!(metric::SNAPSHOTS).increment(1);
        let snapshot = Arc::new(Snapshot {
            head: center.head,
            as_of: center.as_of,
            items: center.tasks.into_iter().map(Item::new).collect(),
            more: center.more,
            counts: CountsView(center.counts),
            frames: Frames::default(),
        });
        *kept = Some((self.clock.mono(), snapshot.clone()));
        Ok(snapshot)
    }

    /// Forgets snapshots whose time is over.
    pub fn forget_old(&self) {
        let now = self.clock.mono();
        locked(&self.flights).retain(|_, flight| match flight.try_lock() {
            Ok(kept) => kept.as_ref().is_some_and(|(at, _)| now - *at < self.keep_ms),
            Err(_) => true,
        });
    }
}
