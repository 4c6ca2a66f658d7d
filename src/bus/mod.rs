//! Wake-up and fan-out: tells the parts of a node (later: other nodes) what a commit changed.
//!
//! Never the truth: whatever is lost here costs latency and is healed by the database. Signals are sent after the commit.
//! A subscriber that falls behind is told that it missed something, and has to look into the database.

use crate::core::change::Change;
use crate::core::ids::TaskId;
use std::sync::Arc;
use tokio::sync::broadcast;

/// How many signals may wait for a slow subscriber before it is told that it missed some.
const BACKLOG: usize = 4_096;

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
    /// The subscriber missed signals: everything it shows may be old.
    Missed,
}

/// The bus of one node.
#[derive(Clone, Debug)]
pub struct LocalBus {
    sender: broadcast::Sender<Signal>,
}

impl Default for LocalBus {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(BACKLOG) }
    }
}

impl LocalBus {
    /// Tells everybody; without subscribers it tells nobody.
    pub fn publish(&self, signal: Signal) {
        let _ = self.sender.send(signal);
    }

    /// Listens from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        Subscription { receiver: self.sender.subscribe() }
    }
}

/// A subscriber's end.
#[derive(Debug)]
pub struct Subscription {
    receiver: broadcast::Receiver<Signal>,
}

impl Subscription {
    /// The next signal; `None` when the bus is gone.
    pub async fn next(&mut self) -> Option<Signal> {
        match self.receiver.recv().await {
            Ok(signal) => Some(signal),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Signal::Missed),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
