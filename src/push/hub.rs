//! The hub of a node: hears the bus, knows the connections, and lets them end in order.
//!
//! One per node. It puts changes into mailboxes and never waits for a connection; what a connection cannot take in time is
//! merged there. When the bus tells that signals were missed, every connection gets new snapshots, spread over time.

use super::door::{Door, Full, Inside};
use super::elsewhere;
use super::item::{Item, Renderer};
use super::limits::Limits;
use super::locked;
use super::mailbox::Mailbox;
use super::registry::{NotTaken, Owner, OwnerKey, Registry};
use super::room::{Room, RoomKey, RoomView};
use super::session::{self, Opening};
use super::silence;
use super::snapshot::{Reads, Snapshots};
use super::socket::Socket;
use crate::bus::{Between, LocalBus, Signal, Subscription, Wake};
use crate::core::ids::TaskId;
use crate::core::principal::Principal;
use crate::core::time::{Clock, Rng};
use crate::core::view::Catalogue;
use crate::store::accounts::idle_since;
use crate::store::logs::LogStore;
use crate::store::{Result as Stored, Store};
use futures_util::future::BoxFuture;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// How often the hub looks for what time alone has changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// So many times as long as a round of looks into rooms took, nobody looks into any.
const ROUND_REST_FACTOR: u64 = 3;

/// What a hub is made of.
#[derive(Clone)]
pub struct HubParts {
    /// Where snapshots, counts and heads are read.
    pub store: Arc<dyn Store>,
    /// Where log tails are read.
    pub logs: Arc<dyn LogStore>,
    /// What tells of changes.
    pub bus: LocalBus,
    /// Titles, links and rights of actions.
    pub catalogue: Arc<Catalogue>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Spreads what would otherwise happen at once.
    pub rng: Arc<dyn Rng>,
    /// The limits.
    pub limits: Limits,
}

/// How signals of other nodes reach a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways {
    /// `off`, `ok`, `down` or `refused`.
    pub redis: &'static str,
    /// What wakes the node for their work: `redis`, `listen` or `poll`; `local` where there are no others.
    pub wake: &'static str,
}

/// The hub of a node.
pub struct Hub {
    pub(super) store: Arc<dyn Store>,
    pub(super) logs: Arc<dyn LogStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) rng: Arc<dyn Rng>,
    pub(super) limits: Limits,
    pub(super) renderer: Renderer,
    pub(super) snapshots: Snapshots,
    pub(super) registry: Mutex<Registry>,
    /// Rung when another node changed something.
    pub(super) elsewhere: Arc<Notify>,
    /// How this node hears of others.
    between: watch::Receiver<Between>,
    wake: watch::Receiver<Wake>,
    /// Connections, those that have not said hello included.
    door: Arc<Door>,
    /// Set when the node drains.
    draining: watch::Sender<bool>,
}

impl Hub {
    /// Starts a hub. It ends by itself when its last owner drops it or the bus is gone.
    #[must_use]
    pub fn start(parts: HubParts) -> Arc<Self> {
        let HubParts { store, logs, bus, catalogue, clock, rng, limits } = parts;
        let hub = Arc::new(Self {
            renderer: Renderer::new(store.clone(), catalogue, clock.clone(), &limits),
            snapshots: Snapshots::new(store.clone(), clock.clone(), &limits),
            door: Door::new(&limits),
            store,
            logs,
            clock,
            rng,
            limits,
            registry: Mutex::default(),
            elsewhere: Arc::default(),
            between: bus.between(),
            wake: bus.wake(),
            draining: watch::Sender::new(false),
        });
        tokio::spawn(listen(Arc::downgrade(&hub), bus.subscribe()));
        tokio::spawn(tell_freshness(Arc::downgrade(&hub), bus.between()));
        tokio::spawn(look_at_credentials(Arc::downgrade(&hub), Duration::from_millis(hub.limits.credential_ms)));
        tokio::spawn(look_at_rooms(Arc::downgrade(&hub), Duration::from_millis(hub.limits.room_ms)));
        tokio::spawn(silence::look(Arc::downgrade(&hub)));
        if !hub.store.capabilities().single_process {
            tokio::spawn(elsewhere::follow(Arc::downgrade(&hub), bus.between()));
        }
        hub
    }

