//! A simulated world: one database, several machines, a bus between them, people and their pages. Everything in it shares
//! this one value; all chance comes from its dice and all time from its scheduler.

use crate::actions::PACKS;
use crate::bus::Bus;
use crate::dice::Dice;
use crate::model::{Changes, Model};
use crate::node::Node;
use crate::plant::Plant;
use crate::scheduler::{Group, Time};
use crate::seen::Seen;
use crate::violation::{Checked, Violation};
use futures_util::FutureExt;
use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use taskbell::core::ids::TaskId;
use taskbell::core::time::{Clock, Millis, Mono};
use taskbell::store::memory::MemoryStore;
use taskbell::store::{PackLoaded, Store};
use tokio::sync::oneshot;

/// The instant at which each world begins: 2026-11-29T12:00:00Z.
const BEGIN: i64 = 1_795_953_600_000;
/// How many events before a violation are told.
const TOLD: usize = 60;
/// How rich in children worlds are, by their seeds. One without any is the run that it was before there were families, so
/// that seeds once found keep their meaning.
const FAMILIES: [u32; 5] = [0, 200, 0, 600, 0];

/// A machine: what survives the process that runs on it.
pub struct Machine {
    /// The process, while one runs.
    pub node: Mutex<Option<Arc<Node>>>,
    /// How far the wall clock is off, ms.
    pub wall_off: AtomicI64,
    /// How fast its monotonic clock goes, in thousandths.
    pub rate: i64,
    /// Until when it does not reach the database, and whether its calls hang meanwhile.
    pub cut: Mutex<(i64, bool)>,
}

/// How rough a world is, in thousandths: each has its own, since a fault may show only where another kind is rare.
pub struct Rates {
    /// Of a transaction, that something happens to it.
    pub store: u32,
    /// Of a signal, that the bus drops it; as often it is doubled, and three times as often it is late.
    pub bus: u32,
    /// Of a chunk, that the handler stumbles in one way or another.
    pub handler: u32,
    /// Of a chunk that has more to do, that it submits children.
    pub families: u32,
    /// The longest quiet between two troubles of machines, ms.
    pub quiet_ms: i64,
}

/// Everything.
pub struct World {
    pub time: Arc<Time>,
    pub dice: Dice,
    pub rates: Rates,
    pub memory: MemoryStore,
    pub model: Mutex<Model>,
    pub bus: Bus,
    pub seen: Seen,
    /// Node n is number n − 1.
    pub machines: Vec<Machine>,
    /// The fault that is planted, if one is.
    pub plant: Option<Plant>,
    /// The faults have stopped.
    calm: AtomicBool,
    broken: Mutex<Option<Violation>>,
    events: Option<Mutex<VecDeque<String>>>,
}

/// The clock of the database.
struct DatabaseClock(Arc<Time>);

impl Clock for DatabaseClock {
    fn now(&self) -> Millis {
        Millis(BEGIN + self.0.now())
    }

    fn mono(&self) -> Mono {
        Mono(self.0.now().unsigned_abs())
    }
}

impl World {
    /// An empty world; `told` keeps its last events as text.
    pub fn new(seed: u64, plant: Option<Plant>, told: bool) -> Arc<Self> {
        let (dice, time) = (Dice::of(seed), Arc::<Time>::default());
        let machines: Vec<Machine> = (0..3 + dice.below(3))
            .map(|_| Machine {
                node: Mutex::default(),
                wall_off: AtomicI64::new(dice.between(-300_000..300_000)),
                rate: *dice.one(&[900, 1_000, 1_000, 1_100]),
                cut: Mutex::default(),
            })
            .collect();
        let rates = Rates {
            store: *dice.one(&[0, 60, 120, 300]),
            bus: *dice.one(&[0, 30, 150]),
            handler: *dice.one(&[0, 10, 20]),
            families: FAMILIES[seed as usize % FAMILIES.len()],
            quiet_ms: *dice.one(&[2_000, 6_000, 20_000]),
        };
        let memory = MemoryStore::new(Arc::new(DatabaseClock(time.clone())));
        let pack = |(name, serial): (&str, bool)| PackLoaded { name: name.into(), version: "1".into(), serial };
        let registered = memory.register_packs(PACKS.map(pack).to_vec()).now_or_never();
        registered.expect("nobody else is in an empty world").unwrap();
        Arc::new(Self {
            rates,
            memory,
            bus: Bus::new(machines.len()),
            time,
            dice,
            model: Mutex::default(),
            seen: Seen::default(),
            machines,
            plant,
            calm: AtomicBool::new(false),
            broken: Mutex::default(),
            events: told.then(Mutex::default),
        })
    }

