//! What the verbs about retention are asked and answer: which tasks are old, and which of them have gone.

use crate::core::ids::TaskId;
use crate::core::retention::{End, Keep};
use crate::core::time::Millis;

/// A task as retention sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aged {
    /// Which task.
    pub id: TaskId,
    /// When it was accepted.
    pub created_at: Millis,
    /// How and when it ended; absent while it has not, or in a way that this version does not know.
    pub end: Option<End>,
    /// How long after its success it answers for an idempotency key, ms; 0 = for none.
    pub key_ms: i64,
}

/// Asks for tasks to be taken away whose time is over.
#[derive(Clone, Debug)]
pub struct RetainParams {
    /// Those that were found so.
    pub tasks: Vec<Aged>,
    /// How long tasks are kept.
    pub keep: Keep,
}
