//! What failed sign-ins cost: a pause for the account and for the address.
//!
//! Each has some attempts free and gets one back after a pause, as a bucket that drips. An attempt is charged before its
//! password is proven, so many at once get no further than one after the other; a right password gives it back. Names that
//! nobody has are charged like any other. Kept in memory, for this node: an attacker who finds several nodes gets as many
//! times the attempts, and no more. Bounded: when there are too many accounts or addresses, those that owe least go first.
//!
//! Where somebody has signed in before, the account has attempts of its own: who fails on purpose from elsewhere slows
//! everybody down but not the person whose account it is, at the usual place.

use crate::core::time::Mono;
use crate::web::client;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// Failed attempts that an account has free.
const ACCOUNT_FREE: u64 = 10;
/// After this an account has one more, ms.
const ACCOUNT_PAUSE_MS: u64 = 15_000;
/// Failed attempts that an address has free.
const ADDRESS_FREE: u64 = 20;
/// After this an address has one more, ms.
const ADDRESS_PAUSE_MS: u64 = 5_000;
/// Accounts, and addresses, that are remembered.
const KEPT: usize = 10_000;

/// The failed sign-ins of this node.
#[derive(Debug, Default)]
pub struct SlowDown(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    accounts: Buckets,
    addresses: Buckets,
    /// Accounts with an address from which they were signed in to.
    usual: HashSet<(String, String)>,
}

impl Default for Kept {
    fn default() -> Self {
        let accounts = Buckets::new(ACCOUNT_FREE, ACCOUNT_PAUSE_MS);
        Self { accounts, addresses: Buckets::new(ADDRESS_FREE, ADDRESS_PAUSE_MS), usual: HashSet::new() }
    }
}

impl Kept {
    /// The name under which an account is charged.
    fn account(&self, account: &str, address: &str) -> String {
        let usual = self.usual.contains(&(account.to_owned(), address.to_owned()));
        // No name holds a control character, so that this one is nobody's.
        if usual { format!("{account}\0{address}") } else { account.to_owned() }
    }
}

impl SlowDown {
    /// Charges an attempt on an account from an address.
    ///
    /// # Errors
    /// How long to wait, in ms; nothing is charged then.
    pub fn charge(&self, account: &str, address: Option<IpAddr>, now: Mono) -> Result<(), u64> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let address = network(address);
        let account = kept.account(account, &address);
        kept.accounts.wait(&account, now).max(kept.addresses.wait(&address, now)).map_or(Ok(()), Err)?;
        kept.accounts.charge(&account, now);
        kept.addresses.charge(&address, now);
        Ok(())
    }

    /// The password was right: the account starts afresh, and the address gets its attempt back.
    pub fn forgive(&self, account: &str, address: Option<IpAddr>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let address = network(address);
        let charged = kept.account(account, &address);
        kept.accounts.paid_at.remove(&charged);
        kept.addresses.give_back(&address);
        if kept.usual.len() >= KEPT {
            kept.usual.clear();
        }
        kept.usual.insert((account.to_owned(), address));
    }
}

/// The name under which an address is counted.
fn network(address: Option<IpAddr>) -> String {
    address.map(client::network).map_or_else(String::new, |network| network.to_string())
}

#[derive(Debug)]
struct Buckets {
    free: u64,
    pause_ms: u64,
    /// When all attempts of a name are paid off.
    paid_at: HashMap<String, Mono>,
}

impl Buckets {
    fn new(free: u64, pause_ms: u64) -> Self {
        Self { free, pause_ms, paid_at: HashMap::new() }
    }

    /// How long this name has to wait; `None` = not at all.
    fn wait(&self, name: &str, now: Mono) -> Option<u64> {
        let owed = self.paid_at.get(name).map_or(0, |at| *at - now);
        (owed + self.pause_ms).checked_sub(self.free * self.pause_ms).filter(|ms| *ms > 0)
    }

    fn charge(&mut self, name: &str, now: Mono) {
        if self.paid_at.len() >= KEPT && !self.paid_at.contains_key(name) {
            self.make_room(now);
        }
        let paid_at = self.paid_at.entry(name.to_owned()).or_insert(now);
        *paid_at = (*paid_at).max(now) + self.pause_ms;
    }

