//! What a run may break, by the number that guarantees and reports name it with.

use std::fmt;

/// A promise that is checked all along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// Every accepted id exists, exactly once.
    AcceptedOnce,
    /// No item of a task is written twice; a task that succeeded has written each once.
    Ledger,
    /// Tokens only grow, and every accepted write carried the newest.
    Tokens,
    /// States move along the declared arrows only.
    Arrows,
    /// No row that no claim, sweep, timer or person can move.
    Orphans,
    /// Never more hold a concurrency key than its limit, and no slot lies idle while somebody waits.
    Slots,
    /// `current` never falls for one total; 100 % only after success.
    Progress,
    /// Attempts, failures and lost leases stay within their budgets.
    Budgets,
    /// A chunk goes on from the last acknowledged checkpoint.
    Checkpoint,
    /// Revisions that are pushed rise, and the last push is the row.
    Push,
    /// Every change of state has its timeline entry in the same commit.
    Timeline,
    /// When all is done nothing is held: no lease, no place, no transaction.
    AtRest,
    /// One task for one idempotency key within its retention.
    OneHolder,
    /// No chunk of a pack starts while it is off, and a serial one has one at a time.
    Packs,
    /// A parent waits for open children only, counts each once, and takes them along when it is stopped.
    Families,
    /// After the faults every task ends within ten leases.
    Liveness,
    /// The code under test, or the simulation, broke down.
    Panic,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, words) = match self {
            Self::AcceptedOnce => (1, "every accepted id exists exactly once"),
            Self::Ledger => (2, "no (task, item) twice, and every item of a success once"),
            Self::Tokens => (3, "tokens only grow and an accepted write carries the newest"),
            Self::Arrows => (4, "states move along the declared arrows"),
            Self::Orphans => (5, "nothing is stuck"),
            Self::Slots => (6, "holders of a key within its limit, and no slot idle while somebody waits"),
            Self::Progress => (7, "progress is true"),
            Self::Budgets => (8, "attempts and lost leases within their budgets"),
            Self::Checkpoint => (9, "a chunk goes on from an acknowledged checkpoint"),
            Self::Push => (10, "pushed revisions rise and the last push is the row"),
            Self::Timeline => (11, "every change of state has its entry in the same commit"),
            Self::AtRest => (12, "nothing is held when all is done"),
            Self::OneHolder => return f.write_str("one task for one idempotency key"),
            Self::Packs => return f.write_str("no chunk of a pack that is off starts, and a serial one has one"),
            Self::Families => {
                return f.write_str("parents wait for open children, count each once, and take them along");
            }
            Self::Liveness => return f.write_str("every task ends within ten leases after the faults"),
            Self::Panic => return f.write_str("nothing breaks down"),
        };
        write!(f, "invariant {number}: {words}")
    }
}

/// A broken promise, and what shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// The facts.
    pub facts: String,
}

/// The check of one fact: `Ok` where it holds.
pub type Checked = Result<(), Violation>;

/// Holds a fact against a promise; the words are made only where it is broken.
pub fn must(holds: bool, invariant: Invariant, facts: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(Violation { invariant, facts: facts() }) }
}
