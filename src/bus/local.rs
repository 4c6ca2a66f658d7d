//! The bus inside one node: everybody who listens hears what is told, and from where it came.

use super::{Between, Signal, Wake};
use tokio::sync::{broadcast, watch};

/// How many signals may wait for a slow subscriber before it is told that it missed some.
const BACKLOG: usize = 4_096;

#[derive(Clone, Debug)]
struct Told {
    signal: Signal,
    /// It came from another node, and goes to no other one.
    from_elsewhere: bool,
}

/// The bus of one node.
#[derive(Clone, Debug)]
pub struct LocalBus {
    sender: broadcast::Sender<Told>,
    between: watch::Sender<Between>,
    wake: watch::Sender<Wake>,
}

impl Default for LocalBus {
    fn default() -> Self {
        Self {
            sender: broadcast::Sender::new(BACKLOG),
            between: watch::Sender::default(),
            wake: watch::Sender::default(),
        }
    }
}

impl LocalBus {
    /// Tells everybody what this node did; without subscribers it tells nobody.
    pub fn publish(&self, signal: Signal) {
        let _ = self.sender.send(Told { signal, from_elsewhere: false });
    }

    /// Tells everybody on this node what came from another one.
    pub fn pass_on(&self, signal: Signal) {
        let _ = self.sender.send(Told { signal, from_elsewhere: true });
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

    #[test]
    fn a_state_is_new_once() {
        let bus = LocalBus::default();
        assert!(!bus.set_between(Between::Nothing));
        assert!(bus.set_between(Between::Down));
        assert!(!bus.set_between(Between::Down));
        assert_eq!(*bus.between().borrow(), Between::Down);
    }
}