    fn give_back(&mut self, name: &str) {
        if let Some(paid_at) = self.paid_at.get_mut(name) {
            *paid_at = Mono(paid_at.0.saturating_sub(self.pause_ms));
        }
    }

    /// Forgets those that owe nothing; if there are none, the tenth part that owes least.
    fn make_room(&mut self, now: Mono) {
        self.paid_at.retain(|_, at| *at > now);
        if self.paid_at.len() < KEPT {
            return;
        }
        let mut all: Vec<Mono> = self.paid_at.values().copied().collect();
        let (_, least, _) = all.select_nth_unstable(KEPT / 10);
        let least = *least;
        self.paid_at.retain(|_, at| *at > least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(n: u8) -> Option<IpAddr> {
        Some(IpAddr::from([10, 0, 0, n]))
    }

    #[test]
    fn an_account_is_slowed_from_wherever_it_is_tried_and_recovers_with_time() {
        let slow = SlowDown::default();
        for n in 0..ACCOUNT_FREE {
            slow.charge("alice", from(n as u8), Mono(0)).unwrap();
        }
        assert_eq!(slow.charge("alice", from(99), Mono(0)), Err(ACCOUNT_PAUSE_MS));
        assert_eq!(slow.charge("alice", from(99), Mono(ACCOUNT_PAUSE_MS - 1)), Err(1));
        slow.charge("alice", from(99), Mono(ACCOUNT_PAUSE_MS)).unwrap();
        assert!(slow.charge("alice", from(99), Mono(ACCOUNT_PAUSE_MS)).is_err(), "one more, not all of them");
        slow.charge("bob", from(0), Mono(0)).unwrap();
    }

    #[test]
    fn an_address_is_slowed_whomever_it_tries() {
        let slow = SlowDown::default();
        for n in 0..ADDRESS_FREE {
            slow.charge(&format!("user-{n}"), from(1), Mono(0)).unwrap();
        }
        assert_eq!(slow.charge("alice", from(1), Mono(0)), Err(ADDRESS_PAUSE_MS));
        slow.charge("alice", from(2), Mono(0)).unwrap();
        let v6 = |tail| Some(IpAddr::from([0x2001, 0xdb8, 0, 7, tail, 0, 0, 1]));
        for n in 0..ADDRESS_FREE {
            slow.charge(&format!("other-{n}"), v6(n as u16), Mono(0)).unwrap();
        }
        assert!(slow.charge("alice", v6(99), Mono(0)).is_err(), "one network is one address");
    }

    #[test]
    fn who_fails_elsewhere_on_purpose_does_not_lock_a_person_out_at_the_usual_place() {
        let slow = SlowDown::default();
        slow.charge("alice", from(1), Mono(0)).unwrap();
        slow.forgive("alice", from(1));
        for _ in 0..ACCOUNT_FREE {
            slow.charge("alice", from(66), Mono(0)).unwrap();
        }
        assert!(slow.charge("alice", from(66), Mono(0)).is_err() && slow.charge("alice", from(2), Mono(0)).is_err());
        for _ in 0..ACCOUNT_FREE {
            slow.charge("alice", from(1), Mono(0)).unwrap();
        }
        assert!(slow.charge("alice", from(1), Mono(0)).is_err(), "there too, guesses have an end");
    }

    #[test]
    fn a_right_password_costs_nothing() {
        let slow = SlowDown::default();
        for _ in 0..100 {
            slow.charge("alice", from(1), Mono(0)).unwrap();
            slow.forgive("alice", from(1));
        }
    }

    #[test]
    fn no_number_of_names_grows_the_memory_and_those_that_owe_most_stay() {
        let slow = SlowDown::default();
        for _ in 0..ACCOUNT_FREE {
            slow.charge("alice", None, Mono(0)).unwrap_or_default();
        }
        for n in 0..=KEPT * 2 {
            let four = u32::try_from(n).unwrap() + (11 << 24);
            slow.charge(&n.to_string(), Some(IpAddr::V4(four.into())), Mono(0)).unwrap();
        }
        assert!(slow.charge("alice", from(1), Mono(0)).is_err());
        let kept = slow.0.lock().unwrap();
        assert!(kept.accounts.paid_at.len() <= KEPT && kept.addresses.paid_at.len() <= KEPT);
    }
}
