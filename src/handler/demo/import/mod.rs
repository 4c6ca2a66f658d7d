//! Imports customers from a CSV file: the shipped one, or one that a user uploaded.
//!
//! Three kinds of step. The first looks at the whole file: header, number of rows. Each next one reads a batch from where
//! the last one stopped and writes it. The last one hands out the rejected rows as a file and sums up.
//!
//! Invariants: the checkpoint is the byte after the last row that was written or rejected. Customers are keyed by their
//! number, so a file that is imported again updates them; `times_written` counts how often each was written, and shows
//! that no row was written twice by one import. Of two rows with one number in a file the first counts. Imports take turns
//! by the action's concurrency key, else the counts of two of them would mix.

mod file;
mod row;

use self::file::{Look, Position};
use self::row::Customer;
use super::step::{self, Said};
use crate::core::chunk::Outcome;
use crate::core::effect::SqlValue;
use crate::core::task::Rows;
use crate::handler::{ChunkContext, Handler, HandlerError};
use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::HashSet;
use std::sync::LazyLock;

/// The shipped file: 20,000 made-up customers.
pub const SHIPPED: &str = include_str!("../../../../demo/customers.csv");

const WRITE: &str = "INSERT INTO customers \
    (number, name, email, city, country, credit_limit_cents, since, times_written, created_by, written_by) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $8, $8) \
    ON CONFLICT (number) DO UPDATE SET name = excluded.name, email = excluded.email, city = excluded.city, \
    country = excluded.country, credit_limit_cents = excluded.credit_limit_cents, since = excluded.since, \
    times_written = customers.times_written + 1, written_by = excluded.written_by";
const REJECT: &str = "INSERT INTO customers_rejected (import, line, reason, source) VALUES ($1, $2, $3, $4)";
/// So many numbers one look takes. Databases open lists in ways of their own, and all of them take values one by one.
const LOOKED_UP_AT_ONCE: usize = 100;
/// Which of a list of numbers this very import has written before.
static WRITTEN: LazyLock<String> = LazyLock::new(|| {
    let numbers: Vec<String> = (2..2 + LOOKED_UP_AT_ONCE).map(|n| format!("${n}")).collect();
    format!("SELECT number FROM customers WHERE written_by = $1 AND number IN ({})", numbers.join(", "))
});
const SUMS: &str = "SELECT COUNT(CASE WHEN created_by = $1 THEN 1 END), COUNT(CASE WHEN created_by <> $1 THEN 1 END) \
    FROM customers WHERE written_by = $1";
const REJECTED: &str = "SELECT line, reason, source FROM customers_rejected WHERE import = $1 ORDER BY line";

/// The action `import-customers`.
pub struct Import;

#[derive(Deserialize)]
#[serde(default)]
struct Params {
    file: Option<String>,
    batch: usize,
    pause: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { file: None, batch: 200, pause: 0.25 }
    }
}

#[derive(Serialize, Deserialize)]
struct Place {
    #[serde(flatten)]
    position: Position,
    /// Rows of the whole file.
    total: i64,
    /// Rows that are behind us.
    row: i64,
    batches: i64,
    skipped: i64,
    failed: i64,
}

#[async_trait]
impl Handler for Import {
    async fn run(&self, cx: &ChunkContext) -> Result<Outcome, HandlerError> {
        let params: Params = step::params(cx)?;
        let bytes = match &params.file {
            Some(id) => cx.open_file(id).await?.bytes,
            None => Bytes::from_static(SHIPPED.as_bytes()),
        };
        match step::place::<Place>(cx)? {
            None => look(&bytes),
            Some(place) if place.row < place.total => write(cx, &params, &bytes, place).await,
            Some(place) => end(cx, &place).await,
        }
    }
}

/// The first step: does the file have what is needed, and how many rows has it?
fn look(bytes: &[u8]) -> Result<Outcome, HandlerError> {
    let Look { position, total } = file::look(bytes)?;
    let message = format!("{total} rows found");
    let log = vec![format!("The file has the needed columns and {total} rows.")];
    let place = Place { position, total, row: 0, batches: 0, skipped: 0, failed: 0 };
    let said = Said { total: Some(total), unit: "rows", phase: "check", message, log, ..Said::default() };
    Ok(step::more(&place, 0.0, said))
}

