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
mod clock;
mod connect;
mod fault;
mod held;
mod migrator;
mod outdated;
mod sessions;
mod statistics;
mod values;

pub use channel::{PostgresChannel, PostgresListener};
pub use connect::PostgresOptions;
pub(super) use migrator::open_and_migrate;

use super::migrate::{self, Migrations};
use super::relational::SqlStore;
use super::relational::cells::Cells;
use super::relational::driver::{Driver, Session, owner_names};
use super::sql::{Batched, Beside, KNOWN, POSTGRES, POSTGRES_OWN, Statements, plainly, together};
use super::tx::SlotKey;
use super::value::{Batch, Value};
use super::{Capabilities, Result, Still, StoreError};
use crate::core::effect::{Effect, SqlValue};
use crate::core::ids::TaskId;
use crate::core::time::Millis;
use crate::store::value::values as bind;
use async_trait::async_trait;
use clock::Clock;
pub(super) use fault::fault;
use fault::{at_begin, of_write, takes_no_writes};
pub(super) use held::Held;
pub(super) use outdated::Outdated;
use sqlx::postgres::{PgArguments, PgPool, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Postgres, Row as _};
use std::sync::Arc;

/// A store on a PostgreSQL database.
pub type PostgresStore = SqlStore<PostgresDriver>;

/// A PostgreSQL database.
#[derive(Debug)]
pub struct PostgresDriver {
    pool: PgPool,
    outdated: Arc<Outdated>,
    options: PostgresOptions,
    clock: Clock,
}

impl PostgresStore {
    /// Opens a database and, unless it is only to be checked, brings it up to date. `told` hears of each step.
    ///
    /// # Errors
    /// `Unavailable` in words: the server cannot be reached, the password is wrong, the database does not exist, the user
    /// may not make tables, a newer version made them, the encoding is not UTF-8.
    pub async fn open(mut options: PostgresOptions, mode: migrate::Mode, told: &mut migrate::Told<'_>) -> Result<Self> {
        let mut connection = open_and_migrate(&mut options, Migrations::of_postgres(), mode, told).await?;
        let row = sqlx::raw_sql(POSTGRES.epoch.as_str()).fetch_one(&mut connection).await.map_err(fault)?;
        let epoch = row.try_get(0).map_err(fault)?;
        if options.pooled {
            tracing::info!(
                "a pooler stands before the database: no statement stays prepared, and each is a transaction"
            );
        }
        Ok(Self::new(PostgresDriver::new(&options)?, epoch))
    }
}

impl PostgresDriver {
    /// A pool that connects as it is needed.
    pub(super) fn new(options: &PostgresOptions) -> Result<Self> {
        let outdated = Arc::<Outdated>::default();
        Ok(Self {
            pool: options.pool_of(outdated.clone())?,
            outdated,
            clock: options.clock(),
            options: options.clone(),
        })
    }

    /// A connection for a single question.
    async fn held(&self) -> Result<Held> {
        Held::of(&self.pool, &self.outdated).await.map_err(fault)
    }

    /// A transaction that is begun so with the first question.
    async fn late(&self, how: &'static str) -> Result<PostgresSession> {
        let (clock, keeps) = (self.clock.clone(), !self.options.pooled);
        Ok(PostgresSession { held: self.held().await?, clock, keeps, late: Some(how), rests_on: None, began_at: None })
    }

    async fn begun(&self, how: &'static str) -> Result<PostgresSession> {
        let mut session = self.late(how).await?;
        session.begin().await?;
        Ok(session)
    }
}

/// A transaction.
pub struct PostgresSession {
    held: Held,
    clock: Clock,
    /// Whether statements stay prepared.
    keeps: bool,
    /// How it begins, as long as nothing was asked.
    late: Option<&'static str>,
    /// Marks of tasks that are to be looked at with the next question.
    rests_on: Option<Batch>,
    /// The server's time, as long as nothing was asked since the begin.
    began_at: Option<i64>,
}

impl PostgresSession {
    /// Begins it, if that was not done yet, and looks at what it rests on.
    async fn begin(&mut self) -> Result<()> {
        if let Some(how) = self.late.take() {
            let row = self.held.begin(how).await?;
            self.began_at = row.map(|row| row.try_get(0)).transpose().map_err(fault)?;
        }
        if let Some(marks) = self.rests_on.take() {
            let count = marks.rows();
            if self.ask(KNOWN.whole(), vec![marks.into()]).await?.len() < count {
                return Err(another_version());
            }
        }
        Ok(())
    }

