//! How large the database server believes our tables to be. It plans a prepared statement a few times and then keeps the plan
//! until it has counted the table anew (ANALYZE), which autovacuum does within about a minute. A table that grows from a
//! hundred rows to a hundred thousand in the meantime is read from end to end by each claim. So who shares the database looks
//! every few seconds for tables that have doubled, and has the server count these.

use super::super::Result;
use super::super::relational::driver::Driver as _;
use super::super::row::Columns as _;
use super::super::sql::POSTGRES_OWN;
use super::{PostgresDriver, fault};
use crate::store::value::values as bind;
use sqlx::AssertSqlSafe;

/// Any plan does for so few rows.
const FEW: i64 = 500;

/// Has tables that have grown counted, but those that somebody counts or changes already; their names.
pub(super) async fn analyze_grown(driver: &PostgresDriver) -> Result<Vec<String>> {
    let rows = driver.rows(&POSTGRES_OWN.grown_tables, bind![FEW]).await?;
    let tables: Vec<String> = rows.into_iter().filter_map(|mut row| row.text().transpose()).collect::<Result<_>>()?;
    for table in &tables {
        // A name of ours, as the server's catalogue has it.
        let analyze = AssertSqlSafe(format!("ANALYZE (SKIP_LOCKED) {table}"));
        let mut held = driver.held().await?;
        held.ask(|connection| sqlx::raw_sql(analyze).execute(connection)).await.map_err(fault)?;
    }
    Ok(tables)
}
