//! Wake-up and fan-out: tells the parts of a node, and other nodes, what a commit changed.
//!
//! Never the truth: whatever is lost here costs latency and is healed by the database. Signals are sent after the commit.
//! A subscriber that falls behind is told that it missed something, and has to look into the database.
//!
//! # Between nodes
//! Each node has one [`LocalBus`]. What its own commits tell is carried to the others in one of two ways, or in none:
//! - [`redis`] carries the changed items themselves, so that other nodes need not read them.
//! - [`listen`] carries the word that something changed, over a channel that the database itself offers; the others then look
//!   into the change log.
//! - Without either, each node looks there by itself, twice a second.
//!
//! So nothing here may ever be relied on: which of the ways works decides how soon another node knows, and nothing else.
//! Must never name a store, a route or a driver of a database, and never wait while a commit waits.

pub mod listen;
mod local;
pub mod redis;
mod wire;

pub use local::{LocalBus, Subscription};

use crate::core::change::Change;
use crate::core::ids::TaskId;
use std::sync::Arc;

/// What is told.
#[derive(Clone, Debug)]
pub enum Signal {
    /// Commits changed tasks.
    Changes(Arc<[Change]>),
    /// A task's log has grown up to this seq.
    LogGrew {
        /// Which task.
        task: TaskId,
        /// Its newest seq.
        newest: i64,
    },
    /// Marks of an owner's items (seen, read, archived) changed, and so the counts.
    Marked {
        /// Whose tenant.
        tenant: String,
        /// Whose.
        owner: String,
    },
    /// Another node changed something: the change log tells what.
    Elsewhere,
    /// The subscriber missed signals: everything it shows may be old.
    Missed,
}

impl Signal {
    /// How many changes it holds.
    #[must_use]
    pub fn change_count(&self) -> usize {
        if let Self::Changes(changes) = self { changes.len() } else { 0 }
    }

    /// Whether there may be something to claim after it.
    #[must_use]
    pub fn wakes(&self) -> bool {
        matches!(self, Self::Changes(changes) if changes.iter().any(|c| matches!(c, Change::Task(t) if t.wakes())))
    }
}

/// How signals reach other nodes, and theirs this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Between {
    /// There is nothing between the nodes but the database; or there are no others.
    #[default]
    Nothing,
    /// There should be something, and it has not been found out yet whether it works.
    Trying,
    /// There is something, and it refuses: as if there were nothing.
    Refused,
    /// There should be something, and it does not work.
    Down,
    /// All that others tell arrives.
    Up,
}

/// What wakes this node for work that another one took in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wake {
    /// Its own poll.
    #[default]
    Poll,
    /// The database tells.
    Listen,
}
