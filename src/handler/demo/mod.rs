//! The demo's native handlers: real work on the business tables of a small trading company.
//!
//! They are written as an application would write them. One file each; a chunk reads its place from the checkpoint, reads
//! the next rows, puts its statements into its own commit with `cx.execute` and answers where to go on. Since statements
//! and checkpoint are one commit, a repeated chunk never doubles its rows: none of the handlers guards against that itself.
//!
//! Their statements are those that SQLite and PostgreSQL both take: conditions are counted by CASE, whole numbers are added
//! up from columns whose sums stay whole, and lists are bound value by value.
//!
//! They never sleep: the pauses that leave a person time to watch are the planned gaps between chunks. The tables are made
//! by the demo's set-up, before the server starts.

mod import;
mod rebuild;
mod recalculate;
mod reconcile;
mod step;
mod sync;

pub use import::{Import, SHIPPED as SHIPPED_CUSTOMERS};
pub use rebuild::Rebuild;
pub use recalculate::Recalculate;
pub use reconcile::Reconcile;
pub use sync::Sync;

use super::native::NativeHandlers;

/// All of them, under the names that the demo's configuration uses.
#[must_use]
pub fn natives() -> NativeHandlers {
    NativeHandlers::new()
        .with("import-customers", Import)
        .with("recalculate-totals", Recalculate)
        .with("reconcile-payments", Reconcile)
        .with("sync-catalogue", Sync)
        .with("rebuild-index", Rebuild)
}