/// Writes the next batch.
async fn write(cx: &ChunkContext, params: &Params, bytes: &[u8], place: Place) -> Result<Outcome, HandlerError> {
    let task = cx.task().id.to_string();
    let batch = file::read(bytes, &place.position, params.batch)?;
    let read = i64::try_from(batch.rows.len()).expect("a batch is far below 2^63");
    let (mut customers, mut rejects) = (Vec::new(), Vec::new());
    for row in &batch.rows {
        match Customer::read(row) {
            Ok(customer) => customers.push(customer),
            Err(reason) => rejects.push((row, reason)),
        }
    }
    let mut seen = written_before(cx, &task, &customers).await?;
    let valid = customers.len();
    customers.retain(|customer| seen.insert(customer.number.clone()));
    let ok = count(customers.len());
    let rows = Rows { ok, skipped: count(valid) - ok, failed: count(rejects.len()) };

    let values = customers.into_iter().map(|customer| customer.into_values(&task)).collect();
    cx.execute_many(WRITE, values);
    let mut log = vec![format!("Rows {} to {}: {ok} written.", place.row + 1, place.row + read)];
    if rows.skipped > 0 {
        log.push(format!("{} rows left out: their number stands in the file before.", rows.skipped));
    }
    if let Some((row, reason)) = rejects.first() {
        log.push(format!("{} rows rejected, the first in line {}: {reason}.", rejects.len(), row.line));
    }
    cx.execute_many(
        REJECT,
        rejects
            .into_iter()
            .map(|(row, reason)| vec![task.as_str().into(), row.line.into(), reason.into(), row.source().into()])
            .collect(),
    );

    let next = Place {
        position: batch.next,
        row: if read == 0 { place.total } else { place.row + read },
        batches: place.batches + 1,
        skipped: place.skipped + rows.skipped,
        failed: place.failed + rows.failed,
        ..place
    };
    let message = format!("batch {} committed", next.batches);
    let said = Said { current: next.row, total: Some(next.total), unit: "rows", phase: "import", message, rows, log };
    let pause = if next.row < next.total { params.pause } else { 0.0 };
    Ok(step::more(&next, pause, said))
}

async fn written_before(
    cx: &ChunkContext,
    task: &str,
    customers: &[Customer],
) -> Result<HashSet<String>, HandlerError> {
    let mut written = HashSet::new();
    for part in customers.chunks(LOOKED_UP_AT_ONCE) {
        let mut values = vec![task.into()];
        values.extend(part.iter().map(|customer| customer.number.as_str().into()));
        // A short list is filled up with what names no customer.
        values.resize(1 + LOOKED_UP_AT_ONCE, SqlValue::Null);
        for row in cx.query(&WRITTEN, values).await? {
            written.insert(step::text(&row, 0)?.to_owned());
        }
    }
    Ok(written)
}

/// The last step: rejected rows as a file, and the sums as the table has them.
async fn end(cx: &ChunkContext, place: &Place) -> Result<Outcome, HandlerError> {
    let task = cx.task().id.to_string();
    let sums = cx.query(SUMS, vec![task.as_str().into()]).await?;
    let sums = sums.first().map_or(&[][..], Vec::as_slice);
    let (imported, updated) = (step::int(sums, 0)?, step::int(sums, 1)?);
    let mut result = json!({
        "imported": imported, "updated": updated, "skipped": place.skipped, "rejected": place.failed,
    });
    let mut message = format!("{imported} imported, {updated} updated");
    if place.failed > 0 {
        let rows = cx.query(REJECTED, vec![task.into()]).await?;
        let bytes = file::rejected(&rows)?;
        result["rejectedFile"] = json!(cx.artifact("rejected.csv", "text/csv; charset=utf-8", bytes).await?);
        message = format!("{message}, {} rejected", place.failed);
    }
    let said = Said {
        current: place.row,
        total: Some(place.total),
        unit: "rows",
        phase: "import",
        message,
        ..Said::default()
    };
    Ok(step::done(result, said))
}

fn count(n: usize) -> i64 {
    i64::try_from(n).expect("a batch is far below 2^63")
}

impl Customer {
    /// The values of [`WRITE`].
    fn into_values(self, task: &str) -> Vec<SqlValue> {
        vec![
            self.number.into(),
            self.name.into(),
            self.email.into(),
            self.city.into(),
            self.country.into(),
            self.credit_limit_cents.into(),
            self.since.map_or(SqlValue::Null, SqlValue::Text),
            task.into(),
        ]
    }
}
