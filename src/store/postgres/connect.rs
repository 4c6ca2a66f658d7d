//! How to reach a PostgreSQL database: its address, a pool, and the clock.

use super::super::{Result, StoreError};
use super::fault::fault;
use crate::core::time::Millis;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// How long a verb waits for a connection before it is told that the database is away, unless said otherwise.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a start waits for the server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that was idle for longer is asked whether it is still alive before it is used.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);
/// Statements that stay prepared on a connection.
const PREPARED: usize = 250;
/// The longest that one statement may take, and wait for a lock, at the server.
const STATEMENT_TIMEOUT: &str = "30s";
const LOCK_TIMEOUT: &str = "10s";
/// A transaction whose node is silent for so long is ended by the server, with its locks: they hold up those who would take
/// over from the node.
const IDLE_TIMEOUT: &str = "5s";

/// How to open a database.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:port/database`, with the parameters that libpq knows.
    pub url: String,
    /// The most connections of this pool.
    pub connections: u32,
    /// How long a verb waits for one of them before it is told that the database is away; 2 s in service.
    pub acquire_timeout: Duration,
    /// Moves the database's clock, ms: for tests that cannot wait for a lease or a day. 0 in service.
    pub clock_shift_ms: Arc<AtomicI64>,
    /// Holds the database's clock still, so that `clock_shift_ms` alone says what time it is, in ms since 1970: for tests
    /// that compare instants. `false` in service.
    pub clock_held: bool,
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the address, which may hold a password.
        f.debug_struct("PostgresOptions").field("connections", &self.connections).finish_non_exhaustive()
    }
}

impl PostgresOptions {
    /// A database with a small pool.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            connections: 10,
            acquire_timeout: ACQUIRE_TIMEOUT,
            clock_shift_ms: Arc::default(),
            clock_held: false,
        }
    }

    pub(super) fn clock(&self) -> Clock {
        Clock { shift_ms: self.clock_shift_ms.clone(), held: self.clock_held }
    }

    pub(super) fn connect(&self) -> Result<PgConnectOptions> {
        // The library's words about a bad address may quote it.
        let options: PgConnectOptions = self
            .url
            .parse()
            .map_err(|_| StoreError::Unavailable("the address of the database is not one of PostgreSQL".into()))?;
        Ok(options.application_name("taskbell").statement_cache_capacity(PREPARED).options([
            ("default_transaction_isolation", "read committed"),
            ("statement_timeout", STATEMENT_TIMEOUT),
            ("lock_timeout", LOCK_TIMEOUT),
            ("idle_in_transaction_session_timeout", IDLE_TIMEOUT),
        ]))
    }

    /// One connection, at once or never: what is wrong is told.
    pub(in crate::store) async fn one(&self) -> Result<PgConnection> {
        let options = self.connect()?;
        let server = format!("the database server at {}:{}", options.get_host(), options.get_port());
        match tokio::time::timeout(CONNECT_TIMEOUT, PgConnection::connect_with(&options)).await {
            Ok(Err(e)) if !matches!(e, sqlx::Error::Database(_)) => {
                Err(StoreError::Unavailable(format!("{server} cannot be reached: {e}")))
            }
            Ok(connected) => connected.map_err(fault),
            Err(_) => Err(StoreError::Unavailable(format!("{server} does not answer"))),
        }
    }

    /// A pool that connects as it is needed.
    pub(in crate::store) fn pool(&self) -> Result<PgPool> {
        let pool = PgPoolOptions::new()
            .max_connections(self.connections)
            .acquire_timeout(self.acquire_timeout)
            .test_before_acquire(false)
            .before_acquire(|connection, meta| {
                Box::pin(async move { Ok(meta.idle_for < TRUSTED_IDLE || connection.ping().await.is_ok()) })
            });
        Ok(pool.connect_lazy_with(self.connect()?))
    }
}

/// The clock of the database server, which a test may move or hold.
#[derive(Clone, Debug)]
pub struct Clock {
    shift_ms: Arc<AtomicI64>,
    held: bool,
}

impl Clock {
    /// The instant at which it is held.
    pub(super) fn held(&self) -> Option<Millis> {
        self.held.then(|| self.shifted(0))
    }

    /// What the server said, moved.
    pub(super) fn shifted(&self, server_ms: i64) -> Millis {
        Millis(server_ms.saturating_add(self.shift_ms.load(Ordering::Relaxed)))
    }
}
