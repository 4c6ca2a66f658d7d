//! Task logs in a SQLite file of their own, beside the database, so that log writes never hold up the commits of tasks.
//!
//! WAL, one writer connection whose transactions begin as IMMEDIATE, a small pool of readers. `synchronous` is NORMAL: a
//! power cut may cost the lines of the last moments, and a log is no promise, while the file itself stays whole; a crash of
//! the process alone costs nothing. Must never be joined with the tables of tasks: it may be another file, or be lost.

use super::LogLimits;
use super::relational::SqlLogs;
use super::statements::SQLITE;
use crate::store::sqlite::{SqliteDriver, fault};
use crate::store::{Result, StoreError};
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use std::path::{Path, PathBuf};
use std::time::Duration;

const MIGRATION_1: &str = include_str!("../../../migrations/sqlite-logs/0001_logs.sql");
const VERSION: &str = include_str!("../sql/logs/sqlite/version.sql");
const SET_VERSION_1: &str = include_str!("../sql/logs/sqlite/set_version_1.sql");

/// The newest migration of the file.
const NEWEST_VERSION: i64 = 1;
const READERS: u32 = 4;
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the logs of a database file are kept: `data/taskbell.db` has `data/taskbell-logs.db`.
#[must_use]
pub fn beside(database: &Path) -> PathBuf {
    let stem = database.file_stem().unwrap_or_default().to_string_lossy();
    database.with_file_name(format!("{stem}-logs.db"))
}

/// Task logs in a SQLite file.
pub type SqliteLogs = SqlLogs<SqliteDriver>;

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
        Ok(Self { driver: SqliteDriver::over(writer, readers), limits, statements: &SQLITE })
    }

    /// Ends all connections; what was appended is in the file.
    pub async fn close(&self) {
        self.driver.close().await;
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
