//! A pack's tables in a PostgreSQL database, by a pool of their own. Chunks that change different rows run side by side.
//!
//! A statement that the server refuses would end its transaction, so each runs after a savepoint and is rolled back to it.

use super::statement::{self, Bound, Brings, Dialect, Statement};
use super::{Marked, PackDatabase, PackWork, Result};
use crate::core::pack::{ColumnKind, Table};
use crate::core::tables::{Ask, Cell, Found, Row};
use crate::store::postgres::{Held, Outdated, PostgresOptions, fault};
use async_trait::async_trait;
use serde_json::{Value, json};
use sqlx::postgres::{PgArguments, PgPool, PgRow};
use sqlx::{Arguments as _, AssertSqlSafe, Encode, Postgres, Row as _, Type};
use std::sync::Arc;
use std::time::Duration;

const CREATE_MARKS: &str = include_str!("../sql/pack/common/create_marks.sql");
const MARK: &str = include_str!("../sql/pack/common/mark.sql");
const PUT_MARK: &str = include_str!("../sql/pack/postgres/put_mark.sql");
const FORGET_MARKS: &str = include_str!("../sql/pack/postgres/forget_marks.sql");
const ONE_AT_A_TIME: &str = include_str!("../sql/pack/postgres/one_at_a_time.sql");
const MAY_THINK: &str = include_str!("../sql/pack/postgres/may_think.sql");

/// Connections for the chunks of a pack on one node; a chunk that changes something holds one.
const CONNECTIONS: u32 = 16;
/// What a transaction may be silent for beyond its chunk's time.
const MARGIN: Duration = Duration::from_secs(5);

pub(super) struct PostgresPack {
    pool: PgPool,
    outdated: Arc<Outdated>,
    options: PostgresOptions,
}

impl PostgresPack {
    pub fn open(url: &str) -> Result<Self> {
        let mut options = PostgresOptions::new(url);
        options.connections = CONNECTIONS;
        let outdated = Arc::<Outdated>::default();
        Ok(Self { pool: options.pool_of(outdated.clone())?, outdated, options })
    }

    async fn held(&self) -> Result<Held> {
        Held::of(&self.pool, &self.outdated).await.map_err(fault)
    }

    async fn writing(&self) -> Result<Held> {
        Held::writing(&self.pool, &self.outdated, &self.options).await
    }
}

#[async_trait]
impl PackDatabase for PostgresPack {
    async fn prepare(&self, tables: &[Table]) -> Result<Vec<String>> {
        let mut made = Vec::new();
        let mut tx = self.writing().await?;
        tx.ask(|c| sqlx::query(ONE_AT_A_TIME).execute(c)).await.map_err(fault)?;
        tx.ask(|c| sqlx::raw_sql(CREATE_MARKS).execute(c)).await.map_err(fault)?;
        tx.ask(|c| sqlx::raw_sql(FORGET_MARKS).execute(c)).await.map_err(fault)?;
        for table in tables {
            let known = sqlx::query_scalar("SELECT to_regclass(quote_ident($1)) IS NOT NULL").bind(&table.name);
            let known: bool = tx.ask(|c| known.fetch_one(c)).await.map_err(fault)?;
            if !known {
                for sql in statement::create(Dialect::Postgres, table) {
                    tx.ask(|c| sqlx::raw_sql(AssertSqlSafe(sql)).execute(c)).await.map_err(fault)?;
                }
                made.push(table.name.clone());
            }
            let probe = statement::probe(Dialect::Postgres, table);
            tx.ask(|c| sqlx::query(AssertSqlSafe(probe)).fetch_all(c)).await.map_err(fault)?;
        }
        tx.commit().await.map_err(fault)?;
        Ok(made)
    }

    async fn mark(&self, task: &str) -> Result<Option<(i64, String)>> {
        let question = sqlx::query_as(MARK).bind(task);
        self.held().await?.ask(|c| question.fetch_optional(c)).await.map_err(fault)
    }

    async fn look(&self, ask: &Ask<'_>) -> Result<Found> {
        run(&mut self.held().await?, ask).await
    }

    async fn begin(&self, time: Duration) -> Result<Box<dyn PackWork>> {
        let mut tx = self.writing().await?;
        let silent = format!("{}ms", time.saturating_add(MARGIN).as_millis());
        tx.ask(|c| sqlx::query(MAY_THINK).bind(silent).execute(c)).await.map_err(fault)?;
        Ok(Box::new(PostgresWork(tx)))
    }
}

struct PostgresWork(Held);

