//! Opens what a configuration names: the database, the task logs, the files.

use super::StartError;
use super::channel::Lent;
use crate::bus::listen::Channel;
use crate::config::{DatabaseUrl, FilesUrl, Migrate, Secret, Settings, Synchronous};
use crate::store::files::Files;
use crate::store::logs::{LogLimits, LogStore, PostgresLogs, SqliteLogs, beside};
use crate::store::migrate::{Mode, Told};
use crate::store::postgres::{PostgresChannel, PostgresOptions, PostgresStore};
use crate::store::sqlite::{Durability, SqliteOptions, SqliteStore};
use crate::store::{Store, StoreError};
use std::path::Path;
use std::sync::Arc;

/// Connections of the pool that task logs have to themselves.
const LOG_CONNECTIONS: u32 = 3;
const NO_MYSQL: StoreError = StoreError::Unsupported("only sqlite: and postgres: are available in this version");

/// What a node keeps its things in.
pub(super) struct Opened {
    /// The database.
    pub store: Arc<dyn Store>,
    /// The task logs.
    pub logs: Arc<dyn LogStore>,
    /// Uploads and results.
    pub files: Files,
    /// What the database offers for word between nodes.
    pub channel: Option<Arc<dyn Channel>>,
}

/// The file that one process has to itself, if the database is one.
pub(super) fn file_to_lock(settings: &Settings) -> Option<&Path> {
    match &settings.database.url {
        DatabaseUrl::Sqlite(path) => Some(path),
        DatabaseUrl::Postgres(_) | DatabaseUrl::MySql(_) => None,
    }
}

/// Opens everything for a node, if it is one, and brings the database up to date where the configuration says so.
///
/// # Errors
/// When something cannot be opened, or the database is behind and may not be changed.
pub(super) async fn open_store(settings: &Settings, node: Option<&str>) -> Result<Opened, StartError> {
    let mode = match settings.database.migrate {
        Migrate::Auto => Mode::Apply,
        Migrate::Check => Mode::Check,
    };
    let told: &mut Told<'_> = &mut |i, n, name| tracing::info!("migration {i}/{n}: {name}");
    open_store_telling(settings, node, mode, told).await
}

/// Brings the database up to date, telling each step before it runs: (i of n, its name).
///
/// # Errors
/// When it cannot be opened or changed.
pub async fn migrate(settings: &Settings, told: &mut Told<'_>) -> Result<(), StartError> {
    open_store_telling(settings, None, Mode::Apply, told).await.map(|_| ())
}

async fn open_store_telling(
    settings: &Settings,
    node: Option<&str>,
    mode: Mode,
    told: &mut Told<'_>,
) -> Result<Opened, StartError> {
    let store = open_tasks(settings, node, mode, told).await?;
    let logs = open_logs(settings, node, mode, told).await?;
    let files = match &settings.files {
        FilesUrl::Folder(folder) => Files::in_folder(folder, store.clone())?,
        FilesUrl::S3(_) => return Err(StoreError::Unsupported("only file:// is available in this version").into()),
    };
    let channel: Option<Arc<dyn Channel>> = match &settings.database.url {
        DatabaseUrl::Postgres(url) => Some(Arc::new(Lent(PostgresChannel::new(postgres(url, node))))),
        DatabaseUrl::Sqlite(_) | DatabaseUrl::MySql(_) => None,
    };
    Ok(Opened { store, logs, files, channel })
}

/// How a node reaches a PostgreSQL database.
fn postgres(url: &Secret, node: Option<&str>) -> PostgresOptions {
    PostgresOptions { node: node.map(str::to_owned), ..PostgresOptions::new(url.expose()) }
}

async fn open_tasks(
    settings: &Settings,
    node: Option<&str>,
    mode: Mode,
    told: &mut Told<'_>,
) -> Result<Arc<dyn Store>, StoreError> {
    match &settings.database.url {
        DatabaseUrl::Sqlite(path) => {
            let mut options = SqliteOptions::new(path);
            options.durability = match settings.database.synchronous {
                Synchronous::Full => Durability::Full,
                Synchronous::Normal => Durability::Normal,
            };
            Ok(Arc::new(SqliteStore::open(options, mode, told).await?))
        }
        DatabaseUrl::Postgres(url) => {
            let options = PostgresOptions { connections: settings.database.connections, ..postgres(url, node) };
            Ok(Arc::new(PostgresStore::open(options, mode, told).await?))
        }
        DatabaseUrl::MySql(_) => Err(NO_MYSQL),
    }
}

/// The task logs: where they are to be kept, or beside the database.
async fn open_logs(
    settings: &Settings,
    node: Option<&str>,
    mode: Mode,
    told: &mut Told<'_>,
) -> Result<Arc<dyn LogStore>, StoreError> {
    let limits = LogLimits::default();
    match (&settings.logs, &settings.database.url) {
        (Some(DatabaseUrl::Sqlite(path)), _) => Ok(Arc::new(SqliteLogs::open(path, limits).await?)),
        (None, DatabaseUrl::Sqlite(path)) => Ok(Arc::new(SqliteLogs::open(&beside(path), limits).await?)),
        (Some(DatabaseUrl::Postgres(url)), _) | (None, DatabaseUrl::Postgres(url)) => {
            let options = PostgresOptions { connections: LOG_CONNECTIONS, ..postgres(url, node) };
            Ok(Arc::new(PostgresLogs::open(options, limits, mode, told).await?))
        }
        (Some(DatabaseUrl::MySql(_)), _) | (None, DatabaseUrl::MySql(_)) => Err(NO_MYSQL),
    }
}
