//! Syncs the catalogue with the supplier's: page after page until there is none, so no total is ever known or told.
//!
//! Invariant: the checkpoint is the supplier's cursor after the last page that was taken over. A page that was taken over
//! twice would change nothing the second time; its commit sees to it that this never happens.

use super::step::{self, Said};
use crate::core::chunk::Outcome;
use crate::core::task::Rows;
use crate::handler::{ChunkContext, Handler, HandlerError};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A page of the supplier: how many products, its last position, how many we do not have, how many differ from ours.
const PAGE: &str = "SELECT COUNT(*), MAX(feed.position), \
    COUNT(CASE WHEN ours.sku IS NULL THEN 1 END), \
    COUNT(CASE WHEN ours.name <> feed.name OR ours.price_cents <> feed.price_cents OR ours.stock <> feed.stock \
    THEN 1 END) \
    FROM (SELECT * FROM supplier_feed WHERE position > $1 ORDER BY position LIMIT $2) AS feed \
    LEFT JOIN products AS ours ON ours.sku = feed.sku";
const TAKE: &str = "INSERT INTO products (sku, name, price_cents, stock, synced_by) \
    SELECT sku, name, price_cents, stock, $3 FROM supplier_feed WHERE position > $1 AND position <= $2 \
    ON CONFLICT (sku) DO UPDATE SET name = excluded.name, price_cents = excluded.price_cents, \
    stock = excluded.stock, synced_by = excluded.synced_by";

/// The action `sync-catalogue`.
pub struct Sync;

#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Params {
    page_size: i64,
    pause: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { page_size: 80, pause: 0.3 }
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Place {
    /// The supplier's cursor: the position of the last product that was taken over.
    cursor: i64,
    pages: i64,
    products: i64,
    new: i64,
    changed: i64,
}

#[async_trait]
impl Handler for Sync {
    async fn run(&self, cx: &ChunkContext) -> Result<Outcome, HandlerError> {
        let params: Params = step::params(cx)?;
        let place: Place = step::place(cx)?.unwrap_or_default();
        let page = cx.query(PAGE, vec![place.cursor.into(), params.page_size.into()]).await?;
        let page = page.first().map_or(&[][..], Vec::as_slice);
        let (found, last) = (step::int(page, 0)?, step::int(page, 1)?);
        let (new, changed) = (step::int(page, 2)?, step::int(page, 3)?);
        let said = Said { unit: "products", phase: "fetch", ..Said::default() };
        if found == 0 {
            let message = format!("{} products on {} pages", place.products, place.pages);
            let result = json!({
                "products": place.products, "pages": place.pages, "new": place.new, "changed": place.changed,
                "unchanged": place.products - place.new - place.changed,
            });
            return Ok(step::done(result, Said { current: place.products, message, ..said }));
        }
        cx.execute(TAKE, vec![place.cursor.into(), last.into(), cx.task().id.to_string().into()]);
        let next = Place {
            cursor: last,
            pages: place.pages + 1,
            products: place.products + found,
            new: place.new + new,
            changed: place.changed + changed,
        };
        let message = format!("page {}: {new} new, {changed} changed", next.pages);
        let rows = Rows { ok: new + changed, skipped: found - new - changed, failed: 0 };
        let log = vec![format!("Page {} of the supplier: {found} products, {new} new, {changed} changed.", next.pages)];
        Ok(step::more(&next, params.pause, Said { current: next.products, message, rows, log, ..said }))
    }
}
