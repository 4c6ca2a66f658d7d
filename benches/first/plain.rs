//! The measures of the machine: plain INSERT commits into a table of three columns, on the kind of database that is
//! measured, opened as taskbell opens its own. One row a commit by one client (P1) is the least that any accepted click can
//! cost; on a server, 32 clients (P32) share its flushes, and 500 rows a commit (P500) share everything but the row.

use crate::Kind;
use crate::support::ground::Ground;
use crate::work::CLIENTS;
use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How long one measurement takes at least.
const SLICE: Duration = Duration::from_millis(500);
const OWNER: &str = "alice";
const PARAMS: &str = r#"{"customer":4711}"#;
const INSERT: &str = "INSERT INTO clicks (owner, params) VALUES ($1, $2)";
const INSERT_500: &str = "INSERT INTO clicks (owner, params) SELECT $1, $2 FROM generate_series(1, 500)";

/// A table and its clients.
pub struct Plain {
    clients: Clients,
    _ground: Ground,
}

enum Clients {
    Sqlite(SqliteConnection),
    Postgres(Vec<PgConnection>),
}

/// Rows a second.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// One client, one row a commit.
    pub one: f64,
    /// 32 clients, one row a commit each, and one client with 500 rows a commit; where there is a server.
    pub of_server: Option<(f64, f64)>,
}

impl Plain {
    /// A fresh database with one table.
    pub async fn open(kind: Kind) -> Self {
        let ground = kind.ground().await;
        let clients = match ground.database() {
            None => {
                let options = SqliteConnectOptions::new().filename(ground.path().join("plain.db"));
                let options = options.create_if_missing(true).journal_mode(SqliteJournalMode::Wal);
                let mut c = options.synchronous(SqliteSynchronous::Full).connect().await.unwrap();
                sqlx::query("CREATE TABLE clicks (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, params TEXT NOT NULL)")
                    .execute(&mut c)
                    .await
                    .unwrap();
                Clients::Sqlite(c)
            }
            Some(database) => {
                let table = "CREATE TABLE clicks \
                    (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, owner TEXT NOT NULL, params TEXT NOT NULL)";
                database.execute(table).await;
                let mut clients = Vec::new();
                for _ in 0..CLIENTS {
                    clients.push(database.connect().await);
                }
                Clients::Postgres(clients)
            }
        };
        Self { clients, _ground: ground }
    }

    /// Inserts for a while.
    pub async fn measure(&mut self) -> Rates {
        match &mut self.clients {
            Clients::Sqlite(c) => {
                let (mut commits, began) = (0, Instant::now());
                while began.elapsed() < SLICE {
                    sqlx::query(INSERT).bind(OWNER).bind(PARAMS).execute(&mut *c).await.unwrap();
                    commits += 1;
                }
                Rates { one: f64::from(commits) / began.elapsed().as_secs_f64(), of_server: None }
            }
            Clients::Postgres(clients) => {
                let one = rows_per_second(clients, 1, INSERT).await;
                let all = rows_per_second(clients, CLIENTS, INSERT).await;
                let wide = rows_per_second(clients, 1, INSERT_500).await;
                Rates { one, of_server: Some((all, wide)) }
            }
        }
    }
}

/// Rows a second that the last so many clients insert at once.
async fn rows_per_second(clients: &mut Vec<PgConnection>, count: usize, sql: &'static str) -> f64 {
    let began = Instant::now();
    let mut inserting = JoinSet::new();
    for mut c in clients.split_off(clients.len() - count) {
        inserting.spawn(async move {
            let mut rows = 0;
            while began.elapsed() < SLICE {
                rows += sqlx::query(sql).bind(OWNER).bind(PARAMS).execute(&mut c).await.unwrap().rows_affected();
            }
            (c, rows)
        });
    }
    let mut rows = 0;
    for (c, inserted) in inserting.join_all().await {
        clients.push(c);
        rows += inserted;
    }
    rows as f64 / began.elapsed().as_secs_f64()
}
