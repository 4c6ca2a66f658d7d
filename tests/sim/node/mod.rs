//! A node of the simulated world: what the engine does, on the simulated scheduler. The decisions are the engine's own (its
//! table of running chunks, the flows of the store, the core); only waiting and spawning are written anew.

mod chunk;
mod commits;
mod loops;
mod reports;

use crate::bus::Bus;
use crate::scheduler::{Group, Sleep};
use crate::store::FaultyStore;
use crate::watcher::Desk;
use crate::world::World;
use commits::Commits;
use reports::Reports;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use taskbell::bus::Signal;
use taskbell::core::change::Change;
use taskbell::core::ids::TaskId;
use taskbell::core::task::State;
use taskbell::core::time::{Clock, Millis, Mono};
use taskbell::engine::running::{Running, Told};
use taskbell::store::Written;
use tokio::sync::{Mutex, Notify, watch};

/// The numbers of all nodes, ms: a fifth of the defaults, so that a run holds many leases.
pub const LEASE_MS: i64 = 6_000;
const HEARTBEAT_MS: i64 = 2_000;
const POLL_MS: f64 = 1_000.0;
const SWEEP_MS: i64 = 1_500;
const DRAIN_GRACE_MS: i64 = 3_000;
const CANCEL_GRACE_MS: i64 = 5_000;

/// A process.
pub struct Node {
    pub world: Arc<World>,
    pub group: Group,
    /// Unique among the living and the dead.
    pub name: String,
    pub store: FaultyStore,
    pub running: Running,
    /// What its connections of people share.
    pub desk: Desk,
    parallelism: usize,
    booted_at: i64,
    wake: Notify,
    reports: Reports,
    /// Parents of children that changed, until their progress is brought up to date.
    parents: std::sync::Mutex<BTreeSet<TaskId>>,
    commits: Commits,
    turn: Mutex<()>,
    /// The tenant whose task was claimed last.
    served: std::sync::Mutex<Option<String>>,
    drain: watch::Sender<bool>,
}

impl Node {
    /// Starts a process on a machine.
    pub fn boot(world: &Arc<World>, group: Group) {
        let booted_at = world.time.now();
        let store = FaultyStore::new(world, group);
        let node = Arc::new(Self {
            group,
            name: format!("node-{group}-{booted_at}"),
            desk: Desk::new(Arc::new(store.clone()), world, group),
            store,
            running: Running::default(),
            parallelism: 1 + world.dice.below(4),
            booted_at,
            wake: Notify::new(),
            reports: Reports::default(),
            parents: std::sync::Mutex::default(),
            commits: Commits::default(),
            turn: Mutex::default(),
            served: std::sync::Mutex::default(),
            drain: watch::Sender::new(false),
            world: world.clone(),
        });
        world.tell(|| format!("{} starts", node.name));
        *world.machines[group - 1].node.lock().unwrap() = Some(node.clone());
        let time = &world.time;
        time.spawn(group, loops::claim(node.clone()));
        time.spawn(group, loops::heartbeat(node.clone()));
        time.spawn(group, loops::sweep(node.clone()));
        time.spawn(group, commits::run(node.clone()));
        time.spawn(group, reports::run(node.clone()));
        time.spawn(group, Bus::listen(world.clone(), node));
    }

    /// Stops claiming, asks chunks to end, waits the grace, hands the rest back; then the process is gone.
    pub async fn drain(self: Arc<Self>) {
        self.world.tell(|| format!("{} drains", self.name));
        self.drain.send_replace(true);
        self.running.tell_all(Told::Stop);
        tokio::select! {
            biased;
            () = self.running.empty() => {}
            () = self.sleep(DRAIN_GRACE_MS) => {
                self.running.tell_all(Told::HandBack);
                tokio::select! {
                    biased;
                    () = self.running.empty() => {}
                    () = self.sleep(DRAIN_GRACE_MS) => {}
                }
            }
        }
        self.world.crash(self.group);
    }

    fn draining(&self) -> bool {
        *self.drain.borrow()
    }

    fn rate(&self) -> i64 {
        self.world.machines[self.group - 1].rate
    }

    /// Waits by the machine's own monotonic clock.
    pub fn sleep(&self, ms: i64) -> Sleep {
        // Rounded up: a wait of one tick must not become none.
        self.world.time.sleep((ms * 1_000 + self.rate() - 1) / self.rate())
    }

    /// Tells everybody what a commit changed, and rings for the claim loop where something may be due.
    pub fn announce<T>(&self, written: Written<T>) -> T {
        if written.changes.iter().any(|c| matches!(c, Change::Task(t) if t.claimable())) {
            self.wake.notify_one();
        }
        if !written.changes.is_empty() {
            self.world.bus.publish(&self.world, &Signal::Changes(written.changes.into()));
        }
        written.answer
    }

    /// What the bus brings: for the chunks that run here, and for those who watch here.
    pub fn hear(&self, signal: Signal) {
        if let Signal::Changes(changes) = &signal {
            for change in changes.iter() {
                if let Change::Task(task) = change
                    && let Some(parent) = task.parent
                {
                    self.parents.lock().unwrap().insert(parent.id);
                }
                let id = change.task_id();
                let (Some(token), Change::Task(task)) = (self.running.token(id), change) else { continue };
                if task.fencing_token > token {
                    self.running.tell(id, Some(token), Told::Lost);
                } else if task.fencing_token == token {
                    match task.state {
                        State::Pausing | State::Cancelling => self.running.tell(id, Some(token), Told::Stop),
                        State::Running if !self.draining() => self.running.tell(id, Some(token), Told::GoOn),
                        _ => {}
                    }
                }
            }
            if changes.iter().any(|c| matches!(c, Change::Task(t) if t.claimable())) {
                self.wake.notify_one();
            }
        }
        self.desk.hear(&signal, self.mono());
    }
}

impl Clock for Node {
    fn now(&self) -> Millis {
        self.world.now().plus(self.world.machines[self.group - 1].wall_off.load(Ordering::Relaxed))
    }

    fn mono(&self) -> Mono {
        Mono(((self.world.time.now() - self.booted_at) * self.rate() / 1_000).unsigned_abs())
    }
}
