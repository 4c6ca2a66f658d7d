//! Task logs in a SQLite file of their own, beside the database, so that log writes never hold up the commits of tasks.
//!
//! WAL, one writer connection whose transactions begin as IMMEDIATE, a small pool of readers. `synchronous` is NORMAL: a
//! power cut may cost the lines of the last moments, and a log is no promise, while the file itself stays whole; a crash of
//! the process alone costs nothing. Must never be joined with the tables of tasks: it may be another file, or be lost.
//!
//! One append is one transaction of five statements at most, however many tasks and lines it carries.

use super::ledger::{Head, Row};
use super::{Append, Appended, Level, LogLimits, LogLine, LogParams, LogPart, LogStore, MAX_PART};
use crate::core::ids::TaskId;
use crate::core::time::Millis;
use crate::store::sqlite::fault;
use crate::store::{Result, StoreError};
use async_trait::async_trait;
use serde_json::json;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteRow, SqliteSynchronous};
use sqlx::{Row as _, SqliteConnection, SqlitePool};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

const MIGRATION_1: &str = include_str!("../../../migrations/sqlite-logs/0001_logs.sql");
const VERSION: &str = include_str!("../sql/logs/version.sql");
const SET_VERSION_1: &str = include_str!("../sql/logs/set_version_1.sql");
const HEADS: &str = include_str!("../sql/logs/heads.sql");
const HEAD: &str = include_str!("../sql/logs/head.sql");
const TENANTS: &str = include_str!("../sql/logs/tenants.sql");
const PUT_LINES: &str = include_str!("../sql/logs/put_lines.sql");
const PUT_HEADS: &str = include_str!("../sql/logs/put_heads.sql");
const PUT_TENANTS: &str = include_str!("../sql/logs/put_tenants.sql");
const OLDEST: &str = include_str!("../sql/logs/oldest.sql");
const DROP_LINES: &str = include_str!("../sql/logs/drop_lines.sql");
const DROP_HEAD: &str = include_str!("../sql/logs/drop_head.sql");
const LINES_AFTER: &str = include_str!("../sql/logs/lines_after.sql");
const LINES_BEFORE: &str = include_str!("../sql/logs/lines_before.sql");

/// The newest migration of the file.
const NEWEST_VERSION: i64 = 1;
const READERS: u32 = 4;
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// Lines looked at in one step when the oldest have to go.
const TRIM_STEP: i64 = 1_000;

/// Where the logs of a database file are kept: `data/taskbell.db` has `data/taskbell-logs.db`.
#[must_use]
pub fn beside(database: &Path) -> PathBuf {
    let stem = database.file_stem().unwrap_or_default().to_string_lossy();
    database.with_file_name(format!("{stem}-logs.db"))
}

/// Task logs in a SQLite file.
pub struct SqliteLogs {
    limits: LogLimits,
    writer: SqlitePool,
    readers: SqlitePool,
}

impl SqliteLogs {
    /// Opens the file, made with its folder where it is missing, and brings it up to date. `Corrupt` when a newer version wrote it.
    pub async fn open(path: &Path, limits: LogLimits) -> Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|e| StoreError::Unavailable(format!("cannot make the folder {}: {e}", folder.display())))?;
        }
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(BUSY_TIMEOUT)
            .pragma("journal_size_limit", "67108864");
        let pool = || SqlitePoolOptions::new().acquire_timeout(ACQUIRE_TIMEOUT).idle_timeout(None).max_lifetime(None);
        let writer = pool().max_connections(1).connect_with(options.clone()).await.map_err(fault)?;
        migrate(&writer).await?;
        let readers = pool().max_connections(READERS).connect_lazy_with(options.read_only(true));
        Ok(Self { limits, writer, readers })
    }

    /// Ends all connections; what was appended is in the file.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// Brings the file up to date in one transaction; several processes may try at once.
