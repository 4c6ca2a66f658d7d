//! The measure of the machine: one client that inserts one row a commit into a SQLite file, opened as taskbell opens its
//! own. One plain commit is the least that any accepted click can cost.

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long one measurement takes at least.
const SLICE: Duration = Duration::from_millis(500);

/// The file and its client.
pub struct Plain {
    connection: SqliteConnection,
    _folder: TempDir,
}

impl Plain {
    /// A fresh file with one table.
    pub async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut connection = SqliteConnectOptions::new()
            .filename(folder.path().join("plain.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .connect()
            .await
            .unwrap();
        sqlx::query("CREATE TABLE clicks (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, params TEXT NOT NULL)")
            .execute(&mut connection)
            .await
            .unwrap();
        connection.ping().await.unwrap();
        Self { connection, _folder: folder }
    }

    /// Inserts for a while; answers commits a second.
    pub async fn commits_per_second(&mut self) -> f64 {
        let began = Instant::now();
        let mut commits = 0;
        while began.elapsed() < SLICE {
            sqlx::query("INSERT INTO clicks (owner, params) VALUES ($1, $2)")
                .bind("alice")
                .bind(r#"{"customer":4711}"#)
                .execute(&mut self.connection)
                .await
                .unwrap();
            commits += 1;
        }
        f64::from(commits) / began.elapsed().as_secs_f64()
    }
}
