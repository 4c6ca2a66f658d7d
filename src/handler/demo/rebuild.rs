//! Rebuilds the word index of all products. One at a time: the action has a concurrency key.
//!
//! A new index is built beside the old one, named by the task that builds it; the last commit takes the old one away. So a
//! search finds a whole index at any moment, and a task that ends half-way leaves the old one in use.

use super::step::{self, Said};
use crate::core::chunk::Outcome;
use crate::core::effect::SqlValue;
use crate::core::task::Rows;
use crate::handler::{ChunkContext, Handler, HandlerError};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;

const COUNT: &str = "SELECT COUNT(*) FROM products";
const NEXT: &str = "SELECT sku, name FROM products WHERE sku > $1 ORDER BY sku LIMIT $2";
const ADD: &str = "INSERT INTO search_index (built_by, word, sku) VALUES ($1, $2, $3)";
const DROP_OLD: &str = "DELETE FROM search_index WHERE built_by <> $1";
const SUMS: &str = "SELECT COUNT(*), COUNT(DISTINCT word) FROM search_index WHERE built_by = $1";

/// The action `rebuild-index`.
pub struct Rebuild;

#[derive(Deserialize)]
#[serde(default)]
struct Params {
    batch: i64,
    pause: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { batch: 100, pause: 0.4 }
    }
}

#[derive(Serialize, Deserialize)]
struct Place {
    /// The last product that is in the new index.
    after: String,
    done: i64,
}

#[async_trait]
impl Handler for Rebuild {
    async fn run(&self, cx: &ChunkContext) -> Result<Outcome, HandlerError> {
        let params: Params = step::params(cx)?;
        let place = match step::place(cx)? {
            Some(place) => place,
            None => Place { after: String::new(), done: 0 },
        };
        // Counted anew each time: a sync that runs beside this may add products.
        let total = step::count(cx, COUNT, Vec::new()).await?;
        let task = cx.task().id.to_string();
        let products = cx.query(NEXT, vec![place.after.as_str().into(), params.batch.into()]).await?;
        let said = Said { total: Some(total), unit: "products", phase: "index", ..Said::default() };
        let Some(last) = products.last() else {
            cx.execute(DROP_OLD, vec![task.as_str().into()]);
            let sums = cx.query(SUMS, vec![task.into()]).await?;
            let sums = sums.first().map_or(&[][..], Vec::as_slice);
            let (entries, words) = (step::int(sums, 0)?, step::int(sums, 1)?);
            let result = json!({"products": place.done, "entries": entries, "words": words});
            let message = format!("{words} words of {} products are searchable", place.done);
            return Ok(step::done(result, Said { current: place.done, phase: "swap", message, ..said }));
        };
        let after = step::text(last, 0)?.to_owned();
        let mut entries: Vec<Vec<SqlValue>> = Vec::new();
        for product in &products {
            let (sku, name) = (step::text(product, 0)?, step::text(product, 1)?);
            entries.extend(words(name).into_iter().map(|word| vec![task.as_str().into(), word.into(), sku.into()]));
        }
        let found = i64::try_from(products.len()).expect("a batch is far below 2^63");
        let done = place.done + found;
        let message = format!("products up to {after} indexed");
        let log = vec![format!("{found} products up to {after}: {} entries.", entries.len())];
        cx.execute_many(ADD, entries);
        let rows = Rows { ok: found, ..Rows::default() };
        let next = Place { after, done };
        Ok(step::more(&next, params.pause, Said { current: done, message, rows, log, ..said }))
    }
}

/// The words of a name, each once, in lower case.
fn words(name: &str) -> BTreeSet<String> {
    name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}
