//! Faults that are planted on purpose: each takes one protection away, as if somebody had forgotten it. With any of them
//! the simulator has to turn red, or it proves nothing.

/// What is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// The end of a chunk is taken from any writer, whatever its token.
    NoTokenTest,
    /// Nobody is found to hold an idempotency key, as without a unique index.
    NoUniqueIndex,
    /// A page that comes back is told that it has everything.
    NoRereadOnReconnect,
    /// A slot that was given back is given back once more.
    SlotFreedTwice,
    /// A claim does not look at the switch of a pack, nor at the chunk that a serial one has.
    BlindToPacks,
    /// The end of a last child does not wake its parent, and no sweep finds the parent.
    DeafParents,
    /// Nobody asks the children of a stopped parent to stop.
    ForsakenChildren,
}
