//! A pack's tables in a SQLite file: WAL, one writer connection whose transactions begin IMMEDIATE, a pool of readers.
//!
//! A file takes one writer: the chunks of a pack that change something wait for each other, in the order in which they came.

use super::statement::{self, Bound, Brings, Dialect, Statement};
use super::{Marked, PackDatabase, PackWork, Result, StoreError};
use crate::core::pack::{ColumnKind, Table};
use crate::core::tables::{Ask, Cell, Found, Row};
use crate::store::sqlite::fault;
use async_trait::async_trait;
use serde_json::{Value, json};
use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteRow, SqliteSynchronous,
};
use sqlx::{Arguments as _, AssertSqlSafe, Encode, Row as _, Sqlite, Transaction, Type, TypeInfo as _, ValueRef as _};
use std::path::Path;
use std::time::Duration;

const CREATE_MARKS: &str = include_str!("../sql/pack/common/create_marks.sql");
const MARK: &str = include_str!("../sql/pack/common/mark.sql");
const PUT_MARK: &str = include_str!("../sql/pack/sqlite/put_mark.sql");
const FORGET_MARKS: &str = include_str!("../sql/pack/sqlite/forget_marks.sql");

const READERS: u32 = 4;
/// How long a writer waits for another process; other chunks of this one are waited for by their own time.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest that a chunk can wait for the writer; its own time ends it before.
const WRITER_TIMEOUT: Duration = Duration::from_secs(600);

pub(super) struct SqlitePack {
    writer: SqlitePool,
    readers: SqlitePool,
}

impl SqlitePack {
    pub fn open(path: &Path) -> Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|e| StoreError::Unavailable(format!("cannot make the folder {}: {e}", folder.display())))?;
        }
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY_TIMEOUT);
        let pool = || SqlitePoolOptions::new().test_before_acquire(false).acquire_timeout(WRITER_TIMEOUT);
        let writer = pool().max_connections(1).connect_lazy_with(options.clone());
        let readers = pool().max_connections(READERS).connect_lazy_with(options.read_only(true));
        Ok(Self { writer, readers })
    }
}

#[async_trait]
impl PackDatabase for SqlitePack {
    async fn prepare(&self, tables: &[Table]) -> Result<Vec<String>> {
        let mut made = Vec::new();
        let mut tx = self.writer.begin_with("BEGIN IMMEDIATE").await.map_err(fault)?;
        sqlx::raw_sql(CREATE_MARKS).execute(&mut *tx).await.map_err(fault)?;
        sqlx::raw_sql(FORGET_MARKS).execute(&mut *tx).await.map_err(fault)?;
        for table in tables {
            let known = sqlx::query("SELECT 1 FROM sqlite_master WHERE type IN ('table', 'view') AND name = $1");
            if known.bind(&table.name).fetch_optional(&mut *tx).await.map_err(fault)?.is_none() {
                for sql in statement::create(Dialect::Sqlite, table) {
                    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *tx).await.map_err(fault)?;
                }
                made.push(table.name.clone());
            }
            let probe = statement::probe(Dialect::Sqlite, table);
            sqlx::query(AssertSqlSafe(probe)).fetch_all(&mut *tx).await.map_err(fault)?;
        }
        tx.commit().await.map_err(fault)?;
        Ok(made)
    }

    async fn mark(&self, task: &str) -> Result<Option<(i64, String)>> {
        sqlx::query_as(MARK).bind(task).fetch_optional(&self.readers).await.map_err(fault)
    }

    async fn look(&self, ask: &Ask<'_>) -> Result<Found> {
        run(&mut *self.readers.acquire().await.map_err(fault)?, ask).await
    }

    async fn begin(&self, _: Duration) -> Result<Box<dyn PackWork>> {
        Ok(Box::new(SqliteWork(self.writer.begin_with("BEGIN IMMEDIATE").await.map_err(fault)?)))
    }
}