async fn migrate(writer: &SqlitePool) -> Result<()> {
    let mut tx = writer.begin_with("BEGIN IMMEDIATE").await.map_err(fault)?;
    let version: i64 = sqlx::query_scalar(VERSION).fetch_one(&mut *tx).await.map_err(fault)?;
    if version > NEWEST_VERSION {
        return Err(StoreError::Corrupt(format!(
            "the log file has version {version}, this program knows {NEWEST_VERSION}; start the newer program"
        )));
    }
    if version < 1 {
        sqlx::raw_sql(MIGRATION_1).execute(&mut *tx).await.map_err(fault)?;
        sqlx::raw_sql(SET_VERSION_1).execute(&mut *tx).await.map_err(fault)?;
    }
    tx.commit().await.map_err(fault)
}

/// What an append works on: loaded first, changed in memory, written back at its end.
#[derive(Default)]
struct Books {
    heads: BTreeMap<TaskId, Head>,
    tenants: BTreeMap<String, i64>,
}

impl Books {
    async fn load(tx: &mut SqliteConnection, tasks: &[TaskId], tenants: BTreeSet<String>) -> Result<Self> {
        let mut books = Self::default();
        let rows = sqlx::query(HEADS).bind(json!(tasks).to_string()).fetch_all(&mut *tx).await.map_err(fault)?;
        for row in &rows {
            let task = row.try_get::<&str, _>(0).map_err(fault)?;
            let task = task.parse().map_err(|_| StoreError::Corrupt(format!("{task} is no task id")))?;
            books.heads.insert(task, head_of(row).map_err(fault)?);
        }
        let names: BTreeSet<&String> = tenants.iter().chain(books.heads.values().map(|head| &head.tenant)).collect();
        let names = json!(names).to_string();
        let rows = sqlx::query(TENANTS).bind(names).fetch_all(&mut *tx).await.map_err(fault)?;
        for row in &rows {
            books.tenants.insert(row.try_get(0).map_err(fault)?, row.try_get(1).map_err(fault)?);
        }
        Ok(books)
    }

    async fn save(self, tx: &mut SqliteConnection) -> Result<()> {
        let heads: Vec<_> =
            self.heads.iter().map(|(task, h)| json!([task, h.tenant, h.token, h.newest, h.bytes, h.dropped])).collect();
        let tenants: Vec<_> = self.tenants.iter().map(|(tenant, bytes)| json!([tenant, bytes])).collect();
        for (sql, rows) in [(PUT_HEADS, heads), (PUT_TENANTS, tenants)] {
            sqlx::query(sql).bind(json!(rows).to_string()).execute(&mut *tx).await.map_err(fault)?;
        }
        Ok(())
    }

    /// Drops the oldest lines of a task until `excess` bytes are gone.
    async fn trim(&mut self, tx: &mut SqliteConnection, task: TaskId, excess: i64) -> Result<()> {
        let (mut lines, mut bytes, mut last) = (0, 0, 0);
        while bytes < excess {
            let asked = sqlx::query_as(OLDEST).bind(task.to_string()).bind(last).bind(TRIM_STEP);
            let oldest: Vec<(i64, i64)> = asked.fetch_all(&mut *tx).await.map_err(fault)?;
            if oldest.is_empty() {
                break;
            }
            for (seq, size) in oldest {
                if bytes >= excess {
                    break;
                }
                (lines, bytes, last) = (lines + 1, bytes + size, seq);
            }
        }
        sqlx::query(DROP_LINES).bind(task.to_string()).bind(last).execute(&mut *tx).await.map_err(fault)?;
        let head = self.heads.entry(task).or_default();
        head.let_go(self.tenants.entry(head.tenant.clone()).or_default(), lines, bytes);
        Ok(())
    }
}

