//! The door of a node: how many connections are inside, and how many of them came from one address.
//!
//! Counts from the moment a socket is there, whether it says hello or not, and until it is dropped. What counts as one address
//! is told by whoever opens the socket; a connection without one counts for the node alone.

use super::limits::Limits;
use super::locked;
use crate::core::time::Mono;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// The least time between two lines of the log about addresses that have too many, ms.
const WARN_EVERY_MS: u64 = 60_000;

/// Why a connection does not come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// The node has too many.
    Node,
    /// The address has too many.
    Address,
}

#[derive(Default)]
struct Addresses {
    counts: HashMap<IpAddr, usize>,
    warned_at: Option<Mono>,
}

/// The door of a node.
pub(super) struct Door {
    inside: watch::Sender<usize>,
    addresses: Mutex<Addresses>,
    most: usize,
    most_of_address: usize,
}

impl Door {
    pub fn new(limits: &Limits) -> Arc<Self> {
        let (most, most_of_address) = (limits.node_connections, limits.address_connections);
        Arc::new(Self { inside: watch::Sender::new(0), addresses: Mutex::default(), most, most_of_address })
    }

    /// Lets a connection in, which counts until what is returned is dropped.
    pub fn enter(self: &Arc<Self>, address: Option<IpAddr>, now: Mono) -> Result<Inside, Full> {
        let free = self.inside.send_if_modified(|count| {
            let free = *count < self.most;
            *count += usize::from(free);
            free
        });
        if !free {
            return Err(Full::Node);
        }
        // From here on it is given back by the drop.
        let mut inside = Inside { door: self.clone(), address: None };
        if let Some(address) = address {
            self.count(address, now)?;
            inside.address = Some(address);
        }
        Ok(inside)
    }

    fn count(&self, address: IpAddr, now: Mono) -> Result<(), Full> {
        let mut addresses = locked(&self.addresses);
        let count = addresses.counts.entry(address).or_default();
        if *count < self.most_of_address {
            *count += 1;
            return Ok(());
        }
        if addresses.warned_at.is_none_or(|at| now - at >= WARN_EVERY_MS) {
            addresses.warned_at = Some(now);
            tracing::warn!(
                %address,
                most = self.most_of_address,
                "an address has too many connections; if it is a proxy, name it in server.trusted_proxies"
            );
        }
        Err(Full::Address)
    }

    /// How many are inside.
    pub fn inside(&self) -> usize {
        *self.inside.borrow()
    }

    /// Waits until nobody is inside.
    pub async fn until_empty(&self) {
        // An error would mean that the sender is gone, which is `self`.
        let _ = self.inside.subscribe().wait_for(|count| *count == 0).await;
    }
}

/// A connection that counts.
pub(super) struct Inside {
    door: Arc<Door>,
    address: Option<IpAddr>,
}

impl Drop for Inside {
    fn drop(&mut self) {
        if let Some(address) = self.address {
            let mut addresses = locked(&self.door.addresses);
            if let Some(count) = addresses.counts.get_mut(&address) {
                *count -= 1;
                if *count == 0 {
                    addresses.counts.remove(&address);
                }
            }
        }
        self.door.inside.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Mono = Mono(0);

    fn address(n: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, n]))
    }

    #[test]
    fn p7_an_address_and_a_node_have_their_limits_and_who_leaves_makes_room() {
        let door = Door::new(&Limits { node_connections: 4, address_connections: 2, ..Limits::default() });
        let enter = |from| door.enter(from, NOW);
        let (Ok(first), Ok(second)) = (enter(address(1)), enter(address(1))) else { panic!("there is room") };
        assert_eq!(enter(address(1)).err(), Some(Full::Address));
        assert_eq!(door.inside(), 2, "who is turned away does not count");
        let (Ok(_other), Ok(_nowhere)) = (enter(address(2)), enter(None)) else { panic!("others have room") };
        assert_eq!(enter(None).err(), Some(Full::Node));
        assert_eq!(enter(address(3)).err(), Some(Full::Node));
        drop(first);
        assert!(enter(address(1)).is_ok());
        drop(second);
        assert_eq!(locked(&door.addresses).counts.len(), 1, "nothing is kept of an address that has left");
    }
}
