//! Notifications between nodes: `LISTEN` and `NOTIFY` over connections of their own, outside of the pool and of every
//! transaction that writes a task. A connection that breaks down goes with its pool: nothing of it is left anywhere.

use super::super::{Result, StoreError};
use super::connect::PostgresOptions;
use super::fault::fault;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnection, PgListener, PgPoolOptions};
use std::time::Duration;
use tokio::sync::Mutex;

/// The name of the channel; a channel belongs to one database.
const CHANNEL: &str = "taskbell";
/// Tells everybody who listens.
const NOTIFY: &str = "SELECT pg_notify('taskbell', $1)";
/// How long a connection may take to come up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The notifications of a database.
#[derive(Debug)]
pub struct PostgresChannel {
    options: PostgresOptions,
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
        Self { options, teller: Mutex::default() }
    }

    /// Listens from now on.
    ///
    /// # Errors
    /// The server does not answer, or refuses: a standby does.
    pub async fn listen(&self) -> Result<PostgresListener> {
        let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(CONNECT_TIMEOUT);
        let pool = pool.connect_with(self.options.connect()?).await.map_err(fault)?;
        let mut listener = PgListener::connect_with(&pool).await.map_err(fault)?;
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await.map_err(fault)?;
        Ok(PostgresListener(listener))
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
            None => {
                let options = self.options.connect()?.options([("synchronous_commit", "off")]);
                let connected = tokio::time::timeout(CONNECT_TIMEOUT, PgConnection::connect_with(&options)).await;
                connected.map_err(|_| StoreError::Unavailable("no connection in time".into()))?.map_err(fault)?
            }
        };
        sqlx::query(NOTIFY).bind(message).persistent(false).execute(&mut connection).await.map_err(fault)?;
        *teller = Some(connection);
        Ok(())
    }
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
