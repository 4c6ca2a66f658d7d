//! Recalculates the totals of all orders from their lines: a known total, steps of equal size.
//!
//! Invariant: an order with `recalculated_by` of this task has net, tax and total of its lines; the checkpoint is the last
//! order that was done, and orders are done in the order of their ids.

use super::step::{self, Said};
use crate::core::chunk::Outcome;
use crate::core::task::Rows;
use crate::handler::{ChunkContext, Handler, HandlerError};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;

const COUNT: &str = "SELECT COUNT(*) FROM orders";
const NEXT: &str = "SELECT COUNT(*), MAX(id) FROM (SELECT id FROM orders WHERE id > $1 ORDER BY id LIMIT $2) AS next";
const UPDATE: &str = "UPDATE orders SET net_cents = sums.net, tax_cents = (sums.net * $3 + 50) / 100, \
    total_cents = sums.net + (sums.net * $3 + 50) / 100, recalculated_by = $4 \
    FROM (SELECT order_id, SUM(quantity * price_cents) AS net FROM order_lines WHERE order_id > $1 AND order_id <= $2 \
    GROUP BY order_id) AS sums WHERE orders.id = sums.order_id";
const SUM: &str = "SELECT COUNT(*), SUM(total_cents) FROM orders WHERE recalculated_by = $1";

/// The action `recalculate-totals`.
pub struct Recalculate;

#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Params {
    tax_percent: i64,
    batch: i64,
    pause: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { tax_percent: 19, batch: 625, pause: 0.3 }
    }
}

#[derive(Serialize, Deserialize)]
struct Place {
    /// The last order that is done.
    after: i64,
    done: i64,
    total: i64,
}

#[async_trait]
impl Handler for Recalculate {
    async fn run(&self, cx: &ChunkContext) -> Result<Outcome, HandlerError> {
        let params: Params = step::params(cx)?;
        let place = match step::place(cx)? {
            Some(place) => place,
            None => Place { after: 0, done: 0, total: step::count(cx, COUNT, Vec::new()).await? },
        };
        let task = cx.task().id.to_string();
        let next = cx.query(NEXT, vec![place.after.into(), params.batch.into()]).await?;
        let next = next.first().map_or(&[][..], Vec::as_slice);
        let (found, last) = (step::int(next, 0)?, step::int(next, 1)?);
        let said = Said { total: Some(place.total), unit: "orders", phase: "recalculate", ..Said::default() };
        if found == 0 {
            let sums = cx.query(SUM, vec![task.into()]).await?;
            let sums = sums.first().map_or(&[][..], Vec::as_slice);
            let (orders, cents) = (step::int(sums, 0)?, step::int(sums, 1)?);
            let message = format!("{orders} orders add up to {}", euros(cents));
            let result = json!({"orders": orders, "totalCents": cents, "taxPercent": params.tax_percent});
            return Ok(step::done(result, Said { current: place.done, message, ..said }));
        }
        cx.execute(UPDATE, vec![place.after.into(), last.into(), params.tax_percent.into(), task.into()]);
        let done = place.done + found;
        let message = format!("orders up to {last} recalculated");
        let rows = Rows { ok: found, ..Rows::default() };
        let log = vec![format!("Orders {} to {last}: net, tax and total written.", place.after + 1)];
        let next = Place { after: last, done, ..place };
        Ok(step::more(&next, params.pause, Said { current: done, message, rows, log, ..said }))
    }
}

/// An amount as people read it.
pub(super) fn euros(cents: i64) -> String {
    format!("{}{}.{:02} EUR", if cents < 0 { "-" } else { "" }, cents.unsigned_abs() / 100, cents.unsigned_abs() % 100)
}
