//! A room: a topic that many may watch, and that is told by what belongs to it: the tasks of a business record
//! (`record:TYPE:ID`), or all tasks of a tenant (`ops`).
//!
//! The rights are part of the key: a caller who sees only own tasks of a record stands in another room than an operator, and
//! nothing that is outside of a room's reach ever comes into it. One reading of a room serves all who asked before it began.

use super::item::Item;
use super::limits::Limits;
use super::locked;
use super::protocol::CountsView;
use crate::core::change::Change;
use crate::core::ids::TaskId;
use crate::core::principal::Principal;
use crate::core::task::{RecordRef, State, Task};
use crate::core::time::{Clock, Millis, Mono};
use crate::core::view::Catalogue;
use crate::store::{ListParams, Reach, Result, Store};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The topic of all that goes on in a tenant.
pub const OPS: &str = "ops";
/// A room rests so many times as long as its last reading took before it is looked at again, so that rooms never cost the
/// database more than a small part of its time.
const REST_FACTOR: u64 = 20;

/// What belongs into a room, and of whom.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RoomKey {
    /// Whose tasks.
    pub reach: Reach,
    /// Of one record; absent = all of them.
    pub record: Option<RecordRef>,
}

impl RoomKey {
    /// The room of a topic for a caller; `None` = there is none, or none for this caller: told alike.
    #[must_use]
    pub fn of(topic: &str, who: &Principal, catalogue: &Catalogue) -> Option<Self> {
        if topic == OPS {
            return who.is_operator().then(|| Self { reach: Reach::of(who), record: None });
        }
        let (kind, id) = topic.strip_prefix("record:")?.split_once(':')?;
        let record = RecordRef { kind: kind.to_owned(), id: id.to_owned() };
        let reach = Reach::of_record(who, catalogue.open_records.contains(kind));
        record.may_exist().then_some(Self { reach, record: Some(record) })
    }

    /// The rooms into which a change may belong.
    pub(super) fn of_change(change: &Change) -> Vec<Self> {
        Self::of_task(change.owner(), change.record())
    }

    /// The rooms into which a task of an owner and a record may belong.
    pub(super) fn of_task((tenant, owner): (&str, &str), record: Option<&RecordRef>) -> Vec<Self> {
        let of_tenant = Reach { tenant: Some(tenant.to_owned()), owner: None };
        let of_owner = Reach { owner: Some(owner.to_owned()), ..of_tenant.clone() };
        let all = [Reach::default(), of_tenant];
        let mut keys: Vec<Self> = all.iter().map(|reach| Self { reach: reach.clone(), record: None }).collect();
        if record.is_some() {
            let reaches = all.into_iter().chain([of_owner]);
            keys.extend(reaches.map(|reach| Self { reach, record: record.cloned() }));
        }
        keys
    }

    /// Whether it is the topic [`OPS`].
    #[must_use]
    pub fn is_ops(&self) -> bool {
        self.record.is_none()
    }
}

/// One reading of a room.
#[derive(Debug)]
pub struct RoomView {
    /// The instant before it.
    pub as_of: Millis,
    /// The same by the clock that never goes back.
    pub begun: Mono,
    /// The tasks of a record, newest first; of `ops` the newest unfinished ones.
    pub items: Vec<Arc<Item>>,
    /// There are more.
    pub more: bool,
    /// Of `ops`: how many tasks are in each state.
    pub counts: Option<Arc<CountsView>>,
}

/// A room of this node.
#[derive(Debug)]
pub struct Room {
    /// What belongs into it.
    pub key: RoomKey,
    asked: AtomicU64,
    read: tokio::sync::Mutex<Option<(u64, Arc<RoomView>)>>,
    counts: Mutex<Option<Arc<CountsView>>>,
    rests_until: AtomicU64,
}

impl Room {
    pub(super) fn new(key: RoomKey) -> Self {
        Self {
            key,
            asked: AtomicU64::new(0),
            read: tokio::sync::Mutex::default(),
            counts: Mutex::default(),
            rests_until: AtomicU64::new(0),
        }
    }

    /// A reading that began after this call did. Those who wait for one at the same time share the next.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn read(&self, store: &dyn Store, clock: &dyn Clock, limits: &Limits) -> Result<Arc<RoomView>> {
        let mine = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut read = self.read.lock().await;
        if let Some((at, view)) = &*read
            && *at >= mine
        {
            return Ok(view.clone());
        }
        let at = self.asked.load(Ordering::SeqCst);
        let view = Arc::new(self.look(store, clock, limits).await?);
        *read = Some((at, view.clone()));
        Ok(view)
    }

    async fn look(&self, store: &dyn Store, clock: &dyn Clock, limits: &Limits) -> Result<RoomView> {
        let (as_of, begun) = (clock.now(), clock.mono());
        let unfinished = || State::ALL.into_iter().chain([State::Unknown]).filter(|state| !state.is_final()).collect();
        let params = ListParams {
            reach: self.key.reach.clone(),
            states: if self.key.is_ops() { unfinished() } else { Vec::new() },
            record: self.key.record.clone(),
            archived: true,
            descending: true,
            limit: limits.room_items,
            ..ListParams::default()
        };
        let page = store.list(params).await?;
        let counts = if self.key.is_ops() { Some(self.count(store, clock).await?) } else { None };
        self.rest(begun, clock.mono());
        let items = page.items.into_iter().map(Item::new).collect();
        Ok(RoomView { as_of, begun, items, more: page.next.is_some(), counts })
    }

    /// Reads the counts of the room anew.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn count(&self, store: &dyn Store, clock: &dyn Clock) -> Result<Arc<CountsView>> {
        let begun = clock.mono();
        let counts = Arc::new(CountsView(store.counts(&self.key.reach, true).await?));
        self.rest(begun, clock.mono());
        *locked(&self.counts) = Some(counts.clone());
        Ok(counts)
    }

    /// The counts as they were last read.
    pub(super) fn counts(&self) -> Option<Arc<CountsView>> {
        locked(&self.counts).clone()
    }

    fn rest(&self, begun: Mono, now: Mono) {
        self.rests_until.store(now.0 + (now - begun) * REST_FACTOR, Ordering::Relaxed);
    }

    /// Whether it is too early to look at it again.
    pub(super) fn rests(&self, now: Mono) -> bool {
        now.0 < self.rests_until.load(Ordering::Relaxed)
    }

    /// Lets go of the last reading, if nobody waits for it.
    pub(super) fn forget_reading(&self) {
        if let Ok(mut read) = self.read.try_lock() {
            *read = None;
        }
    }

    /// Those of these tasks that are still there.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn tasks(&self, store: &dyn Store, ids: &[TaskId]) -> Result<Vec<Task>> {
        store.tasks(&self.key.reach, ids).await
    }
}
