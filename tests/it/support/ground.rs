//! What a test stands on: a folder of its own and one database, a SQLite file in that folder or a database on the PostgreSQL
//! server of the tests.
//!
//! Tests that are about a database name it (`on_each_database!`). All others take the usual one: SQLite, or what
//! `TASKBELL_TEST_DATABASE` says, `sqlite` or `postgres`; so every test of the API, of push, of the pages and of the browser
//! runs on either, and `tests/run` runs them on both.

use super::postgres::{self, Database};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use taskbell::store::Store;
use taskbell::store::logs::{LogLimits, LogStore, PostgresLogs, SqliteLogs};
use taskbell::store::migrate::Mode;
use taskbell::store::postgres::{PostgresOptions, PostgresStore};
use taskbell::store::sqlite::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

/// A folder and a database.
pub struct Ground {
    folder: TempDir,
    database: Option<Database>,
}

impl Ground {
    /// A file of its own.
    pub async fn sqlite() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), database: None }
    }

    /// A database of its own.
    pub async fn postgres() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), database: Some(Database::migrated().await) }
    }

    /// A database that the test has made.
    pub fn on(database: Database) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), database: Some(database) }
    }

    /// What tests run on that are not about a database.
    pub async fn usual() -> Self {
        match std::env::var("TASKBELL_TEST_DATABASE").as_deref() {
            Err(_) | Ok("" | "sqlite") => Self::sqlite().await,
            Ok("postgres") => Self::postgres().await,
            Ok(other) => panic!("TASKBELL_TEST_DATABASE is {other}; it can be sqlite or postgres"),
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The database, if it is one on a server.
    pub fn database(&self) -> Option<&Database> {
        self.database.as_ref()
    }

    /// Opens the database, as one node does.
    pub async fn open(&self) -> Arc<dyn Store> {
        self.open_shifted(Arc::default()).await
    }

    /// The same with a clock that the test moves.
    pub async fn open_shifted(&self, clock_shift_ms: Arc<AtomicI64>) -> Arc<dyn Store> {
        let mut told = |_: usize, _: usize, _: &str| {};
        match &self.database {
            None => {
                let options = SqliteOptions { clock_shift_ms, ..SqliteOptions::new(self.path().join("taskbell.db")) };
                Arc::new(SqliteStore::open(options, Mode::Apply, &mut told).await.unwrap())
            }
            Some(database) => {
                let options = PostgresOptions { clock_shift_ms, ..postgres::options(&database.url()) };
                Arc::new(PostgresStore::open(options, Mode::Apply, &mut told).await.unwrap())
            }
        }
    }

    /// Opens the task logs as a server keeps them that stands on it; `file` is where they are under the folder on SQLite.
    pub async fn open_logs(&self, file: &str) -> Arc<dyn LogStore> {
        let limits = LogLimits::default();
        match &self.database {
            None => Arc::new(SqliteLogs::open(&self.path().join(file), limits).await.unwrap()),
            Some(database) => {
                let (options, mut told) = (postgres::options(&database.url()), |_: usize, _: usize, _: &str| {});
                Arc::new(PostgresLogs::open(options, limits, Mode::Check, &mut told).await.unwrap())
            }
        }
    }

    /// The whole numbers that a statement answers, read past any server: from the database, or from a file under the folder.
    pub async fn numbers(&self, file: &str, sql: &'static str) -> Vec<i64> {
        let rows: Vec<(i64,)> = match &self.database {
            None => {
                let options = SqliteConnectOptions::new().filename(self.path().join(file)).read_only(true);
                let pool = SqlitePool::connect_with(options).await.unwrap();
                let rows = sqlx::query_as(sql).fetch_all(&pool).await.unwrap();
                pool.close().await;
                rows
            }
            Some(database) => sqlx::query_as(sql).fetch_all(&mut database.connect().await).await.unwrap(),
        };
        rows.into_iter().map(|r| r.0).collect()
    }
}