#[async_trait]
impl PackWork for PostgresWork {
    async fn ask(&mut self, ask: &Ask<'_>) -> Result<Found> {
        self.0.ask(|c| sqlx::query("SAVEPOINT one").execute(c)).await.map_err(fault)?;
        let found = run(&mut self.0, ask).await;
        // An error here means that the connection is gone, and with it the transaction.
        let end = if found.is_ok() { "RELEASE SAVEPOINT one" } else { "ROLLBACK TO SAVEPOINT one" };
        self.0.ask(|c| sqlx::query(end).execute(c)).await.map_err(fault)?;
        found
    }

    async fn commit(mut self: Box<Self>, mark: &Marked<'_>) -> Result<bool> {
        let put = sqlx::query(PUT_MARK).bind(mark.task).bind(mark.chunk).bind(mark.token).bind(mark.outcome);
        let marked = self.0.ask(|c| put.execute(c)).await.map_err(fault)?.rows_affected() > 0;
        if marked {
            self.0.commit().await.map_err(fault)?;
        }
        // Else it is undone as the connection goes back.
        Ok(marked)
    }
}

async fn run(held: &mut Held, ask: &Ask<'_>) -> Result<Found> {
    let Statement { sql, values } = statement::of(Dialect::Postgres, ask);
    let query = sqlx::query_with(AssertSqlSafe(sql), bound(values));
    match statement::brings(ask) {
        Brings::Number => {
            let row = held.ask(|c| query.fetch_one(c)).await.map_err(fault)?;
            Ok(Found::Count(row.try_get::<i64, _>(0).map_err(fault)?.unsigned_abs()))
        }
        Brings::Touched => Ok(Found::Count(held.ask(|c| query.execute(c)).await.map_err(fault)?.rows_affected())),
        Brings::Rows(columns) => {
            let rows = held.ask(|c| query.fetch_all(c)).await.map_err(fault)?;
            let read = |row: &PgRow| -> Result<Row> {
                let cells = columns.iter().enumerate();
                cells.map(|(n, column)| Ok((column.name.clone(), cell(row, n, column.kind)?))).collect()
            };
            Ok(Found::Rows(rows.iter().map(read).collect::<Result<_>>()?))
        }
    }
}

fn add<'v>(to: &mut PgArguments, value: impl Encode<'v, Postgres> + Type<Postgres>) {
    to.add(value).expect("a text or a number can always be bound");
}

fn bound(values: Vec<Bound>) -> PgArguments {
    let mut bound = PgArguments::default();
    for value in values {
        match value {
            Bound::One(kind, cell) => one(&mut bound, kind, cell),
            Bound::List(kind, cells) => match kind {
                ColumnKind::Text => add(&mut bound, cells.into_iter().filter_map(text).collect::<Vec<_>>()),
                ColumnKind::Integer => add(&mut bound, cells.into_iter().filter_map(whole).collect::<Vec<_>>()),
                ColumnKind::Number => add(&mut bound, cells.into_iter().filter_map(number).collect::<Vec<_>>()),
                ColumnKind::Boolean => add(&mut bound, cells.into_iter().filter_map(flag).collect::<Vec<_>>()),
            },
        }
    }
    bound
}

fn one(bound: &mut PgArguments, kind: ColumnKind, cell: Cell) {
    match kind {
        ColumnKind::Text => add(bound, text(cell)),
        ColumnKind::Integer => add(bound, whole(cell)),
        ColumnKind::Number => add(bound, number(cell)),
        ColumnKind::Boolean => add(bound, flag(cell)),
    }
}

fn text(cell: Cell) -> Option<String> {
    if let Cell::Text(text) = cell { Some(text) } else { None }
}

fn whole(cell: Cell) -> Option<i64> {
    if let Cell::Int(number) = cell { Some(number) } else { None }
}

fn number(cell: Cell) -> Option<f64> {
    if let Cell::Real(number) = cell { Some(number) } else { None }
}

fn flag(cell: Cell) -> Option<bool> {
    if let Cell::Bool(flag) = cell { Some(flag) } else { None }
}

fn cell(row: &PgRow, n: usize, kind: ColumnKind) -> Result<Value> {
    Ok(match kind {
        ColumnKind::Text => json!(row.try_get::<Option<String>, _>(n).map_err(fault)?),
        ColumnKind::Integer => json!(row.try_get::<Option<i64>, _>(n).map_err(fault)?),
        ColumnKind::Number => json!(row.try_get::<Option<f64>, _>(n).map_err(fault)?),
        ColumnKind::Boolean => json!(row.try_get::<Option<bool>, _>(n).map_err(fault)?),
    })
}