#[async_trait]
impl LogStore for SqliteLogs {
    async fn append(&self, items: Vec<Append>) -> Result<Vec<Appended>> {
        let mut tx = self.writer.begin_with("BEGIN IMMEDIATE").await.map_err(fault)?;
        let tasks: Vec<TaskId> = items.iter().map(|item| item.task).collect();
        let tenants = items.iter().map(|item| item.tenant.clone()).collect();
        let mut books = Books::load(&mut tx, &tasks, tenants).await?;
        let (mut answers, mut rows) = (Vec::with_capacity(items.len()), Vec::new());
        for append in items {
            let held = books.tenants.entry(append.tenant.clone()).or_default();
            let head = books.heads.entry(append.task).or_default();
            answers.push(head.admit(held, &self.limits, append, &mut rows));
        }
        let lines = json!(rows.iter().map(values).collect::<Vec<_>>()).to_string();
        sqlx::query(PUT_LINES).bind(lines).execute(&mut *tx).await.map_err(fault)?;
        for task in tasks {
            let excess = books.heads.get(&task).map_or(0, |head| head.excess(&self.limits));
            if excess > 0 {
                books.trim(&mut tx, task, excess).await?;
            }
        }
        books.save(&mut tx).await?;
        tx.commit().await.map_err(fault)?;
        Ok(answers)
    }

    async fn part(&self, task: TaskId, params: LogParams) -> Result<LogPart> {
        let mut tx = self.readers.begin().await.map_err(fault)?;
        let head = sqlx::query_as(HEAD).bind(task.to_string()).fetch_optional(&mut *tx).await.map_err(fault)?;
        let Some((newest, dropped)) = head else { return Ok(LogPart::default()) };
        let rows = sqlx::query(if params.before.is_some() { LINES_BEFORE } else { LINES_AFTER })
            .bind(task.to_string())
            .bind(params.after.unwrap_or(0))
            .bind(params.before.unwrap_or(i64::MAX))
            .bind(params.level.unwrap_or(Level::Debug).rank())
            .bind(params.text.unwrap_or_default().to_ascii_lowercase())
            .bind(i64::try_from(params.limit.min(MAX_PART)).expect("the limit is small"))
            .fetch_all(&mut *tx)
            .await
            .map_err(fault)?;
        tx.commit().await.map_err(fault)?;
        let mut items = rows.iter().map(line_of).collect::<sqlx::Result<Vec<_>>>().map_err(fault)?;
        if params.before.is_some() {
            items.reverse();
        }
        Ok(LogPart { items, dropped, newest })
    }

    async fn note_dropped(&self, task: TaskId, count: i64) -> Result<()> {
        let mut tx = self.writer.begin_with("BEGIN IMMEDIATE").await.map_err(fault)?;
        let mut books = Books::load(&mut tx, &[task], BTreeSet::new()).await?;
        books.heads.entry(task).or_default().lose(count);
        books.save(&mut tx).await?;
        tx.commit().await.map_err(fault)
    }

    async fn delete(&self, tasks: &[TaskId]) -> Result<()> {
        for task in tasks {
            let mut tx = self.writer.begin_with("BEGIN IMMEDIATE").await.map_err(fault)?;
            let mut books = Books::load(&mut tx, &[*task], BTreeSet::new()).await?;
            for (_, head) in std::mem::take(&mut books.heads) {
                *books.tenants.entry(head.tenant).or_default() -= head.bytes;
            }
            let id = task.to_string();
            sqlx::query(DROP_LINES).bind(&id).bind(i64::MAX).execute(&mut *tx).await.map_err(fault)?;
            sqlx::query(DROP_HEAD).bind(&id).execute(&mut *tx).await.map_err(fault)?;
            books.save(&mut tx).await?;
            tx.commit().await.map_err(fault)?;
        }
        Ok(())
    }
}

/// A line as the statement that stores it takes it.
fn values(row: &Row) -> serde_json::Value {
    let line = &row.line;
    json!([row.task, row.seq, line.at.0, line.level.rank(), line.source, line.chunk, row.bytes, line.message])
}

fn head_of(row: &SqliteRow) -> sqlx::Result<Head> {
    Ok(Head {
        tenant: row.try_get(1)?,
        token: row.try_get(2)?,
        newest: row.try_get(3)?,
        bytes: row.try_get(4)?,
        dropped: row.try_get(5)?,
    })
}

fn line_of(row: &SqliteRow) -> sqlx::Result<LogLine> {
    Ok(LogLine {
        seq: row.try_get(0)?,
        at: Millis(row.try_get(1)?),
        level: Level::of_rank(row.try_get(2)?),
        source: row.try_get(3)?,
        chunk: row.try_get(4)?,
        message: row.try_get(5)?,
    })
}