    /// The database's now.
    pub fn now(&self) -> Millis {
        Millis(BEGIN + self.time.now())
    }

    /// A fresh id, in the order of time.
    pub fn id(&self) -> TaskId {
        let at = u128::from(self.now().0.unsigned_abs()) << 80;
        format!("{:032x}", at | (self.dice.wide() >> 48)).parse().unwrap()
    }

    /// Whether the faults have stopped.
    pub fn calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    /// Ends the faults.
    pub fn calm_down(&self) {
        self.calm.store(true, Ordering::Relaxed);
        self.time.thaw();
        for machine in &self.machines {
            *machine.cut.lock().unwrap() = (0, false);
        }
    }

    /// Whether a fault happens now, which happens so many times in a thousand until they stop.
    pub fn fault(&self, per_mille: u32) -> bool {
        !self.calm() && self.dice.chance(per_mille)
    }

    /// The process on a machine, while one runs.
    pub fn node(&self, machine: usize) -> Option<Arc<Node>> {
        self.machines[machine].node.lock().unwrap().clone()
    }

    /// A process that runs, if any does.
    pub fn any_node(&self) -> Option<Arc<Node>> {
        let up: Vec<Arc<Node>> = (0..self.machines.len()).filter_map(|n| self.node(n)).collect();
        (!up.is_empty()).then(|| self.dice.one(&up).clone())
    }

    /// Takes the process of a group away, wherever it stands; another one starts after a while.
    pub fn crash(self: &Arc<Self>, group: Group) {
        let Some(node) = self.machines[group - 1].node.lock().unwrap().take() else { return };
        self.tell(|| format!("{} is gone", node.name));
        self.bus.leave(group - 1);
        self.time.crash(group);
        let (world, down_ms) = (self.clone(), self.dice.between(100..4_000));
        self.time.spawn(0, async move {
            world.time.sleep(down_ms).await;
            Node::boot(&world, group);
        });
    }

    /// Has a process do something for somebody outside; `None` when it died over it.
    pub async fn ask<T: Send + 'static>(
        &self,
        group: Group,
        what: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (sender, answer) = oneshot::channel();
        self.time.spawn(group, async move { drop(sender.send(what.await)) });
        answer.await.ok()
    }

    /// Holds what a commit wrote against every promise.
    pub fn committed(&self, changes: Changes) {
        for event in &changes.events {
            if let Some(from) = event.from.filter(|from| *from != event.to) {
                self.seen.arrow(from.as_str(), &event.reason, event.to.as_str());
            }
        }
        self.check(self.model.lock().unwrap().commit(changes));
    }

    /// Keeps the first violation.
    pub fn check(&self, checked: Checked) {
        if let Err(violation) = checked {
            self.tell(|| format!("broken: {violation:?}"));
            self.broken.lock().unwrap().get_or_insert(violation);
        }
    }

    /// The first violation.
    pub fn broken(&self) -> Option<Violation> {
        self.broken.lock().unwrap().clone()
    }

    /// Notes an event, where events are kept.
    pub fn tell(&self, event: impl FnOnce() -> String) {
        if let Some(events) = &self.events {
            let mut events = events.lock().unwrap();
            events.push_back(format!("{:>7} ms  {}", self.time.now(), event()));
            if events.len() > TOLD {
                events.pop_front();
            }
        }
    }

    /// The last events.
    pub fn events(&self) -> Vec<String> {
        self.events.iter().flat_map(|events| events.lock().unwrap().clone()).collect()
    }
}
