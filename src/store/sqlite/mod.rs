//! SQLite: the embedded default. WAL, one writer connection whose transactions begin IMMEDIATE, a pool of readers.
//!
//! One process serves a SQLite file; the command line may write beside it and waits its turn. `synchronous` is FULL unless
//! set otherwise: an acknowledged commit survives a power loss. With NORMAL it survives a crash of the process only.

mod clock;
mod values;

use super::migrate::{self, Migrations};
use super::relational::SqlStore;
use super::relational::cells::Cells;
use super::relational::driver::{Driver, Session};
use super::sql::{Batched, SQLITE, Statements};
use super::value::{Batch, Value};
use super::{Capabilities, Result, StoreError};
use crate::core::effect::{Effect, SqlValue};
use crate::core::time::Millis;
use async_trait::async_trait;
use clock::FileClock;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteRow,
    SqliteSynchronous,
};
use sqlx::{AssertSqlSafe, Connection as _, Row as _, Sqlite, Transaction};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

/// How long somebody waits for another process (the command line) before it is told that the file is busy.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// A writer waits as long by so many tries of SQLite's own, ms each: the tries in one grow rare, ten a second in the end, and
/// beside a process that always writes the file is hardly ever free at such an instant.
const TRIES_MS: u32 = 30;
const TRIES: u32 = 160;
/// What SQLite says when another process writes.
const LOCKED: &str = "5";
/// Between two of those tries.
const BREATH: Duration = Duration::from_millis(1);
/// Pages in the log before it is written back into the file: 16 MB instead of the usual 4, for the same few pages change in
/// almost every commit and are written back once for all of them.
const CHECKPOINT_PAGES: &str = "4000";
/// Readers at once.
const READERS: u32 = 4;

/// When a commit counts as durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Survives a power loss.
    #[default]
    Full,
    /// Survives a crash of the process.
    Normal,
}

/// How to open a file.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The file; its folder is made.
    pub path: PathBuf,
    /// When a commit counts as durable.
    pub durability: Durability,
    /// Moves the database's clock, ms: for tests that cannot wait for a lease or a day. 0 in service.
    pub clock_shift_ms: Arc<AtomicI64>,
    /// Holds the database's clock still, so that `clock_shift_ms` alone says what time it is, in ms since 1970: for tests
    /// that compare instants. `false` in service.
    pub clock_held: bool,
}

impl SqliteOptions {
    /// A file with full durability.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), durability: Durability::Full, clock_shift_ms: Arc::default(), clock_held: false }
    }
}

/// Rows that SQLite's thread reads ahead: as many as a batch has, so that it does not wait for each few to be taken.
const ROWS_AT_ONCE: usize = 1_024;

/// A store on a SQLite file.
pub type SqliteStore = SqlStore<SqliteDriver>;

/// A SQLite file.
#[derive(Debug)]
pub struct SqliteDriver {
    writer: SqlitePool,
    readers: SqlitePool,
    clock: FileClock,
    /// How often a transaction is begun before it is told that the file is busy; each try lasts as long as the connection waits.
    tries: u32,
}

impl SqliteStore {
    /// Opens a file and, unless it is only to be checked, brings it up to date. `told` hears of each step.
    pub async fn open(options: SqliteOptions, mode: migrate::Mode, told: &mut migrate::Told<'_>) -> Result<Self> {
        if let Some(folder) = options.path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|e| StoreError::Unavailable(format!("cannot make the folder {}: {e}", folder.display())))?;
        }
        let connect = connect_options(&options.path, options.durability);
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .min_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
            .connect_with(connect.clone())
            .await
            .map_err(fault)?;
        let mut connection = writer.acquire().await.map_err(fault)?;
        let migrations = Migrations::of_sqlite();
        migrations.run(&mut SqliteTarget { connection: &mut connection, migrations }, mode, told).await?;
        let epoch: (String,) =
            sqlx::query_as(super::sql::SQLITE.epoch.as_str()).fetch_one(&mut *connection).await.map_err(fault)?;
        try_often(&mut connection).await.map_err(fault)?;
        drop(connection);
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .test_before_acquire(false)
            .connect_with(connect.read_only(true))
            .await
            .map_err(fault)?;
        let clock = FileClock::new(options.clock_shift_ms, options.clock_held);
        Ok(Self::new(SqliteDriver { writer, readers, clock, tries: TRIES }, epoch.0))
    }
}

