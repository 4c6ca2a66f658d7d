//! What the promises of one run wait for: its sleeps and its calls. Each run has its own, so that a nested one is not woken
//! by what the run above it waits for, and leaves nothing behind.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Instant;

#[derive(Default)]
pub(super) struct Waits {
    calls: RefCell<BTreeSet<u64>>,
    sleeps: RefCell<BTreeSet<(Instant, u64)>>,
}

impl Waits {
    pub fn add_call(&self, ask: u64) {
        self.calls.borrow_mut().insert(ask);
    }

    pub fn add_sleep(&self, until: Instant, ask: u64) {
        self.sleeps.borrow_mut().insert((until, ask));
    }

    /// The calls that have not been answered.
    pub fn calls(&self) -> Vec<u64> {
        self.calls.borrow().iter().copied().collect()
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
