//! What stands between the handlers and the log store: a bounded queue, and one loop that empties it.
//!
//! Writing a line never waits and never fails a task. What does not fit is lost, counted, and told to the store, so that a
//! reader sees the gap. One task may take half of the queue at most, so a task that floods loses its own lines and not
//! those of its neighbours. Every line is cleaned, masked and capped here, in this order: a secret that is broken by a
//! colour code or cut in two would not be known any more.
//!
//! Lines go to the store when 500 wait or 200 ms after the first, together; watchers are told after the commit. Named
//! failure cases: a store that is busy is tried again a few times; one that is gone costs the lines of the outage, never
//! memory; lines that the store refuses are never tried for ever, and cost their neighbours nothing; a writer that was
//! taken over writes nothing.

mod queue;
mod writer;

use crate::bus::LocalBus;
use crate::core::ids::{FencingToken, TaskId};
use crate::core::redact::Redactor;
use crate::core::time::Clock;
use crate::store::StoreError;
use crate::store::logs::{Level, LogStore};
use queue::Shelf;
use std::sync::Arc;
use tokio::sync::watch;
use writer::Writer;

/// Whose lines: the chunk that writes.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The task.
    pub task: TaskId,
    /// Its tenant.
    pub tenant: Arc<str>,
    /// The token of the chunk.
    pub token: FencingToken,
    /// The number of the chunk; 0 = none.
    pub chunk: i64,
}

/// Takes log lines. Cheap to clone; the loop ends when the last clone is gone and the queue is empty.
#[derive(Clone)]
pub struct Logbook {
    desk: Arc<Desk>,
    clock: Arc<dyn Clock>,
    written: watch::Receiver<u64>,
    store: Arc<dyn LogStore>,
}

impl Logbook {
    /// Starts the loop that writes to `store` and tells `bus`. Needs a tokio runtime.
    #[must_use]
    pub fn start(store: Arc<dyn LogStore>, bus: LocalBus, clock: Arc<dyn Clock>, redactor: Redactor) -> Self {
        let (sender, written) = watch::channel(0);
        let shelf = Arc::new(Shelf::default());
        tokio::spawn(Writer::new(store.clone(), bus, redactor, shelf.clone()).run(sender));
        Self { desk: Arc::new(Desk(shelf)), clock, written, store }
    }

    /// Takes a line; `source` is `handler` or `taskbell`. Never waits; a line that has no room is lost and counted.
    pub fn log(&self, origin: &Origin, level: Level, source: &'static str, text: &str) {
        self.desk.0.put(queue::Waiting::new(origin, self.clock.now(), level, source, text));
    }

    /// Takes the logs of tasks away.
    ///
    /// # Errors
    /// When the store does not answer; then it keeps them.
    pub async fn forget(&self, tasks: &[TaskId]) -> Result<(), StoreError> {
        let written: Vec<TaskId> = self.store.newest(tasks).await?.into_keys().collect();
        if written.is_empty() { Ok(()) } else { self.store.delete(&written).await }
    }

    /// Waits until what was taken before this call is in the store, or is counted as lost. A store that hangs makes it
    /// hang, so whoever drains sets a limit.
    pub async fn flush(&self) {
        let asked = self.desk.0.hurry();
        // An error means that the loop is gone, and the lines with it.
        let _ = self.written.clone().wait_for(|written| *written >= asked).await;
    }
}

/// The side that puts lines in; tells the loop when it is gone.
struct Desk(Arc<Shelf>);

impl Drop for Desk {
    fn drop(&mut self) {
        self.0.close();
    }
}
