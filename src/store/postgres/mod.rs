//! PostgreSQL: for many nodes on one database.
//!
//! Transactions are READ COMMITTED whatever the role's default is: each statement sees what was committed before it, and
//! what a transaction decides on is locked first. Locks come in one order (idempotency keys, concurrency keys, tasks by id,
//! heads, new idempotency keys), so that two transactions seldom wait for each other in a circle; where they do, the server
//! ends one of them and its verb begins anew.
//!
//! An acknowledged commit survives a crash of the server unless the server's own `synchronous_commit` is off. With
//! asynchronous replication a failover can lose acknowledged commits.

mod channel;
mod connect;
mod fault;
mod migrator;
mod values;

pub use channel::{PostgresChannel, PostgresListener};
pub use connect::PostgresOptions;
pub(super) use migrator::open_and_migrate;

use super::migrate::{self, Migrations};
use super::relational::SqlStore;
use super::relational::cells::Cells;
use super::relational::driver::{Driver, Session};
use super::sql::{Batched, POSTGRES, POSTGRES_LOCKS, Statements};
use super::tx::SlotKey;
use super::value::{Batch, Value};
use super::{Capabilities, Result};
use crate::core::effect::{Effect, SqlValue};
use crate::core::ids::TaskId;
use crate::core::time::Millis;
use crate::store::value::values as bind;
use async_trait::async_trait;
use connect::Clock;
use fault::at_begin;
pub(super) use fault::fault;
use sqlx::postgres::{PgPool, PgRow};
use sqlx::{AssertSqlSafe, Postgres, Row as _, Transaction};

/// Begins a writing transaction. Read-write whatever the default of the session is, which may date from a time when the
/// server was a standby.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
/// Begins a look at one moment.
pub(super) const LOOK: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// A store on a PostgreSQL database.
pub type PostgresStore = SqlStore<PostgresDriver>;

/// A PostgreSQL database.
#[derive(Debug)]
pub struct PostgresDriver {
    pool: PgPool,
    clock: Clock,
}

impl PostgresStore {
    /// Opens a database and, unless it is only to be checked, brings it up to date. `told` hears of each step.
    ///
    /// # Errors
    /// `Unavailable` in words: the server cannot be reached, the password is wrong, the database does not exist, the user
    /// may not make tables, a newer version made them, the encoding is not UTF-8.
    pub async fn open(options: PostgresOptions, mode: migrate::Mode, told: &mut migrate::Told<'_>) -> Result<Self> {
        let mut connection = open_and_migrate(&options, Migrations::of_postgres(), mode, told).await?;
        let epoch = sqlx::query_scalar(POSTGRES.epoch.as_str()).fetch_one(&mut connection).await.map_err(fault)?;
        Ok(Self::new(PostgresDriver::new(&options)?, epoch))
    }
}

impl PostgresDriver {
    /// A pool that connects as it is needed.
    pub(super) fn new(options: &PostgresOptions) -> Result<Self> {
        Ok(Self { pool: options.pool()?, clock: options.clock() })
    }

    async fn begin_by(&self, how: &'static str) -> Result<PostgresSession> {
        Ok(PostgresSession { tx: self.pool.begin_with(how).await.map_err(at_begin)?, clock: self.clock.clone() })
    }
}

/// A transaction.
pub struct PostgresSession {
    tx: Transaction<'static, Postgres>,
    clock: Clock,
}

#[async_trait]
impl Session for PostgresSession {
    type Row = Cells<PgRow>;

    async fn now(&mut self) -> Result<Millis> {
        if let Some(held) = self.clock.held() {
            return Ok(held);
        }
        let row = sqlx::query(POSTGRES.now.as_str()).fetch_one(&mut *self.tx).await.map_err(fault)?;
        Ok(self.clock.shifted(row.try_get(0).map_err(fault)?))
    }