    /// Runs one connection to its end. The future is boxed, so that what spawns it stays small.
    pub fn serve<S: Socket>(self: &Arc<Self>, socket: S, opening: Opening) -> BoxFuture<'static, ()> {
        session::serve(self.clone(), socket, opening)
    }

    pub(super) fn registry(&self) -> &Mutex<Registry> {
        &self.registry
    }

    /// How many connections are open.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.door.inside()
    }

    /// The limits that it keeps.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How signals of other nodes reach this one, in words.
    #[must_use]
    pub fn ways(&self) -> Ways {
        let (between, wake) = (*self.between.borrow(), *self.wake.borrow());
        let redis = match between {
            Between::Nothing => "off",
            Between::Refused => "refused",
            Between::Trying | Between::Down => "down",
            Between::Up => "ok",
        };
        let wake = match (between, wake) {
            _ if self.store.capabilities().single_process => "local",
            (Between::Up, _) => "redis",
            (_, Wake::Listen) => "listen",
            (_, Wake::Poll) => "poll",
        };
        Ways { redis, wake }
    }

    /// Changes of other nodes come later than they should.
    pub(super) fn is_late(&self) -> bool {
        *self.between.borrow() == Between::Down
    }

    /// How many snapshots are being read.
    #[must_use]
    pub fn snapshot_reads(&self) -> Reads {
        self.snapshots.reads()
    }

    /// Ends the connections that came in by a credential (the hash of a key, of a session): it was taken back.
    pub fn revoke(&self, credential: &str) {
        locked(&self.registry).mailboxes_of(credential).for_each(|mailbox| mailbox.revoke());
    }

    /// Lets all connections end: each is told, and closed with 1012 at its own moment within the first four fifths of
    /// `grace`. Returns when all are gone or the grace is over. New connections are refused from now on.
    pub async fn drain(&self, grace: Duration) {
        self.draining.send_replace(true);
        let spread = grace.as_millis() as f64 * 0.8;
        {
            let mut registry = locked(&self.registry);
            registry.draining = true;
            let now = self.clock.mono();
            registry.mailboxes().for_each(|mailbox| mailbox.leave(now + (self.rng.unit() * spread) as u64));
        }
        // What is not gone by then is dropped with the process.
        let _ = tokio::time::timeout(grace, self.door.until_empty()).await;
    }

    pub(super) fn draining(&self) -> watch::Receiver<bool> {
        self.draining.subscribe()
    }

    /// Lets a connection in, if there is room for it.
    pub(super) fn let_in(&self, address: Option<IpAddr>) -> Result<Inside, Full> {
        self.door.enter(address, self.clock.mono())
    }

    /// Registers a connection: from now on its mailbox gathers what changes.
    pub(super) fn register(
        self: &Arc<Self>,
        who: &Principal,
        credential: Option<String>,
    ) -> Result<Registration, NotTaken> {
        let key = (who.tenant.clone(), who.user.clone());
        let (id, mailbox, owner) = locked(&self.registry).add(&key, credential, &self.limits)?;
        Ok(Registration { hub: self.clone(), id, key, owner, mailbox, watched: Vec::new(), rooms: Vec::new() })
    }

    /// Tells the hub which tasks were just shown to somebody.
    pub(super) fn shown(&self, items: &[Arc<Item>]) {
        locked(&self.registry).shown(items.iter().map(|item| &item.task));
    }

    /// Reads a room, and tells all who stand in it what they have not heard of.
    pub(super) async fn read_room(&self, room: &Room) -> Stored<Arc<RoomView>> {
        let view = room.read(&*self.store, &*self.clock, &self.limits).await?;
        locked(&self.registry).rooms.reconcile(&room.key, &view, self.clock.mono());
        Ok(view)
    }

    /// Looks whether other nodes have changed what is shown in a room.
    async fn look_at_room(&self, room: &Room) -> Stored<()> {
        let view = self.read_room(room).await?;
        let unseen = locked(&self.registry).rooms.unseen_in(&room.key, &view, self.clock.mono());
        if !unseen.is_empty() {
            let found: Vec<Arc<Item>> = room.tasks(&*self.store, &unseen).await?.into_iter().map(Item::new).collect();
            locked(&self.registry).rooms.found(&room.key, &unseen, &found, self.clock.mono());
        }
        Ok(())
    }

    /// Counts a room whose states have changed here.
    async fn count_room(&self, room: &Room) -> Stored<()> {
        locked(&self.registry).rooms.counting(&room.key);
        let counts = room.count(&*self.store, &*self.clock).await?;
        locked(&self.registry).rooms.counted(&room.key, &counts);
        Ok(())
    }

    fn hear(&self, signal: Signal) {
        let now = self.clock.mono();
        let mut registry = locked(&self.registry);
        match signal {
            Signal::Changes(changes) => registry.dispatch(&changes, now),
            Signal::LogGrew { task, newest } => registry.log_grew(task, newest),
            Signal::Marked { tenant, owner } => registry.recount(&(tenant, owner)),
            Signal::Elsewhere => self.elsewhere.notify_one(),
            Signal::Missed => {
                tracing::info!("signals were missed: all connections are compared with the database");
                registry.mailboxes().for_each(|mailbox| mailbox.stale_all(now + self.jitter_ms()));
            }
        }
    }

    /// A random part of the time over which snapshots are spread.
    pub(super) fn jitter_ms(&self) -> u64 {
        (self.rng.unit() * self.limits.jitter_ms as f64) as u64
    }
}

