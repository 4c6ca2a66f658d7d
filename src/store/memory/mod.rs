//! The reference model: the port over plain collections, for tests and simulation. Nothing survives the process.
//!
//! What it answers is what a database has to answer; the store suite runs one body over all of them. It takes the same
//! flows, so the only thing that can differ is a row-level step.
//!
//! One transaction at a time holds the tables. What it changes, it changes in place, and notes in a journal what was there
//! before; a transaction that is dropped plays its journal back. Reading verbs wait for the transaction under way, so they
//! never see half of one. The clock is given: it stands for the clock of the database.
//!
//! It has no business tables: effects and queries answer `Unsupported`.

mod accounts;
mod nodes;
mod read;
mod tables;
mod tx;

use super::tx::Tx;
use crate::core::time::{Clock, Millis};
use std::sync::Arc;
use tables::Tables;
use tokio::sync::Mutex;

/// Tasks and all that is theirs, in memory. Cheap to share behind an `Arc`.
pub struct MemoryStore {
    tables: Arc<Mutex<Tables>>,
    clock: Arc<dyn Clock>,
    epoch: String,
}

impl MemoryStore {
    /// An empty store; `clock` is the clock of the database that it stands for.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let epoch = format!("memory-{:x}", clock.now().0);
        Self { tables: Arc::default(), clock, epoch }
    }

    async fn begin_write(&self) -> Box<dyn Tx> {
        let tables = self.tables.clone().lock_owned().await;
        Box::new(tx::MemoryTx::new(tables, self.clock.clone()))
    }

    fn database_now(&self) -> Millis {
        self.clock.now()
    }
}
