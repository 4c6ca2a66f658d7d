//! How to reach a PostgreSQL database: its address, and a pool.
//!
//! Between a node and its server may stand a pooler that gives a connection to another client after each transaction. What a
//! connection was started with is then not what a statement runs with, and a statement that was prepared is not where it is
//! looked for. Such a pooler refuses the settings that a connection is started with, or passes over them: so one of them is
//! a word of ours, and [`PostgresOptions::one`] looks whether it has arrived. Behind a pooler nothing stays prepared, every
//! statement is part of a transaction, and each transaction brings its limits along.

use super::super::sql::POSTGRES;
use super::super::{Result, StoreError};
use super::clock::Clock;
use super::fault::{fault, refuses_settings};
use super::outdated::Outdated;
use super::sessions;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{Connection as _, Row as _};
use std::fmt;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, LazyLock};
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
/// What a transaction may take.
const BOUNDS: [(&str, &str); 3] = [
    ("statement_timeout", STATEMENT_TIMEOUT),
    ("lock_timeout", LOCK_TIMEOUT),
    ("idle_in_transaction_session_timeout", IDLE_TIMEOUT),
];
/// The word by which a connection that leads straight to the server is told.
const DIRECT: &str = "taskbell.direct";
const IS_DIRECT: &str = "SELECT COALESCE(current_setting('taskbell.direct', true), '')";

/// Begins a writing transaction, and asks in the same message what time it is. Read-write whatever the default of the session
/// is, which may date from a time when the server was a standby.
static BEGIN: LazyLock<String> = LazyLock::new(|| timed(WRITES));
const WRITES: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
/// Begins a look at one moment.
const LOOK: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// The same behind a pooler.
static POOLED_BEGIN: LazyLock<String> = LazyLock::new(|| timed(&bounded(WRITES)));
static POOLED_LOOK: LazyLock<String> = LazyLock::new(|| bounded(LOOK));

/// One message, and so no further round trip.
fn bounded(begin: &str) -> String {
    BOUNDS.iter().fold(begin.to_owned(), |sql, (name, value)| format!("{sql}; SET LOCAL {name} = '{value}'"))
}

fn timed(begin: &str) -> String {
    format!("{begin}; {}", POSTGRES.now)
}

/// How to open a database.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:port/database`, with the parameters that libpq knows.
    pub url: String,
    /// The most connections of this pool.
    pub connections: u32,
    /// How long a verb waits for one of them before it is told that the database is away; 2 s in service.
    pub acquire_timeout: Duration,
    /// The node that connects, so that others can tell its sessions where it stands still; absent where that is no node.
    pub node: Option<String>,
    /// Moves the database's clock, ms: for tests that cannot wait for a lease or a day. 0 in service.
    pub clock_shift_ms: Arc<AtomicI64>,
    /// Holds the database's clock still, so that `clock_shift_ms` alone says what time it is, in ms since 1970: for tests
    /// that compare instants. `false` in service.
    pub clock_held: bool,
    /// Whether a pooler was found before the server; found out by opening, `false` until then.
    pub pooled: bool,
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
            node: None,
            clock_shift_ms: Arc::default(),
            clock_held: false,
            pooled: false,
        }
    }

    /// How a writing transaction begins; its row is the time by the server's clock.
    pub(super) fn begin(&self) -> &'static str {
        if self.pooled { &POOLED_BEGIN } else { &BEGIN }
    }

    /// How a look at one moment begins.
    pub(super) fn look(&self) -> &'static str {
        if self.pooled { &POOLED_LOOK } else { LOOK }
    }

    pub(super) fn clock(&self) -> Clock {
        Clock::new(self.clock_shift_ms.clone(), self.clock_held)
    }

    pub(super) fn connect(&self) -> Result<PgConnectOptions> {
        // The library's words about a bad address may quote it.
        let options: PgConnectOptions = self
            .url
            .parse()
            .map_err(|_| StoreError::Unavailable("the address of the database is not one of PostgreSQL".into()))?;
        let options = options.application_name(&sessions::name(self.node.as_deref()));
        if self.pooled {
            return Ok(options.extra_float_digits(None));
        }
        let settings = [("default_transaction_isolation", "read committed"), (DIRECT, "yes")];
        Ok(options.statement_cache_capacity(PREPARED).options(settings.into_iter().chain(BOUNDS)))
    }

    /// One connection, at once or never: what is wrong is told. Finds out whether a pooler stands before the server.
    pub(in crate::store) async fn one(&mut self) -> Result<PgConnection> {
        let mut connected = self.connected().await;
        if !self.pooled && connected.as_ref().is_err_and(refuses_settings) {
            self.pooled = true;
            connected = self.connected().await;
        }
        let mut connection = connected.map_err(|e| self.in_words(e))?;
        if !self.pooled {
            // As plain text, which needs nothing prepared.
            let row = sqlx::raw_sql(IS_DIRECT).fetch_one(&mut connection).await.map_err(fault)?;
            self.pooled = row.try_get::<&str, _>(0).map_err(fault)?.is_empty();
        }
        Ok(connection)
    }

    async fn connected(&self) -> std::result::Result<PgConnection, sqlx::Error> {
        let options = self.connect().map_err(|e| sqlx::Error::Configuration(e.to_string().into()))?;
        match tokio::time::timeout(CONNECT_TIMEOUT, PgConnection::connect_with(&options)).await {
            Ok(connected) => connected,
            Err(_) => Err(sqlx::Error::PoolTimedOut),
        }
    }

    fn in_words(&self, e: sqlx::Error) -> StoreError {
        let options = match self.connect() {
            Ok(options) => options,
            Err(bad_address) => return bad_address,
        };
        let server = format!("the database server at {}:{}", options.get_host(), options.get_port());
        match e {
            sqlx::Error::Database(_) => fault(e),
            sqlx::Error::PoolTimedOut => StoreError::Unavailable(format!("{server} does not answer")),
            _ => StoreError::Unavailable(format!("{server} cannot be reached: {e}")),
        }
    }

    /// A pool that connects as it is needed, and whose outdated connections are closed instead of used.
    pub(in crate::store) fn pool_of(&self, outdated: Arc<Outdated>) -> Result<PgPool> {
        let pool = PgPoolOptions::new()
            .max_connections(self.connections)
            .acquire_timeout(self.acquire_timeout)
            .test_before_acquire(false)
            .before_acquire(move |connection, meta| {
                let outdated = outdated.holds(meta.age);
                Box::pin(
                    async move { Ok(!outdated && (meta.idle_for < TRUSTED_IDLE || connection.ping().await.is_ok())) },
                )
            });
        Ok(pool.connect_lazy_with(self.connect()?))
    }
}