async fn listen(hub: Weak<Hub>, mut bus: Subscription) {
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let signal = tokio::select! {
            signal = bus.next() => match signal {
                Some(signal) => Some(signal),
                None => return,
            },
            _ = look.tick() => None,
        };
        let Some(hub) = hub.upgrade() else { return };
        match signal {
            Some(signal) => hub.hear(signal),
            None => {
                hub.snapshots.forget_old();
                let now = hub.clock.now();
                locked(&hub.registry).tell_stalled(now);
            }
        }
    }
}

/// Lets each connection tell its client when changes of other nodes begin to come late, and when they no longer do.
async fn tell_freshness(hub: Weak<Hub>, mut between: watch::Receiver<Between>) {
    while between.changed().await.is_ok() {
        let Some(hub) = hub.upgrade() else { return };
        locked(&hub.registry).mailboxes().for_each(|mailbox| mailbox.wake.notify_one());
    }
}

/// Ends connections whose key or session was taken back elsewhere, whose user has changed, or whose session was idle for too
/// long. While the database does not answer, nobody is sent away.
async fn look_at_credentials(hub: Weak<Hub>, every: Duration) {
    let mut look = tokio::time::interval(every);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let Some(hub) = hub.upgrade() else { return };
        let held = locked(&hub.registry).credentials();
        if held.is_empty() {
            continue;
        }
        match hub.store.lost_credentials(&held, idle_since(hub.clock.now())).await {
            Ok(lost) => lost.iter().for_each(|credential| hub.revoke(credential)),
            Err(e) => tracing::debug!("keys and sessions could not be looked at: {e}"),
        }
    }
}

/// Keeps the counts of rooms true, and hears from the database what other nodes have changed in them. A room whose last look
/// took long rests for longer, and all of them after a long round: however many rooms there are, they take a small part of
/// one connection's time.
async fn look_at_rooms(hub: Weak<Hub>, every: Duration) {
    let mut look = tokio::time::interval(every);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let Some(hub) = hub.upgrade() else { return };
        let alone = hub.store.capabilities().single_process;
        let (all, uncounted) = {
            let registry = locked(&hub.registry);
            (registry.rooms.all(), registry.rooms.uncounted())
        };
        let old = if alone { uncounted } else { all.clone() };
        let begun = hub.clock.mono();
        for room in old.iter().filter(|room| !room.rests(hub.clock.mono())) {
            let looked = if alone { hub.count_room(room).await } else { hub.look_at_room(room).await };
            if let Err(e) = looked {
                tracing::debug!("a room could not be read: {e}");
                break;
            }
        }
        all.iter().for_each(|room| room.forget_reading());
        let rest_ms = (hub.clock.mono() - begun) * ROUND_REST_FACTOR;
        drop(hub);
        tokio::time::sleep(Duration::from_millis(rest_ms)).await;
    }
}

