//! The demo: a small trading company in taskbell's own database, so that a newcomer sees real work on real rows.
//!
//! Two things are made before the server starts, each only where it is missing or old: the business tables with their
//! rows, and the files that a person may look into (the script of one button, the sample CSV). What the buttons do is in
//! [`crate::handler::demo`]; the buttons themselves are declared in `demo/taskbell.toml`.
//!
//! Must never touch a table of taskbell's own, and must never run outside demo mode: the names of the tables are plain.

mod tables;

use crate::core::action::{Action, HandlerRef};
use crate::core::effect::{Effect, SqlValue};
use crate::handler::demo::SHIPPED_CUSTOMERS;
use crate::store::{Result, Store, StoreError};
use std::path::Path;

pub use crate::handler::demo::natives;

const SCRIPT: &str = include_str!("../../demo/clean-contacts.js");

/// Where the demo's own configuration has its script, from the working folder.
const SCRIPT_PATH: &str = "data/demo/clean-contacts.js";

/// Writes the shipped files where the demo's own action looks for its script: the script itself and `customers.csv`. A file
/// that differs is replaced, so that binary and script always agree. Any other script is the user's own, and left alone.
///
/// # Errors
/// The folder cannot be made or written.
pub fn unpack(actions: &[Action]) -> std::io::Result<()> {
    for action in actions {
        if let HandlerRef::Script(path) = &action.handler
            && path.ends_with(SCRIPT_PATH)
        {
            let folder = path.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(folder)?;
            put(path, SCRIPT)?;
            put(&folder.join("customers.csv"), SHIPPED_CUSTOMERS)?;
        }
    }
    Ok(())
}

/// Makes the business tables and fills them, in one transaction each; a filled database is left as it is.
///
/// # Errors
/// Those of the store.
pub async fn prepare(store: &dyn Store) -> Result<()> {
    let run = |statements: &[&'static str]| -> Vec<Effect> {
        statements.iter().map(|sql| Effect { sql, rows: vec![Vec::new()] }).collect()
    };
    store.execute(run(tables::MAKE)).await?;
    let found = store.query(tables::IS_FILLED, Vec::new()).await?;
    match found.first().and_then(|row| row.first()) {
        Some(SqlValue::Int(0)) => {
            let fill = [tables::days()].into_iter().chain(run(tables::FILL));
            store.execute(fill.collect()).await
        }
        Some(SqlValue::Int(_)) => Ok(()),
        other => Err(StoreError::Corrupt(format!("the demo's tables answer {other:?} to a count"))),
    }
}

/// Writes a file where it is missing or differs; whoever reads it meanwhile sees the old or the new text whole.
fn put(path: &Path, text: &str) -> std::io::Result<()> {
    if std::fs::read(path).is_ok_and(|found| found == text.as_bytes()) {
        return Ok(());
    }
    let beside = path.with_extension("new");
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, path)
}
