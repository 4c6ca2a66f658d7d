//! Migrations on SQLite: a fresh database is the schema of the dump beside this file, and a database that does not fit is
//! refused in words and left as it is.

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{Connection as _, Row as _};
use std::path::Path;
use taskbell::store::migrate::Mode;
use taskbell::store::sqlite::{SqliteOptions, SqliteStore};
use taskbell::store::{Store as _, StoreError};
use tokio::task::JoinSet;

const DUMP: &str = "tests/it/store/schema.sqlite.sql";
const HEADER: &str = "-- The schema of a fresh database, as SQLite tells it: a migration shows as a difference here.\n\
    -- Written anew by: TASKBELL_WRITE_SCHEMA=1 cargo test --test it fresh_database\n";

async fn open(path: &Path, mode: Mode) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(SqliteOptions::new(path), mode, &mut |_, _, _| {}).await
}

async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(path).create_if_missing(true)).await.unwrap()
}

async fn run(path: &Path, sql: &'static str) {
    sqlx::query(sql).execute(&mut raw(path).await).await.unwrap();
}

async fn schema(path: &Path) -> String {
    let listed = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name";
    let rows = sqlx::query(listed).fetch_all(&mut raw(path).await).await.unwrap();
    rows.iter().map(|r| r.get::<String, _>(0) + ";\n").collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_fresh_database_has_the_schema_of_the_dump() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/taskbell.db");
    open(&path, Mode::Apply).await.unwrap();
    let found = format!("{HEADER}\n{}", schema(&path).await);
    if std::env::var_os("TASKBELL_WRITE_SCHEMA").is_some() {
        std::fs::write(DUMP, &found).unwrap();
    }
    let kept = std::fs::read_to_string(DUMP).unwrap_or_default();
    assert!(found == kept, "the schema is not that of {DUMP}; it is now:\n{found}");
}

#[tokio::test]
async fn each_step_is_told_once_and_opening_again_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("taskbell.db");
    let mut told = Vec::new();
    let mut tell = |i: usize, n: usize, name: &str| told.push(format!("{i}/{n} {name}"));
    let first = SqliteStore::open(SqliteOptions::new(&path), Mode::Apply, &mut tell).await.unwrap();
    assert_eq!(told[0], format!("1/{} tasks", told.len()));
    let (epoch, before) = (first.epoch().to_owned(), schema(&path).await);
    for mode in [Mode::Apply, Mode::Check] {
        let mut told_again = 0;
        let again = SqliteStore::open(SqliteOptions::new(&path), mode, &mut |_, _, _| told_again += 1).await.unwrap();
        assert_eq!((told_again, again.epoch()), (0, epoch.as_str()), "the same database has the same epoch");
    }
    assert_eq!(schema(&path).await, before);
    let other = open(&folder.path().join("other.db"), Mode::Apply).await.unwrap();
    assert_ne!(other.epoch(), epoch, "another database is another incarnation");
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("taskbell.db");
    open(&path, Mode::Apply).await.unwrap();
    run(&path, "INSERT INTO taskbell_migrations (number, checksum) VALUES (999, 'x')").await;
    for mode in [Mode::Apply, Mode::Check] {
        let refused = open(&path, mode).await.unwrap_err().to_string();
        assert!(refused.contains("migration 999") && refused.contains("newer taskbell"), "{refused}");
    }
}

#[tokio::test]
async fn a_migration_with_another_text_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("taskbell.db");
    open(&path, Mode::Apply).await.unwrap();
    run(&path, "UPDATE taskbell_migrations SET checksum = 'other' WHERE number = 1").await;
    let refused = open(&path, Mode::Apply).await.unwrap_err().to_string();
    assert!(refused.contains("migration 1 (tasks)") && refused.contains("another text"), "{refused}");
}

#[tokio::test]
async fn a_database_that_is_behind_is_refused_when_it_is_only_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("taskbell.db");
    let refused = open(&path, Mode::Check).await.unwrap_err().to_string();
    assert!(refused.contains("behind") && refused.contains("taskbell migrate"), "{refused}");
    assert!(!schema(&path).await.contains("taskbell_tasks"), "a look changes nothing");
    open(&path, Mode::Apply).await.unwrap();
    open(&path, Mode::Check).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processes_that_migrate_at_once_do_not_hurt_each_other() {
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("taskbell.db");
        let mut opening = JoinSet::new();
        for _ in 0..6 {
            let path = path.clone();
            opening.spawn(async move { open(&path, Mode::Apply).await.map(|s| s.epoch().to_owned()) });
        }
        let mut epochs: Vec<String> = opening.join_all().await.into_iter().map(Result::unwrap).collect();
        epochs.dedup();
        assert_eq!(epochs.len(), 1, "one database");
    }
}

#[tokio::test]
async fn a_step_that_breaks_off_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("taskbell.db");
    run(&path, "CREATE TABLE taskbell_files (id TEXT)").await;
    assert!(open(&path, Mode::Apply).await.is_err(), "the step makes a table of that name");
    let left = schema(&path).await;
    assert!(!left.contains("taskbell_tasks "), "half a step stayed: {left}");
    run(&path, "DROP TABLE taskbell_files").await;
    open(&path, Mode::Apply).await.unwrap();
}