impl SqliteDriver {
    /// Over the pools of another file, with the clock of the machine.
    pub(super) fn over(writer: SqlitePool, readers: SqlitePool) -> Self {
        Self { writer, readers, clock: FileClock::new(Arc::default(), false), tries: 1 }
    }

    /// Ends all connections.
    pub(super) async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    /// A transaction on the writer connection, once no other process writes.
    async fn begin_immediate(&self) -> Result<Transaction<'static, Sqlite>> {
        for _ in 1..self.tries {
            match self.try_begin().await {
                Err(sqlx::Error::Database(e)) if e.code().is_some_and(|code| code == LOCKED) => {
                    tokio::time::sleep(BREATH).await;
                }
                begun => return begun.map_err(fault),
            }
        }
        self.try_begin().await.map_err(fault)
    }

    /// One try. After some faults (a full disk) SQLite rolls back by itself, and the driver then takes the connection to be
    /// inside a transaction for ever: such a connection is closed and opened anew.
    async fn try_begin(&self) -> sqlx::Result<Transaction<'static, Sqlite>> {
        match self.writer.begin_with("BEGIN IMMEDIATE").await {
            Err(sqlx::Error::InvalidSavePointStatement | sqlx::Error::BeginFailed) => {
                tracing::warn!("the writer connection lost count of its transactions and is opened anew");
                self.writer.acquire().await?.close().await?;
                try_often(&mut *self.writer.acquire().await?).await?;
                self.writer.begin_with("BEGIN IMMEDIATE").await
            }
            begun => begun,
        }
    }
}

/// For a connection that begins transactions by [`SqliteDriver::begin_immediate`].
async fn try_often(writer: &mut SqliteConnection) -> sqlx::Result<()> {
    let sql = format!("PRAGMA busy_timeout = {TRIES_MS}");
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(writer).await.map(drop)
}

fn connect_options(path: &Path, durability: Durability) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(match durability {
            Durability::Full => SqliteSynchronous::Full,
            Durability::Normal => SqliteSynchronous::Normal,
        })
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(false)
        .statement_cache_capacity(200)
        .row_buffer_size(ROWS_AT_ONCE)
        .pragma("cache_size", "-32768")
        .pragma("temp_store", "MEMORY")
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
}

struct SqliteTarget<'a> {
    connection: &'a mut SqliteConnection,
    migrations: Migrations,
}

#[async_trait]
impl migrate::Target for SqliteTarget<'_> {
    async fn applied(&mut self) -> Result<Vec<(i64, String)>> {
        let create = sqlx::query(AssertSqlSafe(self.migrations.create_table()));
        create.execute(&mut *self.connection).await.map_err(fault)?;
        let query = sqlx::query(AssertSqlSafe(self.migrations.applied()));
        let rows = query.fetch_all(&mut *self.connection).await.map_err(fault)?;
        rows.iter().map(|r| Ok((r.try_get(0).map_err(fault)?, r.try_get(1).map_err(fault)?))).collect()
    }

    async fn apply(&mut self, migration: &migrate::Migration) -> Result<()> {
        let mut tx = self.connection.begin_with("BEGIN IMMEDIATE").await.map_err(fault)?;
        // Another process may have been faster between the look and the lock.
        let done = sqlx::query(AssertSqlSafe(self.migrations.is_applied())).bind(migration.number);
        if done.fetch_optional(&mut *tx).await.map_err(fault)?.is_some() {
            return Ok(());
        }
        sqlx::raw_sql(migration.text).execute(&mut *tx).await.map_err(fault)?;
        let record = sqlx::query(AssertSqlSafe(self.migrations.record()));
        record.bind(migration.number).bind(migration.checksum()).execute(&mut *tx).await.map_err(fault)?;
        tx.commit().await.map_err(fault)
    }
}

