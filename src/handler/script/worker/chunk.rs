//! One chunk: its own script, and what the scripts nested in it share with it.

use super::super::limits;
use super::super::protocol::{Fault, Run};
use super::bridge::Bridge;
use super::realm::Realm;
use super::script::{self, Script};
use crate::core::budget::Spent;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A chunk while it runs.
pub(super) struct Chunk {
    pub bridge: Rc<Bridge>,
    pub run: Run,
    /// Budgets that nested runs have hit, so that a script can throw such a hit on but not make one up.
    pub hits: RefCell<Vec<Spent>>,
    /// Where the stack of its first script began.
    stack_top: usize,
    /// What the process held, bytes, before anything of the chunk was in it.
    pub resident_bytes: Cell<u64>,
    /// A runtime was stopped in its middle; this process should run no other chunk.
    pub unsettled: Cell<bool>,
}

/// How a chunk ended.
pub(super) struct Ended {
    pub said: Result<String, Fault>,
    pub unsettled: bool,
}

/// Runs a chunk.
pub(super) fn run(realm: &Realm, bridge: &Rc<Bridge>, run: Run, source: Vec<u8>) -> Ended {
    bridge.begin(&run);
    let chunk = Rc::new(Chunk {
        bridge: Rc::clone(bridge),
        run,
        hits: RefCell::default(),
        stack_top: here(),
        resident_bytes: Cell::new(limits::resident_bytes()),
        unsettled: Cell::default(),
    });
    let budgets = chunk.run.budgets;
    let script = Script {
        name: &chunk.run.name,
        chunk: serde_json::to_string(&chunk.run.chunk).expect("a chunk came as JSON"),
        source,
        memory_bytes: budgets.memory_bytes,
        stack_bytes: usize::try_from(budgets.stack_bytes).unwrap_or(usize::MAX),
    };
    let said = script::run(realm, &chunk, script);
    // Whatever the script made of it: what is over is over.
    let said = bridge.meter.over().map_or(said, |spent| Err(Fault::Budget(spent)));
    let unsettled = chunk.unsettled.get() || said.as_ref().is_err_and(unsettles);
    Ended { said, unsettled }
}

/// Whether the interpreter was stopped where it did not expect it.
pub(super) fn unsettles(fault: &Fault) -> bool {
    matches!(fault, Fault::Budget(_))
}

impl Chunk {
    /// How much of its stack the chunk has used, bytes, the host's own part included.
    pub fn stack_used_bytes(&self) -> usize {
        self.stack_top.saturating_sub(here())
    }
}

/// Where the stack is now. It grows towards lower addresses.
#[inline(never)]
fn here() -> usize {
    let mark = 0_u8;
    std::ptr::from_ref(&mark).addr()
}