    async fn rows(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Cells<PgRow>>> {
        let rows = sqlx::query_with(sql, values::bound(values)).fetch_all(&mut *self.tx).await.map_err(fault)?;
        Ok(Cells::of(rows, fault))
    }

    async fn run(&mut self, sql: &'static str, values: Vec<Value>) -> Result<u64> {
        let done = sqlx::query_with(sql, values::bound(values)).execute(&mut *self.tx).await.map_err(fault)?;
        Ok(done.rows_affected())
    }

    async fn write(&mut self, statement: &'static Batched, batch: Batch) -> Result<u64> {
        // Without a row there are no columns to bind.
        if batch.rows() == 0 { Ok(0) } else { self.run(statement.whole(), vec![batch.into()]).await }
    }

    async fn effects(&mut self, effects: &[Effect]) -> Result<()> {
        for effect in effects {
            for row in &effect.rows {
                let (sql, values) = values::of_business(effect.sql, row);
                sqlx::query_with(AssertSqlSafe(sql), values).execute(&mut *self.tx).await.map_err(fault)?;
            }
        }
        Ok(())
    }

    async fn lock_keys_of(&mut self, tasks: &[TaskId]) -> Result<()> {
        self.run(&POSTGRES_LOCKS.lock_keys_of, bind![tasks]).await.map(|_| ())
    }

    async fn lock_slots(&mut self, keys: &[SlotKey], tasks: &[TaskId]) -> Result<()> {
        if !keys.is_empty() || !tasks.is_empty() {
            let (tenants, keys) = names(keys);
            self.run(&POSTGRES_LOCKS.lock_slots, bind![tasks, tenants.as_slice(), keys.as_slice()]).await?;
        }
        Ok(())
    }

    async fn locked_elsewhere(&mut self, keys: &[SlotKey]) -> Result<Vec<SlotKey>> {
        let (tenants, keys) = names(keys);
        let values = bind![tenants.as_slice(), keys.as_slice()];
        let rows = self.rows(&POSTGRES_LOCKS.locked_elsewhere, values).await?;
        rows.into_iter().map(values::pair).collect()
    }

    async fn commit(self) -> Result<()> {
        self.tx.commit().await.map_err(fault)
    }
}

fn names(keys: &[SlotKey]) -> (Vec<String>, Vec<String>) {
    keys.iter().cloned().unzip()
}

#[async_trait]
impl Driver for PostgresDriver {
    type Session = PostgresSession;

    fn statements(&self) -> &'static Statements {
        &POSTGRES
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { effects: true, single_process: false }
    }

    async fn now(&self) -> Result<Millis> {
        let row = sqlx::query(POSTGRES.now.as_str()).fetch_one(&self.pool).await.map_err(fault)?;
        Ok(self.clock.held().unwrap_or(self.clock.shifted(row.try_get(0).map_err(fault)?)))
    }

    async fn begin(&self) -> Result<PostgresSession> {
        self.begin_by(BEGIN).await
    }

    async fn begin_logs(&self) -> Result<PostgresSession> {
        let mut session = self.begin_by(BEGIN).await?;
        session.run(&POSTGRES_LOCKS.begin_logs, bind![]).await?;
        Ok(session)
    }

    async fn look(&self) -> Result<PostgresSession> {
        self.begin_by(LOOK).await
    }

    async fn rows(&self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Cells<PgRow>>> {
        // No text in the database holds NUL, so none is one that does; the server would refuse to hear of it.
        if values.iter().any(|value| matches!(value, Value::Text(Some(text)) if text.contains('\0'))) {
            return Ok(Vec::new());
        }
        let rows = sqlx::query_with(sql, values::bound(values)).fetch_all(&self.pool).await.map_err(fault)?;
        Ok(Cells::of(rows, fault))
    }

    async fn query(&self, sql: &'static str, bind: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>> {
        let (sql, bound) = values::of_business(sql, &bind);
        let query = sqlx::query_with(AssertSqlSafe(sql), bound);
        query.fetch_all(&self.pool).await.map_err(fault)?.iter().map(values::business_row).collect()
    }
}
