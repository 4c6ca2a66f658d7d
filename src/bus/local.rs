//! The bus inside one node: everybody who listens hears what is told, and from where it came.

use super::{Between, Signal, Wake};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{broadcast, watch};

/// How many signals may wait for a slow subscriber before it is told that it missed some.
const BACKLOG: usize = 4_096;
/// How many changes all these signals may hold; above it one says that some were missed, and holds none.
const BACKLOG_CHANGES: usize = 65_536;

#[derive(Clone, Debug)]
struct Told {
    signal: Signal,
    /// It came from another node, and goes to no other one.
    from_elsewhere: bool,
    _held: Arc<Held>,
}

/// Counts the changes of a signal as long as a subscriber has yet to take it.
#[derive(Debug)]
struct Held {
    count: usize,
    all: Arc<AtomicUsize>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// The bus of one node.
#[derive(Clone, Debug)]
pub struct LocalBus {
    sender: broadcast::Sender<Told>,
    held: Arc<AtomicUsize>,
    between: watch::Sender<Between>,
    wake: watch::Sender<Wake>,
}

impl Default for LocalBus {
    fn default() -> Self {
        Self {
            sender: broadcast::Sender::new(BACKLOG),
            held: Arc::default(),
            between: watch::Sender::default(),
            wake: watch::Sender::default(),
        }
    }
}

impl LocalBus {
    /// Tells everybody what this node did; without subscribers it tells nobody.
    pub fn publish(&self, signal: Signal) {
        self.tell(signal, false);
    }

    /// Tells everybody on this node what came from another one.
    pub fn pass_on(&self, signal: Signal) {
        self.tell(signal, true);
    }

    fn tell(&self, mut signal: Signal, from_elsewhere: bool) {
        let mut count = signal.change_count();
        if self.held.fetch_add(count, Ordering::Relaxed) + count > BACKLOG_CHANGES {
            self.held.fetch_sub(count, Ordering::Relaxed);
            (signal, count) = (Signal::Missed, 0);
        }
        let _held = Arc::new(Held { count, all: self.held.clone() });
        // An error means that nobody listens.
        let _ = self.sender.send(Told { signal, from_elsewhere, _held });
    }

    /// Listens from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        Subscription { receiver: self.sender.subscribe(), own_only: false }
    }

    /// Listens from now on to what this node itself does.
    #[must_use]
    pub fn subscribe_to_own(&self) -> Subscription {
        Subscription { receiver: self.sender.subscribe(), own_only: true }
    }

    /// How signals reach other nodes, and each change of it.
    #[must_use]
    pub fn between(&self) -> watch::Receiver<Between> {
        self.between.subscribe()
    }

    /// It is so from now on; answers whether it was not before.
    pub fn set_between(&self, between: Between) -> bool {
        self.between.send_if_modified(|now| std::mem::replace(now, between) != between)
    }

    /// What wakes this node, and each change of it.
    #[must_use]
    pub fn wake(&self) -> watch::Receiver<Wake> {
        self.wake.subscribe()
    }

    /// It is so from now on; answers whether it was not before.
    pub fn set_wake(&self, wake: Wake) -> bool {
        self.wake.send_if_modified(|now| std::mem::replace(now, wake) != wake)
    }
}

/// A subscriber's end.
#[derive(Debug)]
pub struct Subscription {
    receiver: broadcast::Receiver<Told>,
    own_only: bool,
}

impl Subscription {
    /// The next signal; `None` when the bus is gone.
    pub async fn next(&mut self) -> Option<Signal> {
        loop {
            match self.receiver.recv().await {
                Ok(told) if self.own_only && told.from_elsewhere => {}
                Ok(told) => return Some(told.signal),
                Err(broadcast::error::RecvError::Lagged(_)) => return Some(Signal::Missed),
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::change::Change;
    use crate::core::ids::{Head, Revision, TaskId};

    #[tokio::test]
    async fn what_came_from_another_node_goes_to_no_other_one() {
        let bus = LocalBus::default();
        let (mut all, mut own) = (bus.subscribe(), bus.subscribe_to_own());
        bus.pass_on(Signal::Elsewhere);
        bus.publish(Signal::Missed);
        assert!(matches!(all.next().await, Some(Signal::Elsewhere)));
        assert!(matches!(all.next().await, Some(Signal::Missed)));
        assert!(matches!(own.next().await, Some(Signal::Missed)));
    }

    #[tokio::test]
    async fn what_a_slow_subscriber_leaves_takes_no_more_than_its_room() {
        let bus = LocalBus::default();
        let mut slow = bus.subscribe();
        let many = || {
            let gone = |_| Change::Gone {
                tenant: String::new(),
                owner: String::new(),
                id: TaskId::new(),
                revision: Revision(1),
                head: Head(1),
                record: None,
            };
            Signal::Changes((0..BACKLOG_CHANGES / 4).map(gone).collect())
        };
        (0..5).for_each(|_| bus.publish(many()));
        for _ in 0..4 {
            assert!(matches!(slow.next().await, Some(Signal::Changes(_))));
        }
        assert!(matches!(slow.next().await, Some(Signal::Missed)), "what did not fit is found in the database");
        bus.publish(many());
        assert!(matches!(slow.next().await, Some(Signal::Changes(_))), "what was taken makes room");
        drop(slow);
        assert_eq!(bus.held.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_state_is_new_once() {
        let bus = LocalBus::default();
        assert!(!bus.set_between(Between::Nothing));
        assert!(bus.set_between(Between::Down));
        assert!(!bus.set_between(Between::Down));
        assert_eq!(*bus.between().borrow(), Between::Down);
    }
}
