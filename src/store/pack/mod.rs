//! A pack's own database: its tables, asked by scripts, and the marks that let a chunk happen there once.
//!
//! What a chunk changes is one transaction, which begins with its first change and ends with the chunk: committed together
//! with the chunk's mark, or rolled back. Until the first change, questions are read committed and hold nothing up.
//!
//! The mark is one row a task: the number, the token and the answer of its last chunk that changed something here. The
//! commit of a chunk and that of its task are two commits; when a node dies between them, the same chunk comes again, finds
//! its mark and is answered instead of run. Two runs of one chunk at once (a node that was taken for dead) meet at the mark:
//! the slower one is told what the faster one answered.
//!
//! A table that the manifest names and the database lacks is made; one that exists is never changed. A statement that the
//! database refuses is undone by itself, to a savepoint where the database needs one, and leaves the transaction as it was.
//!
//! Must never: take an identifier from anywhere but the manifest, hold a lock while nothing was changed, or let a value into
//! a message.

mod postgres;
mod sqlite;
mod statement;

use super::{Result, StoreError};
use crate::core::pack::Table;
use crate::core::tables::{Ask, Found};
use async_trait::async_trait;
use std::path::Path;
use std::time::Duration;

/// The database of a pack. One value for a pack serves all its chunks on a node.
#[async_trait]
pub trait PackDatabase: Send + Sync {
    /// Makes what is missing (tables, the table of marks), and looks whether each table has its columns. Answers the names
    /// of the tables that it made.
    async fn prepare(&self, tables: &[Table]) -> Result<Vec<String>>;
    /// What a task's last chunk that changed something was, and what it answered.
    async fn mark(&self, task: &str) -> Result<Option<(i64, String)>>;
    /// Asks outside of any transaction.
    async fn look(&self, ask: &Ask<'_>) -> Result<Found>;
    /// Begins what a chunk changes; the chunk has so long.
    async fn begin(&self, time: Duration) -> Result<Box<dyn PackWork>>;
}

/// What a chunk changes. Rolled back when it is dropped.
#[async_trait]
pub trait PackWork: Send {
    /// Asks, and sees what was changed before. `Limit` = the database refused it, and all else stands.
    async fn ask(&mut self, ask: &Ask<'_>) -> Result<Found>;
    /// Commits it with the chunk's mark. False when this chunk, or a later one, was marked before: nothing was changed then.
    async fn commit(self: Box<Self>, mark: &Marked<'_>) -> Result<bool>;
}

/// The end of a chunk.
#[derive(Clone, Copy, Debug)]
pub struct Marked<'a> {
    /// The task.
    pub task: &'a str,
    /// The chunk's number.
    pub chunk: i64,
    /// The token that it ran under.
    pub token: i64,
    /// What it answered, as JSON.
    pub outcome: &'a str,
}

/// A SQLite file, which is made with its folder where it is missing.
pub fn sqlite(path: &Path) -> Result<Box<dyn PackDatabase>> {
    Ok(Box::new(sqlite::SqlitePack::open(path)?))
}

/// A PostgreSQL database. Connects when it is first asked.
pub fn postgres(url: &str) -> Result<Box<dyn PackDatabase>> {
    Ok(Box::new(postgres::PostgresPack::open(url)?))
}
