//! The tables of a pack, as its handlers reach them: questions, and one transaction for what a chunk changes.
//!
//! What stands behind it (the pack's database, or a test) implements [`TableData`]. The transaction begins with the first
//! change and is committed with the answer of the chunk, or not at all; until then questions hold nothing up. Once it has
//! been lost (the connection, a deadlock) the chunk cannot change anything more and is not committed: nothing of it may be
//! half there.

use super::{ChunkIn, HandlerError};
use crate::core::chunk::Failure;
use crate::core::pack::Table;
use crate::core::tables::{Ask, Found};
use crate::core::task::ErrorKind;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableFault {
    /// The database refused this one; names tables and columns, never values.
    #[error("{0}")]
    Refused(String),
    /// The database cannot be asked now.
    #[error("{0}")]
    Away(String),
}

/// The end of a chunk, as it is marked beside its changes.
#[derive(Clone, Copy, Debug)]
pub struct ChunkMark<'a> {
    /// The task.
    pub task: &'a str,
    /// The chunk's number.
    pub chunk: i64,
    /// The token that it ran under.
    pub token: i64,
    /// Its answer as JSON.
    pub answer: &'a str,
}

/// The database of a pack.
#[async_trait]
pub trait TableData: Send + Sync {
    /// The tables that the manifest names.
    fn tables(&self) -> &[Table];
    /// The last chunk of a task that changed something, and its answer.
    async fn marked(&self, task: &str) -> Result<Option<(i64, String)>, TableFault>;
    /// Asks outside of any transaction.
    async fn look(&self, ask: &Ask<'_>) -> Result<Found, TableFault>;
    /// Begins what a chunk changes; the chunk has so long.
    async fn begin(&self, time: Duration) -> Result<Box<dyn TableWork>, TableFault>;
}

/// What a chunk changes. Undone when it is dropped.
#[async_trait]
pub trait TableWork: Send {
    /// Asks, and sees what was changed before. A question that is refused leaves all else as it is.
    async fn ask(&mut self, ask: &Ask<'_>) -> Result<Found, TableFault>;
    /// Commits with the mark; false when this chunk, or a later one, was marked already and nothing was changed.
    async fn commit(self: Box<Self>, mark: &ChunkMark<'_>) -> Result<bool, TableFault>;
}

/// The tables of one chunk.
pub struct ChunkTables {
    data: Arc<dyn TableData>,
    time: Duration,
    work: Mutex<Work>,
}

enum Work {
    Unchanged,
    /// Begun; `asking` while a question is under way, and for ever when it was not waited for to its end.
    Open {
        changes: Box<dyn TableWork>,
        asking: bool,
    },
    Lost(TableFault),
}

impl ChunkTables {
    /// For a chunk that has so long.
    #[must_use]
    pub fn new(data: Arc<dyn TableData>, time: Duration) -> Self {
        Self { data, time, work: Mutex::new(Work::Unchanged) }
    }

    /// The tables that there are.
    #[must_use]
    pub fn tables(&self) -> &[Table] {
        self.data.tables()
    }

    /// What a chunk answered that has ended before: it is answered again, and not run.
    pub async fn answered(&self, chunk: &ChunkIn) -> Result<Option<String>, HandlerError> {
        match self.data.marked(&chunk.task.id.to_string()).await.map_err(away)? {
            Some((number, answer)) if number == chunk.chunk => Ok(Some(answer)),
            // The database of the pack is ahead: it was not taken back together with that of the tasks.
            Some((number, _)) if number > chunk.chunk => Err(HandlerError::permanent(
                "pack-ahead",
                format!(
                    "The pack's database has seen step {number} of this task, which is only at step {}.",
                    chunk.chunk
                ),
            )),
            _ => Ok(None),
        }
    }

    /// Asks one question.
    pub async fn ask(&self, ask: &Ask<'_>) -> Result<Found, TableFault> {
        let mut work = self.work.lock().await;
        if matches!(*work, Work::Unchanged) {
            if !ask.act.writes() {
                drop(work);
                return self.data.look(ask).await;
            }
            *work = Work::Open { changes: self.data.begin(self.time).await?, asking: false };
        }
        let asked = match &mut *work {
            Work::Open { changes, asking } => {
                *asking = true;
                let asked = changes.ask(ask).await;
                *asking = false;
                asked
            }
            Work::Lost(fault) => Err(fault.clone()),
            Work::Unchanged => unreachable!("it was opened above"),
        };
        if let Err(fault @ TableFault::Away(_)) = &asked {
            *work = Work::Lost(fault.clone());
        }
        asked
    }

    /// Commits what the chunk changed, with its answer. Answers another answer when the same chunk ended elsewhere first.
    pub async fn commit(&self, chunk: &ChunkIn, answer: &str) -> Result<Option<String>, HandlerError> {
        let mut work = self.work.lock().await;
        let open = match std::mem::replace(&mut *work, Work::Unchanged) {
            Work::Unchanged => return Ok(None),
            Work::Lost(fault) => return Err(away(fault)),
            Work::Open { asking: true, .. } => {
                let why = "outcome: the script answered while a call of cx.tables was under way; it must await each";
                return Err(HandlerError::Failed(Box::new(Failure::new(ErrorKind::BadOutcome, "bad-outcome", why))));
            }
            Work::Open { changes, .. } => changes,
        };
        let (task, token) = (chunk.task.id.to_string(), chunk.fencing_token.0);
        let mark = ChunkMark { task: &task, chunk: chunk.chunk, token, answer };
        if open.commit(&mark).await.map_err(away)? {
            return Ok(None);
        }
        self.answered(chunk).await
    }
}

/// The chunk is not committed. It comes again when the database was away; tables that are not as the manifest says stay so.
fn away(fault: TableFault) -> HandlerError {
    match fault {
        TableFault::Refused(why) => HandlerError::permanent("pack-tables", why),
        TableFault::Away(why) => {
            tracing::warn!(why, "the database of a pack could not be asked");
            HandlerError::retry("pack-database", "The database of the pack could not answer. It will be tried again.")
        }
    }
}
