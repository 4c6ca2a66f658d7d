//! The bus between the nodes of a world: it drops, doubles, delays, and so reorders. Sometimes it says that it lost
//! something, mostly it does not.

use crate::node::Node;
use crate::world::World;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use taskbell::bus::Signal;
use tokio::sync::Notify;

#[derive(Default)]
struct Inbox {
    /// By the instant at which it arrives.
    signals: Mutex<BTreeMap<(i64, u64), Signal>>,
    rung: Notify,
}

/// The bus.
pub struct Bus {
    inboxes: Vec<Inbox>,
    last: Mutex<u64>,
}

impl Bus {
    /// A bus of so many nodes.
    pub fn new(nodes: usize) -> Self {
        Self { inboxes: (0..nodes).map(|_| Inbox::default()).collect(), last: Mutex::default() }
    }

    /// Tells all nodes, the one that tells included.
    pub fn publish(&self, world: &World, signal: &Signal) {
        for inbox in &self.inboxes {
            let rate = world.rates.bus;
            if world.fault(rate) {
                if world.fault(200) {
                    self.put(world, inbox, 0, Signal::Missed);
                }
                continue;
            }
            for _ in 0..1 + usize::from(world.fault(rate)) {
                let late_ms = if world.fault(3 * rate) { world.dice.between(1..1_500) } else { 0 };
                self.put(world, inbox, late_ms, signal.clone());
            }
        }
    }

    fn put(&self, world: &World, inbox: &Inbox, late_ms: i64, signal: Signal) {
        let mut last = self.last.lock().unwrap();
        *last += 1;
        inbox.signals.lock().unwrap().insert((world.time.now() + late_ms, *last), signal);
        inbox.rung.notify_one();
    }

    /// A node is gone, and with it what it had not heard.
    pub fn leave(&self, node: usize) {
        self.inboxes[node].signals.lock().unwrap().clear();
    }

    /// Brings a node what arrives for it.
    pub async fn listen(world: Arc<World>, node: Arc<Node>) {
        let inbox = &world.bus.inboxes[node.group - 1];
        loop {
            let now = world.time.now();
            let first = inbox.signals.lock().unwrap().first_key_value().map(|((at, _), _)| *at);
            match first {
                Some(at) if at <= now => {
                    let signal = inbox.signals.lock().unwrap().pop_first();
                    if let Some((_, signal)) = signal {
                        node.hear(signal);
                    }
                    world.time.sleep(0).await;
                }
                Some(at) => tokio::select! {
                    biased;
                    () = inbox.rung.notified() => {}
                    () = world.time.sleep(at - now) => {}
                },
                None => inbox.rung.notified().await,
            }
        }
    }
}
