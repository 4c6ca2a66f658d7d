//! Opens what a configuration names: the database, the task logs, the files.

use super::StartError;
use crate::config::{DatabaseUrl, FilesUrl, Migrate, Settings, Synchronous};
use crate::store::files::Files;
use crate::store::logs::{LogLimits, LogStore, SqliteLogs, beside};
use crate::store::migrate::{Mode, Told};
use crate::store::sqlite::{Durability, SqliteOptions, SqliteStore};
use crate::store::{Store, StoreError};
use std::path::Path;
use std::sync::Arc;

/// What a node keeps its things in.
pub(super) struct Opened {
    /// The database.
    pub store: Arc<dyn Store>,
    /// The task logs.
    pub logs: Arc<dyn LogStore>,
    /// Uploads and results.
    pub files: Files,
}

/// The SQLite file of a configuration.
pub(super) fn sqlite_file(settings: &Settings) -> Result<&Path, StoreError> {
    match &settings.database.url {
        DatabaseUrl::Sqlite(path) => Ok(path),
        DatabaseUrl::Postgres(_) | DatabaseUrl::MySql(_) => {
            Err(StoreError::Unsupported("only sqlite: is available in this version"))
        }
    }
}

/// Opens everything, and brings the database up to date where the configuration says so.
///
/// # Errors
/// When something cannot be opened, or the database is behind and may not be changed.
pub(super) async fn open_store(settings: &Settings) -> Result<Opened, StartError> {
    let mode = match settings.database.migrate {
        Migrate::Auto => Mode::Apply,
        Migrate::Check => Mode::Check,
    };
    open_store_telling(settings, mode, &mut |i, n, name| tracing::info!("migration {i}/{n}: {name}")).await
}

/// Brings the database up to date, telling each step before it runs: (i of n, its name).
///
/// # Errors
/// When it cannot be opened or changed.
pub async fn migrate(settings: &Settings, told: &mut Told<'_>) -> Result<(), StartError> {
    open_store_telling(settings, Mode::Apply, told).await.map(|_| ())
}

async fn open_store_telling(settings: &Settings, mode: Mode, told: &mut Told<'_>) -> Result<Opened, StartError> {
    let path = sqlite_file(settings)?;
    let mut options = SqliteOptions::new(path);
    options.durability = match settings.database.synchronous {
        Synchronous::Full => Durability::Full,
        Synchronous::Normal => Durability::Normal,
    };
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(options, mode, told).await?);
    let logs_path = match &settings.logs {
        Some(DatabaseUrl::Sqlite(path)) => path.clone(),
        _ => beside(path),
    };
    let logs: Arc<dyn LogStore> = Arc::new(SqliteLogs::open(&logs_path, LogLimits::default()).await?);
    let files = match &settings.files {
        FilesUrl::Folder(folder) => Files::in_folder(folder, store.clone())?,
        FilesUrl::S3(_) => return Err(StoreError::Unsupported("only file:// is available in this version").into()),
    };
    Ok(Opened { store, logs, files })
}
