//! What the verbs about leases are asked and answer: a claim takes them, a renewal lengthens them, a sweep takes those that are
//! over. A lease is a node's, or that of a worker outside to whom the chunk is lent.

use crate::core::ids::{FencingToken, TaskId};
use crate::core::retry::RetryPolicy;
use crate::core::task::Task;
use crate::core::view::Documents;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Asks for chunks to run.
#[derive(Clone, Debug)]
pub struct ClaimParams {
    /// The node that will run them.
    pub node: String,
    /// The actions it can run.
    pub actions: Vec<String>,
    /// The packs that some of these actions belong to; tasks of other packs are left.
    pub packs: Vec<String>,
    /// Only these tenants; empty = all.
    pub tenants: Vec<String>,
    /// At most so many.
    pub limit: usize,
    /// Length of the lease, ms.
    pub lease_ms: i64,
    /// The tenant that was served last; the turn goes on after it.
    pub after_tenant: Option<String>,
    /// The claim before this one found all that it asked for: tenants that waited a moment ago are taken for those that wait,
    /// unless too little is found among theirs.
    pub many_wait: bool,
    /// Workers outside will run them, and not the node.
    pub seats: Option<Seats>,
}

/// Who gets the chunks of a claim for workers outside.
#[derive(Clone, Debug, Default)]
pub struct Seats {
    /// The holder of the lease of the first chunk that is claimed, of the second, and so on; as many as the limit.
    pub holders: Vec<String>,
    /// How long a chunk of each action may take, ms.
    pub chunk_ms: BTreeMap<String, i64>,
}

/// A chunk to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// The task, already claimed.
    pub task: Task,
    /// Its params and checkpoint.
    pub documents: Documents,
}

/// Lengthens the leases a node holds.
#[derive(Clone, Debug)]
pub struct RenewParams {
    /// The node.
    pub node: String,
    /// What it holds.
    pub held: Vec<(TaskId, FencingToken)>,
    /// Length from now, ms.
    pub lease_ms: i64,
    /// Waits for tasks that somebody is writing at this moment; otherwise they are `Busy`.
    pub waits: bool,
}

/// Lengthens the leases of chunks that workers outside run, none beyond the time of its chunk.
#[derive(Clone, Debug)]
pub struct RenewLent {
    /// Only in this tenant; absent = in all.
    pub tenant: Option<String>,
    /// What they say they hold.
    pub held: Vec<(TaskId, FencingToken)>,
    /// Length from now, ms.
    pub lease_ms: i64,
}

/// What a renewal brings back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// Go on.
    Ok,
    /// Go on, but somebody asked the task to stop.
    Stop,
    /// Somebody is writing the task at this moment, perhaps the end of this very chunk: the lease ends when it did before, and
    /// nobody knows yet whether it is lost.
    Busy,
    /// The lease is lost.
    Stale,
}

/// Looks for what time has undone.
#[derive(Clone, Debug)]
pub struct SweepParams {
    /// At most so many rows.
    pub limit: usize,
    /// Take every lease of a node, whether it ran out or not: for the one process of a file database that has just started.
    pub all: bool,
    /// How long a chunk may take to answer a cancel, ms.
    pub cancel_grace_ms: i64,
    /// How chunks of workers outside are tried again that ran over their time.
    pub retries: Retries,
}

/// Retry rules by action; one that is not named has the usual rule.
#[derive(Clone, Debug, Default)]
pub struct Retries {
    /// The rules.
    pub by_action: Arc<BTreeMap<String, RetryPolicy>>,
    /// Randomness for the jitter, in `[0, 1)`.
    pub unit_random: f64,
}
