//! Notifications between nodes: `LISTEN` and `NOTIFY` over connections of their own, outside of the pool and of every
//! transaction that writes a task. A connection that breaks down goes with its pool: nothing of it is left anywhere.

use super::super::{Result, StoreError};
use super::connect::PostgresOptions;
use super::fault::fault;
use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgConnection, PgListener, PgPoolOptions};
use std::time::Duration;
use tokio::sync::{Mutex, OnceCell};

/// The name of the channel; a channel belongs to one database.
const CHANNEL: &str = "taskbell";
/// How long a connection may take to come up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The notifications of a database.
#[derive(Debug)]
pub struct PostgresChannel {
    options: PostgresOptions,
    /// The same, once it is known whether a pooler stands before the server.
    known: OnceCell<PostgresOptions>,
    /// One at a time, and so at most one message is on its way.
    teller: Mutex<Option<PgConnection>>,
}

/// Somebody who listens.
#[derive(Debug)]
pub struct PostgresListener(PgListener);

impl PostgresChannel {
    /// Connects as it is needed.
    #[must_use]
    pub fn new(options: PostgresOptions) -> Self {
        Self { options, known: OnceCell::new(), teller: Mutex::default() }
    }

    /// Listens from now on.
    ///
    /// # Errors
    /// The server does not answer, or refuses: a standby does. Behind a pooler nobody listens.
    pub async fn listen(&self) -> Result<PostgresListener> {
        let options = self.known().await?;
        if options.pooled {
            // The pooler keeps the connection that listens and gives it to others, whose statements fail at a notification.
            let words = "the pooler before the database would bring them to others";
            return Err(StoreError::Unavailable(words.into()));
        }
        let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(CONNECT_TIMEOUT);
        let pool = pool.connect_with(options.connect()?).await.map_err(fault)?;
        let mut listener = PgListener::connect_with(&pool).await.map_err(fault)?;
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await.map_err(fault)?;
        Ok(PostgresListener(listener))
    }

    /// Whether the server answers.
    ///
    /// # Errors
    /// It does not, or refuses.
    pub async fn answers(&self) -> Result<()> {
        self.options.clone().one().await.map(drop)
    }

    async fn known(&self) -> Result<&PostgresOptions> {
        let found_out = async || {
            let mut options = self.options.clone();
            options.one().await.map(|_| options)
        };
        self.known.get_or_try_init(found_out).await
    }

    /// Tells everybody who listens; a commit of its own that need not reach the disk.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub async fn tell(&self, message: &str) -> Result<()> {
        let mut teller = self.teller.lock().await;
        // Taken out, so that a call that is given up leaves no connection in an unknown state.
        let mut connection = match teller.take() {
            Some(connection) => connection,
            None => self.options.clone().one().await?,
        };
        sqlx::raw_sql(AssertSqlSafe(telling(message))).execute(&mut connection).await.map_err(fault)?;
        *teller = Some(connection);
        Ok(())
    }
}

/// One message to the server. What it sets ends with its transaction, since a pooler may give the connection to others.
fn telling(message: &str) -> String {
    let text = message.replace('\'', "''");
    format!("BEGIN; SET LOCAL synchronous_commit = off; NOTIFY {CHANNEL}, '{text}'; COMMIT")
}

impl PostgresListener {
    /// The next message.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn next(&mut self) -> Result<String> {
        match self.0.try_recv().await.map_err(fault)? {
            Some(notification) => Ok(notification.payload().to_owned()),
            None => Err(StoreError::Unavailable("the connection was lost".into())),
        }
    }
}
