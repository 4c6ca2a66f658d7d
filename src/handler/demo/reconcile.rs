//! Matches payments with orders, from the first payment anew. One payment names an order that does not exist: the task
//! stops there for good, and goes on when somebody resumes it.
//!
//! How a stop and a resume are told apart: what is good before a bad payment is committed first, so that the next chunk
//! begins with the bad one and fails. A failure commits nothing; but after a resume the chunk is told what it failed with
//! the last time ([`ChunkIn::last_error`](crate::handler::ChunkIn)). Only then is the payment put aside, in the commit of
//! what follows it. A crash before the failure was stored leads to the same failure again, and never past it.

use super::recalculate::euros;
use super::step::{self, Said};
use crate::core::chunk::Outcome;
use crate::core::task::Rows;
use crate::handler::{ChunkContext, Handler, HandlerError};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The code of the stop, by which the resumed chunk knows it again.
const NO_ORDER: &str = "payment-without-order";

const COUNT: &str = "SELECT COUNT(*) FROM payments";
const REOPEN: &str = "UPDATE payments SET state = 'open', matched_by = NULL WHERE state <> 'open'";
const UNPAY: &str = "UPDATE orders SET paid_cents = 0 WHERE paid_cents <> 0";
const FORGET: &str = "DELETE FROM payments_set_aside";
const NEXT: &str = "SELECT p.id, p.order_id, p.amount_cents, CASE WHEN o.id IS NULL THEN 1 ELSE 0 END \
    FROM payments AS p LEFT JOIN orders AS o ON o.id = p.order_id WHERE p.id > $1 ORDER BY p.id LIMIT $2";
const PAY: &str = "UPDATE orders SET paid_cents = paid_cents + paid.amount \
    FROM (SELECT order_id, SUM(amount_cents) AS amount FROM payments \
    WHERE id > $1 AND id <= $2 AND state = 'open' GROUP BY order_id) AS paid WHERE orders.id = paid.order_id";
const MATCH: &str =
    "UPDATE payments SET state = 'matched', matched_by = $3 WHERE id > $1 AND id <= $2 AND state = 'open'";
const ASIDE: &str = "UPDATE payments SET state = 'set aside' WHERE id = $1";
const KEEP_ASIDE: &str = "INSERT INTO payments_set_aside (payment_id, order_id, amount_cents, reason, set_aside_by) \
    SELECT id, order_id, amount_cents, 'the order does not exist', $2 FROM payments WHERE id = $1";
const SUMS: &str = "SELECT COUNT(CASE WHEN state = 'matched' THEN 1 END), \
    SUM(CASE WHEN state = 'matched' THEN amount_cents ELSE 0 END), \
    COUNT(CASE WHEN state = 'set aside' THEN 1 END) FROM payments";

/// The action `reconcile-payments`.
pub struct Reconcile;

#[derive(Deserialize)]
#[serde(default)]
struct Params {
    batch: i64,
    pause: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { batch: 150, pause: 0.2 }
    }
}

#[derive(Serialize, Deserialize)]
struct Place {
    /// The last payment that is matched or put aside.
    after: i64,
    done: i64,
    total: i64,
}

#[async_trait]
impl Handler for Reconcile {
    async fn run(&self, cx: &ChunkContext) -> Result<Outcome, HandlerError> {
        let params: Params = step::params(cx)?;
        match step::place(cx)? {
            None => reopen(cx).await,
            Some(place) => go_on(cx, &params, place).await,
        }
    }
}

/// The first step: all payments are open again.
async fn reopen(cx: &ChunkContext) -> Result<Outcome, HandlerError> {
    let total = step::count(cx, COUNT, Vec::new()).await?;
    for sql in [REOPEN, UNPAY, FORGET] {
        cx.execute(sql, Vec::new());
    }
    let said = Said { total: Some(total), unit: "payments", phase: "reopen", ..Said::default() };
    let message = format!("{total} payments to match");
    Ok(step::more(&Place { after: 0, done: 0, total }, 0.0, Said { message, ..said }))
}

async fn go_on(cx: &ChunkContext, params: &Params, place: Place) -> Result<Outcome, HandlerError> {
    let payments = cx.query(NEXT, vec![place.after.into(), params.batch.into()]).await?;
    let said = Said { total: Some(place.total), unit: "payments", phase: "match", ..Said::default() };
    if payments.is_empty() {
        return end(cx, Said { current: place.done, ..said }).await;
    }
    let task = cx.task().id.to_string();
    let mut bad = bad_position(&payments)?;
    let mut put_aside = None;
    if bad == Some(0) {
        let id = step::int(&payments[0], 0)?;
        if cx.chunk_in().last_error.as_deref() != Some(NO_ORDER) {
            return Err(stop(&payments[0], place.done)?);
        }
        cx.execute(ASIDE, vec![id.into()]);
        cx.execute(KEEP_ASIDE, vec![id.into(), task.clone().into()]);
        put_aside = Some(format!("Payment {id} put aside: order {} does not exist.", step::int(&payments[0], 1)?));
        bad = bad_position(&payments[1..])?.map(|at| at + 1);
    }
    let good = bad.unwrap_or(payments.len());
    let last = step::int(&payments[good - 1], 0)?;
    cx.execute(PAY, vec![place.after.into(), last.into()]);
    cx.execute(MATCH, vec![place.after.into(), last.into(), task.into()]);
    let skipped = i64::from(put_aside.is_some());
    let matched = count(good) - skipped;
    let done = place.done + count(good);
    let message = put_aside.clone().unwrap_or_else(|| format!("payments up to {last} matched"));
    let log = put_aside.into_iter().chain([format!("{matched} payments up to {last} matched.")]).collect();
    let rows = Rows { ok: matched, skipped, failed: 0 };
    let pause = if bad.is_some() { 0.0 } else { params.pause };
    let next = Place { after: last, done, ..place };
    Ok(step::more(&next, pause, Said { current: done, message, rows, log, ..said }))
}

async fn end(cx: &ChunkContext, said: Said) -> Result<Outcome, HandlerError> {
    let sums = cx.query(SUMS, Vec::new()).await?;
    let sums = sums.first().map_or(&[][..], Vec::as_slice);
    let (matched, cents, aside) = (step::int(sums, 0)?, step::int(sums, 1)?, step::int(sums, 2)?);
    let message = format!("{matched} payments of {} matched, {aside} put aside", euros(cents));
    let result = json!({"matched": matched, "matchedCents": cents, "setAside": aside});
    Ok(step::done(result, Said { message, ..said }))
}

/// Where the first payment without an order stands.
fn bad_position(payments: &[Vec<crate::core::effect::SqlValue>]) -> Result<Option<usize>, HandlerError> {
    for (at, payment) in payments.iter().enumerate() {
        if step::int(payment, 3)? != 0 {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

fn stop(payment: &[crate::core::effect::SqlValue], done: i64) -> Result<HandlerError, HandlerError> {
    let (id, order, cents) = (step::int(payment, 0)?, step::int(payment, 1)?, step::int(payment, 2)?);
    Ok(HandlerError::permanent(
        NO_ORDER,
        format!(
            "Payment {id} of {} names order {order}, which does not exist. The {done} payments before it are matched. \
             Resume to put it aside and go on.",
            euros(cents)
        ),
    ))
}

fn count(n: usize) -> i64 {
    i64::try_from(n).expect("a batch is far below 2^63")
}
