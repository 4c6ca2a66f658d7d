//! What the promises of one run wait for: its sleeps and its calls. Each run has its own, so that a nested one is not woken
//! by what the run above it waits for, and leaves nothing behind.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

#[derive(Default)]
pub(super) struct Waits {
    /// Each with what it asks.
    calls: RefCell<BTreeMap<u64, String>>,
    sleeps: RefCell<BTreeSet<(Instant, u64)>>,
}

impl Waits {
    pub fn add_call(&self, ask: u64, name: &str) {
        self.calls.borrow_mut().insert(ask, name.to_owned());
    }

    /// Whether a call of this name has not been answered.
    pub fn asks(&self, name: &str) -> bool {
        self.calls.borrow().values().any(|open| open == name)
    }

    pub fn add_sleep(&self, until: Instant, ask: u64) {
        self.sleeps.borrow_mut().insert((until, ask));
    }

    /// The calls that have not been answered.
    pub fn calls(&self) -> Vec<u64> {
        self.calls.borrow().keys().copied().collect()
    }

    /// A call has been answered.
    pub fn close_call(&self, ask: u64) {
        self.calls.borrow_mut().remove(&ask);
    }

    /// The sleep that ends first.
    pub fn next_sleep(&self) -> Option<(Instant, u64)> {
        self.sleeps.borrow().first().copied()
    }

    /// A sleep is over.
    pub fn close_sleep(&self, sleep: (Instant, u64)) {
        self.sleeps.borrow_mut().remove(&sleep);
    }

    /// Whether nothing is waited for.
    pub fn is_empty(&self) -> bool {
        self.calls.borrow().is_empty() && self.sleeps.borrow().is_empty()
    }
}