struct SqliteWork(Transaction<'static, Sqlite>);

#[async_trait]
impl PackWork for SqliteWork {
    async fn ask(&mut self, ask: &Ask<'_>) -> Result<Found> {
        // A statement that SQLite refuses is undone by itself.
        run(&mut self.0, ask).await
    }

    async fn commit(mut self: Box<Self>, mark: &Marked<'_>) -> Result<bool> {
        let put = sqlx::query(PUT_MARK).bind(mark.task).bind(mark.chunk).bind(mark.token).bind(mark.outcome);
        let marked = put.execute(&mut *self.0).await.map_err(fault)?.rows_affected() > 0;
        if marked {
            self.0.commit().await.map_err(fault)?;
        } else {
            self.0.rollback().await.map_err(fault)?;
        }
        Ok(marked)
    }
}

async fn run(connection: &mut SqliteConnection, ask: &Ask<'_>) -> Result<Found> {
    let Statement { sql, values } = statement::of(Dialect::Sqlite, ask);
    let query = sqlx::query_with(AssertSqlSafe(sql), bound(values));
    match statement::brings(ask) {
        Brings::Number => {
            let row = query.fetch_one(connection).await.map_err(fault)?;
            Ok(Found::Count(row.try_get::<i64, _>(0).map_err(fault)?.unsigned_abs()))
        }
        Brings::Touched => Ok(Found::Count(query.execute(connection).await.map_err(fault)?.rows_affected())),
        Brings::Rows(columns) => {
            let rows = query.fetch_all(connection).await.map_err(fault)?;
            let read = |row: &SqliteRow| -> Result<Row> {
                let cells = columns.iter().enumerate();
                cells.map(|(n, column)| Ok((column.name.clone(), cell(row, n, column.kind)?))).collect()
            };
            Ok(Found::Rows(rows.iter().map(read).collect::<Result<_>>()?))
        }
    }
}

fn add<'v>(to: &mut SqliteArguments, value: impl Encode<'v, Sqlite> + Type<Sqlite>) {
    to.add(value).expect("a text or a number can always be bound");
}

fn bound(values: Vec<Bound>) -> SqliteArguments {
    let mut bound = SqliteArguments::default();
    for value in values {
        match value {
            Bound::One(_, Cell::Null) => add(&mut bound, None::<String>),
            Bound::One(_, Cell::Bool(flag)) => add(&mut bound, i64::from(flag)),
            Bound::One(_, Cell::Int(number)) => add(&mut bound, number),
            Bound::One(_, Cell::Real(number)) => add(&mut bound, number),
            Bound::One(_, Cell::Text(text)) => add(&mut bound, text),
            Bound::List(_, cells) => add(&mut bound, Value::Array(cells.iter().map(as_json).collect()).to_string()),
        }
    }
    bound
}

fn as_json(cell: &Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Bool(flag) => json!(i64::from(*flag)),
        Cell::Int(number) => json!(number),
        Cell::Real(number) => json!(number),
        Cell::Text(text) => json!(text),
    }
}

/// A value as it is stored, for in SQLite a column may hold any; what the column should hold decides about flags alone.
fn cell(row: &SqliteRow, n: usize, kind: ColumnKind) -> Result<Value> {
    let raw = row.try_get_raw(n).map_err(fault)?;
    if raw.is_null() {
        return Ok(Value::Null);
    }
    Ok(match raw.type_info().name() {
        "INTEGER" | "BOOLEAN" => {
            let number: i64 = row.try_get_unchecked(n).map_err(fault)?;
            if kind == ColumnKind::Boolean { json!(number != 0) } else { json!(number) }
        }
        "REAL" => json!(row.try_get_unchecked::<f64, _>(n).map_err(fault)?),
        "BLOB" => return Err(StoreError::Limit("a column holds bytes, which scripts cannot read".into())),
        _ => json!(row.try_get_unchecked::<String, _>(n).map_err(fault)?),
    })
}
