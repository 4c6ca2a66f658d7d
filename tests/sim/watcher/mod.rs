//! Pages that people look at: each is connected to some node, is told a snapshot and then what changes, loses its
//! connection, and comes back to another node with what it knows. In the end it must show the rows.
//!
//! Who has to know of a change, what waits for a connection, and what a snapshot holds are the push layer's own; the
//! session around them is its loop on the simulated scheduler.

mod page;
mod session;

use crate::scheduler::Group;
use crate::world::World;
pub use page::{Page, look};
use std::sync::{Arc, Mutex};
use taskbell::bus::Signal;
use taskbell::core::ids::{Head, Revision, TaskId};
use taskbell::core::task::Task;
use taskbell::core::time::{Clock, Millis, Mono};
use taskbell::push::Limits;
use taskbell::push::registry::Registry;
use taskbell::push::snapshot::Snapshots;
use taskbell::store::Store;

/// What a server tells.
#[derive(Clone, Debug)]
enum Frame {
    /// Everything, up to a head; or the first part of it, where there is more.
    Snap(Head, Vec<Task>, bool),
    /// The page has everything up to this head.
    Same(Head),
    /// Changed tasks; with the last of them the page knows this head.
    Delta(Head, Vec<Task>),
    /// A task is deleted.
    Gone(TaskId, Revision),
    /// The database's head, as a sign of life.
    Ping(Head),
}

impl Frame {
    fn name(&self) -> &'static str {
        match self {
            Self::Snap(..) => "snap",
            Self::Same(_) => "same",
            Self::Delta(..) => "delta",
            Self::Gone(..) => "gone",
            Self::Ping(_) => "ping",
        }
    }
}

/// What a page asks.
#[derive(Clone, Copy, Debug)]
enum Request {
    /// The truth, unless it is known already up to this head.
    Sync(Option<Head>),
    /// Whether anybody looks at the page.
    View(bool),
}

/// What the connections of one node share.
pub struct Desk {
    store: Arc<dyn Store>,
    registry: Mutex<Registry>,
    snapshots: Snapshots,
    limits: Limits,
}

/// The monotonic clock of a machine, for what outlives no process.
struct MachineClock(Arc<World>, Group);

impl Clock for MachineClock {
    fn now(&self) -> Millis {
        self.0.now()
    }

    fn mono(&self) -> Mono {
        Mono((self.0.time.now() * self.0.machines[self.1 - 1].rate / 1_000).unsigned_abs())
    }
}

impl Desk {
    /// Nobody is connected yet.
    pub fn new(store: Arc<dyn Store>, world: &Arc<World>, group: Group) -> Self {
        let limits = Limits { ping_ms: 3_000, ..Limits::default() };
        let snapshots = Snapshots::new(store.clone(), Arc::new(MachineClock(world.clone(), group)), &limits);
        Self { store, registry: Mutex::default(), snapshots, limits }
    }

    /// What the bus brings.
    pub fn hear(&self, signal: &Signal, now: Mono) {
        let mut registry = self.registry.lock().unwrap();
        match signal {
            Signal::Changes(changes) => registry.dispatch(changes, now),
            Signal::Marked { tenant, owner } => registry.recount(&(tenant.clone(), owner.clone())),
            Signal::Missed => registry.mailboxes().for_each(|mailbox| mailbox.stale_all(now)),
            Signal::LogGrew { .. } | Signal::Elsewhere => {}
        }
    }
}