    async fn ask(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Vec<PgRow>> {
        let question = self.statement(sql, values);
        self.held.ask(|connection| question.fetch_all(connection)).await.map_err(fault)
    }

    /// Runs a statement; how many rows it touched. A fault is told in these words.
    async fn execute(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
        words: fn(sqlx::Error) -> StoreError,
    ) -> Result<u64> {
        self.begin().await?;
        let question = self.statement(sql, values);
        let done = self.held.ask(|connection| question.execute(connection)).await.map_err(words)?;
        Ok(done.rows_affected())
    }

    fn statement(&mut self, sql: &'static str, values: Vec<Value>) -> Query<'static, Postgres, PgArguments> {
        self.began_at = None;
        sqlx::query_with(sql, values::bound(values)).persistent(self.keeps)
    }

    /// Runs batched statements as one, on what it rests on.
    async fn together(
        &mut self,
        owners: &[(String, String)],
        marks: Option<Batch>,
        writes: Vec<(&'static Batched, Batch)>,
    ) -> Result<(Vec<i64>, Vec<u64>)> {
        let narrowed = writes.into_iter().map(|(statement, batch)| plainly(statement, batch));
        let (statements, batches): (Vec<_>, Vec<_>) = narrowed.unzip();
        let beside = Beside { moves: !owners.is_empty(), rests: marks.is_some() };
        let count = marks.as_ref().map(|marks| marks.rows() as i64);
        let moved = beside.moves.then(|| owner_names(owners));
        let batches = moved.into_iter().chain(marks).chain(batches);
        let question = self.statement(together(beside, &statements), batches.map(Value::from).collect());
        let asked = self.held.ask(|connection| question.fetch_one(connection)).await;
        let row = asked.map_err(|e| self.held.refused(e, of_write))?;
        let first = usize::from(beside.moves);
        if count.is_some() && row.try_get::<Option<i64>, _>(first).map_err(fault)? != count {
            return Err(another_version());
        }
        let heads = if beside.moves { row.try_get(0).map_err(fault)? } else { Vec::new() };
        let touched = |n| Ok(row.try_get::<i64, _>(n).map_err(fault)?.unsigned_abs());
        Ok((heads, (first + usize::from(beside.rests)..row.len()).map(touched).collect::<Result<_>>()?))
    }
}

fn another_version() -> StoreError {
    StoreError::Conflict("a task was changed since this node has written it".into())
}

#[async_trait]
impl Session for PostgresSession {
    type Row = Cells<PgRow>;
    const MOVES_HEADS: bool = true;

    async fn now(&mut self) -> Result<Millis> {
        if let Some(now) = self.late.and_then(|_| self.clock.reckoned()).or_else(|| self.clock.held()) {
            return Ok(now);
        }
        self.begin().await?;
        if let Some(began_at) = self.began_at.take() {
            return Ok(self.clock.hears(began_at));
        }
        let rows = self.ask(&POSTGRES.now, bind![]).await?;
        let told = rows.first().ok_or(StoreError::NotFound)?;
        Ok(self.clock.hears(told.try_get(0).map_err(fault)?))
    }

    async fn rows(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Cells<PgRow>>> {
        self.begin().await?;
        Ok(Cells::of(self.ask(sql, values).await?, fault))
    }

    async fn run(&mut self, sql: &'static str, values: Vec<Value>) -> Result<u64> {
        self.execute(sql, values, fault).await
    }

    async fn write(&mut self, statement: &'static Batched, batch: Batch) -> Result<u64> {
        // Without a row there are no columns to bind.
        if batch.rows() == 0 { Ok(0) } else { self.execute(statement.whole(), vec![batch.into()], of_write).await }
    }

    async fn write_all(
        &mut self,
        owners: &[(String, String)],
        mut writes: Vec<(&'static Batched, Batch)>,
    ) -> Result<(Vec<i64>, Vec<u64>)> {
        self.begin().await?;
        if writes.len() < 2 && owners.is_empty() {
            let Some((statement, batch)) = writes.pop() else { return Ok((Vec::new(), Vec::new())) };
            return Ok((Vec::new(), vec![self.write(statement, batch).await?]));
        }
        self.together(owners, None, writes).await
    }

    fn is_late(&self) -> bool {
        self.late.is_some()
    }

    fn rests_on(&mut self, marks: Batch) -> bool {
        let free = self.late.is_some() && self.rests_on.is_none();
        if free {
            self.rests_on = Some(marks);
        }
        free
    }

    async fn write_alone(
        &mut self,
        owners: &[(String, String)],
        writes: Vec<(&'static Batched, Batch)>,
    ) -> Result<(Vec<i64>, Vec<u64>)> {
        let marks = self.rests_on.take();
        if marks.is_none() && writes.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        self.together(owners, marks, writes).await
    }

    async fn effects(&mut self, effects: &[Effect]) -> Result<()> {
        self.begin().await?;
        for effect in effects {
            for row in &effect.rows {
                let (sql, values) = values::of_business(effect.sql, row);
                let query = sqlx::query_with(AssertSqlSafe(sql), values).persistent(self.keeps);
                self.held.ask(|connection| query.execute(connection)).await.map_err(fault)?;
            }
        }
        Ok(())
    }

    async fn lock_keys_of(&mut self, tasks: &[TaskId]) -> Result<()> {
        self.run(&POSTGRES_OWN.lock_keys_of, bind![tasks]).await.map(|_| ())
    }

    async fn lock_slots(&mut self, keys: &[SlotKey], tasks: &[TaskId]) -> Result<()> {
        if !keys.is_empty() || !tasks.is_empty() {
            let (tenants, keys) = names(keys);
            self.run(&POSTGRES_OWN.lock_slots, bind![tasks, tenants.as_slice(), keys.as_slice()]).await?;
        }
        Ok(())
    }

    async fn locked_elsewhere(&mut self, keys: &[SlotKey]) -> Result<Vec<SlotKey>> {
        let (tenants, keys) = names(keys);
        let values = bind![tenants.as_slice(), keys.as_slice()];
        let rows = self.rows(&POSTGRES_OWN.locked_elsewhere, values).await?;
        rows.into_iter().map(values::pair).collect()
    }

    async fn commit(mut self) -> Result<()> {
        if self.rests_on.is_some() {
            self.begin().await?;
        }
        if self.late.is_some() { Ok(()) } else { self.held.commit().await.map_err(fault) }
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
        if self.options.pooled {
            return self.look().await?.now().await;
        }
        let question = sqlx::query(POSTGRES.now.as_str());
        let row = self.held().await?.ask(|connection| question.fetch_one(connection)).await.map_err(fault)?;
        let told = self.clock.hears(row.try_get(0).map_err(fault)?);
        Ok(self.clock.held().unwrap_or(told))
    }

    async fn begin(&self) -> Result<PostgresSession> {
        self.begun(self.options.begin()).await
    }

    async fn begin_late(&self) -> Result<PostgresSession> {
        // Behind a pooler a statement has to be part of a transaction.
        if self.options.pooled { self.begin().await } else { self.late(self.options.begin()).await }
    }

    async fn begin_logs(&self) -> Result<PostgresSession> {
        let mut session = self.begun(self.options.begin()).await?;
        session.run(&POSTGRES_OWN.begin_logs, bind![]).await?;
        Ok(session)
    }

    async fn look(&self) -> Result<PostgresSession> {
        self.begun(self.options.look()).await
    }

    async fn rows(&self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Cells<PgRow>>> {
        // No text in the database holds NUL, so none is one that does; the server would refuse to hear of it.
        if values.iter().any(|value| matches!(value, Value::Text(Some(text)) if text.contains('\0'))) {
            return Ok(Vec::new());
        }
        if self.options.pooled {
            return self.look().await?.rows(sql, values).await;
        }
        let question = sqlx::query_with(sql, values::bound(values));
        let rows = self.held().await?.ask(|connection| question.fetch_all(connection)).await.map_err(fault)?;
        Ok(Cells::of(rows, fault))
    }

    async fn end_still(&self, silent_ms: i64) -> Result<Vec<Still>> {
        sessions::end_still(self, silent_ms).await
    }

    async fn analyze_grown(&self) -> Result<Vec<String>> {
        statistics::analyze_grown(self).await
    }

    async fn query(&self, sql: &'static str, bind: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>> {
        let (sql, bound) = values::of_business(sql, &bind);
        let query = sqlx::query_with(AssertSqlSafe(sql), bound).persistent(!self.options.pooled);
        let mut held = if self.options.pooled { self.look().await?.held } else { self.held().await? };
        let rows = held.ask(|connection| query.fetch_all(connection)).await;
        rows.map_err(fault)?.iter().map(values::business_row).collect()
    }
}
