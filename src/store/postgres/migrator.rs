//! Brings a PostgreSQL database up to date. Several nodes may start at once: each step is one transaction behind one lock.

use super::super::migrate::{Migration, Migrations, Mode, Target, Told};
use super::super::{Result, StoreError};
use super::connect::PostgresOptions;
use super::fault::fault;
use async_trait::async_trait;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

/// The lock of those who migrate.
const LOCK: &str = "SELECT pg_advisory_xact_lock(20250, 100000)";
/// What texts the database can hold.
const ENCODING: &str = "SELECT current_setting('server_encoding')";
/// Whether a table is there.
const IS_THERE: &str = "SELECT to_regclass($1) IS NOT NULL";

/// A connection to a database that is up to date, or was refused in words.
pub(in crate::store) async fn open_and_migrate(
    options: &mut PostgresOptions,
    migrations: Migrations,
    mode: Mode,
    told: &mut Told<'_>,
) -> Result<PgConnection> {
    let mut connection = options.one().await?;
    let row = sqlx::raw_sql(ENCODING).fetch_one(&mut connection).await.map_err(fault)?;
    let encoding: String = row.try_get(0).map_err(fault)?;
    if encoding != "UTF8" {
        return Err(StoreError::Unavailable(format!(
            "the database has the encoding {encoding} and cannot hold every text: make one with ENCODING 'UTF8'"
        )));
    }
    let mut target = PostgresTarget { connection: &mut connection, options, migrations };
    migrations.run(&mut target, mode, told).await?;
    Ok(connection)
}

struct PostgresTarget<'a> {
    connection: &'a mut PgConnection,
    options: &'a PostgresOptions,
    migrations: Migrations,
}

#[async_trait]
impl Target for PostgresTarget<'_> {
    async fn applied(&mut self) -> Result<Vec<(i64, String)>> {
        let mut tx = self.connection.begin_with(self.options.look()).await.map_err(fault)?;
        let there = sqlx::query_scalar(IS_THERE).bind(self.migrations.table()).persistent(false);
        if !there.fetch_one(&mut *tx).await.map_err(fault)? {
            return Ok(Vec::new());
        }
        let query = sqlx::query(AssertSqlSafe(self.migrations.applied())).persistent(false);
        let rows = query.fetch_all(&mut *tx).await.map_err(fault)?;
        rows.iter().map(|r| Ok((r.try_get(0).map_err(fault)?, r.try_get(1).map_err(fault)?))).collect()
    }

    async fn apply(&mut self, migration: &Migration) -> Result<()> {
        let mut tx = self.connection.begin_with(self.options.begin()).await.map_err(fault)?;
        sqlx::raw_sql(LOCK).execute(&mut *tx).await.map_err(fault)?;
        sqlx::raw_sql(AssertSqlSafe(self.migrations.create_table())).execute(&mut *tx).await.map_err(fault)?;
        // Another node may have been faster between the look and the lock.
        let done = sqlx::query(AssertSqlSafe(self.migrations.is_applied())).bind(migration.number).persistent(false);
        if done.fetch_optional(&mut *tx).await.map_err(fault)?.is_some() {
            return Ok(());
        }
        sqlx::raw_sql(migration.text).execute(&mut *tx).await.map_err(fault)?;
        let record = sqlx::query(AssertSqlSafe(self.migrations.record())).persistent(false);
        record.bind(migration.number).bind(migration.checksum()).execute(&mut *tx).await.map_err(fault)?;
        tx.commit().await.map_err(fault)
    }
}
