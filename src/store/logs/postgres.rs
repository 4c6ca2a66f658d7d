//! Task logs in a PostgreSQL database, by a pool of their own, so that log writes never take the connections of tasks. It may
//! be the database of the tasks or another one.

use super::LogLimits;
use super::relational::SqlLogs;
use super::statements::POSTGRES;
use crate::store::Result;
use crate::store::migrate::{Migrations, Mode, Told};
use crate::store::postgres::{PostgresDriver, PostgresOptions, open_and_migrate};

/// Task logs in a PostgreSQL database.
pub type PostgresLogs = SqlLogs<PostgresDriver>;

impl PostgresLogs {
    /// Opens a database and, unless it is only to be checked, brings its log tables up to date.
    ///
    /// # Errors
    /// As for the database of tasks.
    pub async fn open(
        mut options: PostgresOptions,
        limits: LogLimits,
        mode: Mode,
        told: &mut Told<'_>,
    ) -> Result<Self> {
        open_and_migrate(&mut options, Migrations::of_postgres_logs(), mode, told).await?;
        Ok(Self { driver: PostgresDriver::new(&options)?, limits, statements: &POSTGRES })
    }
}
