//! A connection in use. What is asked on it is waited for only so long, and it goes back to its pool within a limit or not at
//! all.
//!
//! A pool asks what comes back whether it still answers, and waits for that without an end: where a line is cut without a word
//! between an answer and that question, the pool would be one connection short for good. So a connection that is not back in
//! time is dropped, and its place in the pool is free.

use super::outdated::Outdated;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgPool, PgRow};
use sqlx::{Error, Postgres};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// The longest that a connection may take to come back: to undo what is open on it, and to say that it lives.
const BACK_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that is given back when the value is dropped; a transaction that is open on it then never was.
pub(in crate::store) struct Held {
    /// There until it is given back.
    connection: Option<PoolConnection<Postgres>>,
    /// Whether a transaction may be open.
    open: bool,
    outdated: Arc<Outdated>,
}

impl Held {
    /// Takes a connection out of a pool, which waits for one no longer than its own limit.
    pub(in crate::store) async fn of(pool: &PgPool, outdated: &Arc<Outdated>) -> Result<Self, Error> {
        Ok(Self { connection: Some(pool.acquire().await?), open: false, outdated: outdated.clone() })
    }

    fn connection(&mut self) -> &mut PgConnection {
        self.connection.as_mut().expect("it is given back when this value is dropped")
    }

    /// Asks something on it, and waits for the answer only so long.
    pub(in crate::store) async fn ask<'h, T, F>(
        &'h mut self,
        question: impl FnOnce(&'h mut PgConnection) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let outdated = self.outdated.clone();
        outdated.answer(question(self.connection())).await
    }

    /// Begins a transaction by these statements; with their row, if they have one. A server that takes no writes outdates what is
    /// connected.
    pub(super) async fn begin(&mut self, how: &'static str) -> super::Result<Option<PgRow>> {
        // An answer that nobody waited for may have begun one all the same.
        self.open = true;
        let begun = self.ask(|connection| sqlx::raw_sql(how).fetch_optional(connection)).await;
        begun.map_err(|e| self.refused(e, super::at_begin))
    }

    /// A fault of what writes, in our words.
    pub(super) fn refused(&self, e: Error, words: fn(Error) -> super::StoreError) -> super::StoreError {
        if super::takes_no_writes(&e) {
            self.outdated.note();
            return super::at_begin(e);
        }
        words(e)
    }

    /// Makes what was written since its begin last.
    pub(in crate::store) async fn commit(mut self) -> Result<(), Error> {
        self.ask(|connection| sqlx::raw_sql("COMMIT").execute(connection)).await?;
        self.open = false;
        Ok(())
    }
}

impl Held {
    /// Takes a connection out of a pool and begins a writing transaction on it.
    pub(in crate::store) async fn writing(
        pool: &PgPool,
        outdated: &Arc<Outdated>,
        options: &super::PostgresOptions,
    ) -> super::Result<Self> {
        let mut held = Self::of(pool, outdated).await.map_err(super::fault)?;
        held.begin(options.begin()).await?;
        Ok(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            tokio::spawn(give_back(connection, self.open));
        }
    }
}

async fn give_back(mut connection: PoolConnection<Postgres>, open: bool) {
    let undone = async { !open || sqlx::raw_sql("ROLLBACK").execute(&mut *connection).await.is_ok() };
    if tokio::time::timeout(BACK_TIMEOUT, undone).await == Ok(true) {
        // What is not back in time is dropped with this future.
        let _ = tokio::time::timeout(BACK_TIMEOUT, connection.return_to_pool()).await;
    } else {
        drop(connection.detach());
    }
}
