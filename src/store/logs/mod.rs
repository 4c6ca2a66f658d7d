//! The port to the task logs: rows of (task, seq, at, level, source, chunk, message), kept apart from the tasks.
//!
//! Losing this store loses log lines, which is counted and shown, and never fails, slows or blocks a task. A line comes
//! with the fencing token of the chunk that wrote it; lines of an older token than the newest seen for the task are refused,
//! so a writer that was taken over cannot go on writing.
//!
//! Three kinds: a SQLite file of its own, a PostgreSQL database, and the reference model in memory. What becomes of a line is decided in `ledger`,
//! the same for both.

mod ledger;
mod memory;
mod postgres;
mod relational;
mod sqlite;
pub mod statements;

pub use memory::MemoryLogs;
pub use postgres::PostgresLogs;
pub use sqlite::{SqliteLogs, beside};

use super::Result;
use crate::core::ids::{FencingToken, TaskId};
use crate::core::time::Millis;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// How much a line matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// For whoever writes the handler.
    Debug,
    /// What happens.
    #[default]
    Info,
    /// What may need a look.
    Warn,
    /// What went wrong.
    Error,
}

impl Level {
    /// The word used in JSON and SQL.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }

    /// Reads the word; anything else counts as info.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        [Self::Debug, Self::Warn, Self::Error].into_iter().find(|l| l.as_str() == text).unwrap_or_default()
    }
}

impl Level {
    /// Its place from the least to the most, as stored.
    fn rank(self) -> i64 {
        match self {
            Self::Debug => 0,
            Self::Info => 1,
            Self::Warn => 2,
            Self::Error => 3,
        }
    }

    /// The level of a place; anything else counts as info.
    fn of_rank(rank: i64) -> Self {
        [Self::Debug, Self::Warn, Self::Error].into_iter().find(|level| level.rank() == rank).unwrap_or_default()
    }
}

/// How much may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// Bytes of one task; above, its oldest lines go.
    pub task_bytes: i64,
    /// Bytes of one tenant; above, new lines are refused and counted.
    pub tenant_bytes: i64,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self { task_bytes: 50 * 1024 * 1024, tenant_bytes: 5 * 1024 * 1024 * 1024 }
    }
}

/// The most lines of one part.
pub const MAX_PART: usize = 1_000;

/// A line on its way in: cleaned, capped and masked already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLine {
    /// When it was written.
    pub at: Millis,
    /// How much it matters.
    pub level: Level,
    /// Who wrote it: `handler` or `taskbell`.
    pub source: &'static str,
    /// The chunk it belongs to; 0 = none.
    pub chunk: i64,
    /// The text; line breaks are kept.
    pub message: String,
}

/// Lines of one task.
#[derive(Clone, Debug)]
pub struct Append {
    /// Whose.
    pub tenant: String,
    /// Which task.
    pub task: TaskId,
    /// The token of the chunk that wrote them.
    pub token: FencingToken,
    /// In order.
    pub lines: Vec<NewLine>,
}

/// A stored line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    /// Position in the task's log, from 1; gaps are lines that were dropped.
    pub seq: i64,
    /// When it was written.
    pub at: Millis,
    /// How much it matters.
    pub level: Level,
    /// Who wrote it.
    pub source: String,
    /// The chunk; 0 = none.
    pub chunk: i64,
    /// The text.
    pub message: String,
}

/// Which part of a task's log. Without `before` it begins at the old end.
#[derive(Clone, Debug, Default)]
pub struct LogParams {
    /// Lines after this seq.
    pub after: Option<i64>,
    /// Lines before this seq (newest first, then turned round).
    pub before: Option<i64>,
    /// This level or above.
    pub level: Option<Level>,
    /// Literal part of the message, no pattern; letters A to Z in either case.
    pub text: Option<String>,
    /// At most so many, ≤ [`MAX_PART`].
    pub limit: usize,
}

/// What is there of it.
#[derive(Clone, Debug, Default)]
pub struct LogPart {
    /// In order of seq.
    pub items: Vec<LogLine>,
    /// Lines of this task that were dropped by a cap or lost by a fault; each is a seq that is missing.
    pub dropped: i64,
    /// The newest seq of the task that was given out; 0 = no log.
    pub newest: i64,
}

/// What became of appended lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// Taken in from this seq on; those without room in the tenant are counted as dropped.
    From(i64),
    /// The writer is not the owner any more.
    Stale,
}

/// The task logs, as the rest of taskbell sees them.
#[async_trait]
pub trait LogStore: Send + Sync {
    /// Stores lines of many tasks in one transaction.
    async fn append(&self, items: Vec<Append>) -> Result<Vec<Appended>>;
    /// A part of a task's log.
    async fn part(&self, task: TaskId, params: LogParams) -> Result<LogPart>;
    /// The newest seqs of tasks that were given out; those without a log are left out.
    async fn newest(&self, tasks: &[TaskId]) -> Result<BTreeMap<TaskId, i64>> {
        let mut found = BTreeMap::new();
        for task in tasks {
            let part = self.part(*task, LogParams { before: Some(i64::MAX), limit: 1, ..LogParams::default() }).await?;
            if part.newest > 0 {
                found.insert(*task, part.newest);
            }
        }
        Ok(found)
    }
    /// Counts lines of a task that were lost on the way; their numbers stay missing.
    async fn note_dropped(&self, task: TaskId, count: i64) -> Result<()>;
    /// Forgets the logs of tasks. A writer that is still under way may begin one anew, which nobody can reach.
    async fn delete(&self, tasks: &[TaskId]) -> Result<()>;
}
