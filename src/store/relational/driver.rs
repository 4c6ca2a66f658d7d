//! What a database server or file has to offer so that everything else is written once: sessions that run static
//! statements, a clock, and locks on concurrency keys where there is more than one writer.

use super::super::row::Columns;
use super::super::sql::{Batched, Statements};
use super::super::tx::SlotKey;
use super::super::value::{Batch, Value};
use super::super::{Capabilities, Result, Still};
use crate::core::effect::{Effect, SqlValue};
use crate::core::ids::TaskId;
use crate::core::time::Millis;
use async_trait::async_trait;

/// A transaction. Dropping it rolls it back.
#[async_trait]
pub trait Session: Send + Sized {
    /// A row of an answer.
    type Row: Columns + Send;

    /// The database's now.
    async fn now(&mut self) -> Result<Millis>;
    /// Runs a statement that answers rows.
    async fn rows(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Self::Row>>;
    /// Runs a statement; how many rows it touched.
    async fn run(&mut self, sql: &'static str, values: Vec<Value>) -> Result<u64>;
    /// Runs a batched statement; how many rows it touched.
    async fn write(&mut self, statement: &'static Batched, batch: Batch) -> Result<u64>;
    /// Whether [`Self::write_all`] moves heads, too: where a question is a round trip.
    const MOVES_HEADS: bool = false;
    /// Runs batched statements that have nothing to do with each other; how many rows each of them touched. Where it moves
    /// heads, those of the owners, which come in order, move by one in the same statement, and are answered first: the rows of
    /// tasks then name the place of their owner, from 1, in place of a head.
    async fn write_all(
        &mut self,
        _owners: &[(String, String)],
        writes: Vec<(&'static Batched, Batch)>,
    ) -> Result<(Vec<i64>, Vec<u64>)> {
        let mut touched = Vec::with_capacity(writes.len());
        for (statement, batch) in writes {
            touched.push(self.write(statement, batch).await?);
        }
        Ok((Vec::new(), touched))
    }
    /// Whether nothing was asked yet, so that what is written next can be all.
    fn is_late(&self) -> bool {
        false
    }
    /// Of one that is late, once: what it goes on with rests on tasks with these marks ([`super::recall::marks_of`]). With the
    /// next question they are locked, and it is `Conflict` where one is another version, or locked by somebody else. Whether it
    /// will be done.
    fn rests_on(&mut self, _marks: Batch) -> bool {
        false
    }
    /// Of one that is late: [`Self::write_all`] and [`Self::commit`] in one question.
    async fn write_alone(
        &mut self,
        owners: &[(String, String)],
        writes: Vec<(&'static Batched, Batch)>,
    ) -> Result<(Vec<i64>, Vec<u64>)> {
        self.write_all(owners, writes).await
    }
    /// Runs statements on business tables one after the other, each with its rows.
    async fn effects(&mut self, effects: &[Effect]) -> Result<()>;

    /// Locks the idempotency keys that tasks hold, in one order. With one writer there is nothing to lock.
    async fn lock_keys_of(&mut self, _tasks: &[TaskId]) -> Result<()> {
        Ok(())
    }
    /// Locks concurrency keys, these and those of these tasks, in one order. With one writer there is nothing to lock.
    async fn lock_slots(&mut self, _keys: &[SlotKey], _tasks: &[TaskId]) -> Result<()> {
        Ok(())
    }
    /// Locks those of the keys that nobody else has locked; answers the others.
    async fn locked_elsewhere(&mut self, _keys: &[SlotKey]) -> Result<Vec<SlotKey>> {
        Ok(Vec::new())
    }

    /// Makes it all true.
    async fn commit(self) -> Result<()>;
}

/// A database.
#[async_trait]
pub trait Driver: Send + Sync + 'static {
    /// Its transactions.
    type Session: Session;

    /// Its statements.
    fn statements(&self) -> &'static Statements;
    /// What this kind can do.
    fn capabilities(&self) -> Capabilities;
    /// The database's now; asks the database.
    async fn now(&self) -> Result<Millis>;
    /// Begins a writing transaction.
    async fn begin(&self) -> Result<Self::Session>;
    /// Begins a writing transaction that is likely to be written without another question.
    async fn begin_late(&self) -> Result<Self::Session> {
        self.begin().await
    }
    /// Begins a writing transaction on task logs: the only one of its kind, and one whose commit need not survive a power
    /// loss.
    async fn begin_logs(&self) -> Result<Self::Session> {
        self.begin().await
    }
    /// Begins a consistent look: a reading transaction that sees one moment.
    async fn look(&self) -> Result<Self::Session>;
    /// Runs one reading statement.
    async fn rows(&self, sql: &'static str, values: Vec<Value>) -> Result<Vec<<Self::Session as Session>::Row>>;
    /// Ends the transactions of nodes that stand still. With one process there is none.
    async fn end_still(&self, _silent_ms: i64) -> Result<Vec<Still>> {
        Ok(Vec::new())
    }
    /// Has tables that have grown counted anew. Only where plans follow from the count.
    async fn analyze_grown(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
    /// Reads business tables.
    async fn query(&self, sql: &'static str, values: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>>;
}

/// Owners as (tenant, owner).
pub(crate) fn owner_names(owners: &[(String, String)]) -> Batch {
    Batch::of(owners, |(tenant, owner), to| {
        to.text(Some(tenant));
        to.text(Some(owner));
    })
}