/// A connection's place in the hub; given back when dropped.
pub(super) struct Registration {
    hub: Arc<Hub>,
    id: u64,
    pub key: OwnerKey,
    pub owner: Arc<Owner>,
    pub mailbox: Arc<Mailbox>,
    watched: Vec<TaskId>,
    /// The rooms it stands in.
    pub rooms: Vec<Place>,
}

/// A connection's place in a room.
pub(super) struct Place {
    /// The number under which its changes come.
    pub slot: u16,
    topic: Arc<str>,
    room: Arc<Room>,
}

impl Registration {
    /// From now on the mailbox gathers what changes of a task.
    pub fn watch(&mut self, task: TaskId) {
        if !self.watched.contains(&task) {
            self.watched.push(task);
            locked(&self.hub.registry).watch(task, &self.mailbox);
        }
    }

    /// And no longer.
    pub fn unwatch(&mut self, task: TaskId) {
        self.watched.retain(|known| *known != task);
        locked(&self.hub.registry).unwatch(task, &self.mailbox);
        self.mailbox.forget(task);
    }

    /// The place that a topic has already.
    pub fn slot_of(&self, topic: &str) -> Option<u16> {
        self.rooms.iter().find(|place| *place.topic == *topic).map(|place| place.slot)
    }

    /// The topic and the room of a place.
    pub fn room(&self, slot: u16) -> Option<(Arc<str>, Arc<Room>)> {
        let place = self.rooms.iter().find(|place| place.slot == slot)?;
        Some((place.topic.clone(), place.room.clone()))
    }

    /// From now on the mailbox gathers what changes in the room of a topic.
    pub fn enter(&mut self, topic: &str, key: &RoomKey) -> u16 {
        let slot = (0..).find(|slot| self.rooms.iter().all(|place| place.slot != *slot));
        let slot = slot.expect("the topics of a connection are far fewer than numbers");
        let room = locked(&self.hub.registry).rooms.enter(key, &self.mailbox, slot);
        self.rooms.push(Place { slot, topic: topic.into(), room });
        slot
    }

    /// And no longer.
    pub fn exit(&mut self, slot: u16) {
        if let Some(at) = self.rooms.iter().position(|place| place.slot == slot) {
            let place = self.rooms.swap_remove(at);
            locked(&self.hub.registry).rooms.exit(&place.room.key, &self.mailbox, slot);
            self.mailbox.forget_room(slot);
        }
    }

    /// Goes over into the room of this key, if it is another one by now.
    pub fn stand_in(&mut self, slot: u16, key: &RoomKey) -> Option<Arc<Room>> {
        let place = self.rooms.iter_mut().find(|place| place.slot == slot)?;
        if place.room.key != *key {
            let mut registry = locked(&self.hub.registry);
            registry.rooms.exit(&place.room.key, &self.mailbox, slot);
            self.mailbox.forget_room(slot);
            place.room = registry.rooms.enter(key, &self.mailbox, slot);
        }
        Some(place.room.clone())
    }

    /// The connection goes on under another credential of the same user.
    pub fn credential(&self, credential: Option<String>) {
        locked(&self.hub.registry).credential(self.id, credential);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut registry = locked(&self.hub.registry);
        for task in &self.watched {
            registry.unwatch(*task, &self.mailbox);
        }
        for place in &self.rooms {
            registry.rooms.exit(&place.room.key, &self.mailbox, place.slot);
        }
        registry.remove(self.id, &self.key);
    }
}