/// A driver's fault as one of ours. SQLite's messages name tables and columns, never bound values.
pub(super) fn fault(e: sqlx::Error) -> StoreError {
    match &e {
        sqlx::Error::RowNotFound => StoreError::NotFound,
        sqlx::Error::PoolTimedOut => StoreError::Busy("no connection was free in time".into()),
        sqlx::Error::PoolClosed | sqlx::Error::Io(_) => StoreError::Unavailable(e.to_string()),
        sqlx::Error::Database(d) => match d.code().as_deref().and_then(|c| c.parse::<i32>().ok()).map(|c| c & 0xff) {
            Some(5 | 6) => StoreError::Busy(d.message().to_owned()),
            Some(8 | 10 | 13 | 14) => StoreError::Unavailable(d.message().to_owned()),
            Some(18 | 19) => StoreError::Limit(d.message().to_owned()),
            _ => StoreError::Corrupt(d.message().to_owned()),
        },
        _ => StoreError::Corrupt(e.to_string()),
    }
}

/// A transaction.
pub struct SqliteSession {
    tx: Transaction<'static, Sqlite>,
    clock: FileClock,
}

#[async_trait]
impl Session for SqliteSession {
    type Row = Cells<SqliteRow>;

    async fn now(&mut self) -> Result<Millis> {
        Ok(self.clock.now())
    }

    async fn rows(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Cells<SqliteRow>>> {
        let rows = sqlx::query_with(sql, values::bound(values)).fetch_all(&mut *self.tx).await.map_err(fault)?;
        Ok(Cells::of(rows, fault))
    }

    async fn run(&mut self, sql: &'static str, values: Vec<Value>) -> Result<u64> {
        let done = sqlx::query_with(sql, values::bound(values)).execute(&mut *self.tx).await.map_err(fault)?;
        Ok(done.rows_affected())
    }

    async fn write(&mut self, statement: &'static Batched, mut batch: Batch) -> Result<u64> {
        let (mut first, mut touched) = (0, 0);
        for (count, sql) in statement.parts(batch.rows()) {
            let bound = values::of_rows(&mut batch, first..first + count);
            let done = sqlx::query_with(sql, bound).execute(&mut *self.tx).await.map_err(fault)?;
            touched += done.rows_affected();
            first += count;
        }
        Ok(touched)
    }

    async fn effects(&mut self, effects: &[Effect]) -> Result<()> {
        for effect in effects {
            for row in &effect.rows {
                sqlx::query_with(effect.sql, values::of_business(row)).execute(&mut *self.tx).await.map_err(fault)?;
            }
        }
        Ok(())
    }

    async fn commit(self) -> Result<()> {
        self.tx.commit().await.map_err(fault)
    }
}

#[async_trait]
impl Driver for SqliteDriver {
    type Session = SqliteSession;

    fn statements(&self) -> &'static Statements {
        &SQLITE
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { effects: true, single_process: true }
    }

    async fn now(&self) -> Result<Millis> {
        // What SQLite reads is not taken, for the clock of the file never goes back; that it answers is the proof.
        sqlx::query(SQLITE.now.as_str()).fetch_one(&self.readers).await.map_err(fault)?;
        Ok(self.clock.now())
    }

    async fn begin(&self) -> Result<SqliteSession> {
        Ok(SqliteSession { tx: self.begin_immediate().await?, clock: self.clock.clone() })
    }

    async fn look(&self) -> Result<SqliteSession> {
        Ok(SqliteSession { tx: self.readers.begin().await.map_err(fault)?, clock: self.clock.clone() })
    }

    async fn rows(&self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Cells<SqliteRow>>> {
        let rows = sqlx::query_with(sql, values::bound(values)).fetch_all(&self.readers).await.map_err(fault)?;
        Ok(Cells::of(rows, fault))
    }

    async fn query(&self, sql: &'static str, bind: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>> {
        let query = sqlx::query_with(sql, values::of_business(&bind));
        query.fetch_all(&self.readers).await.map_err(fault)?.iter().map(values::business_row).collect()
    }
}
