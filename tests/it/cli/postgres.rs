//! What the command line says of a PostgreSQL database that it cannot use: one clear sentence, never the password.

use super::{Ran, taskbell};
use crate::support::postgres::{self, Database};
use crate::support::server::free_port;
use std::path::Path;

/// In all the ways in which it may stand in an address, a log or an error.
const PASSWORD: &str = "p@ssü#x/9";
const ENCODED: &str = "p%40ss%C3%BC%23x%2F9";

/// Runs `migrate` and `serve` on an address: both must refuse, in the same words.
async fn refused(dir: &Path, url: &str) -> String {
    let mut sentence = String::new();
    for command in [&["migrate"][..], &["serve"], &["key", "create", "--tenant", "t", "--user", "u", "--role", "user"]]
    {
        let listen = format!("127.0.0.1:{}", free_port());
        let env = [
            ("TASKBELL__DATABASE__URL", url),
            ("TASKBELL__SERVER__LISTEN", &listen),
            ("TASKBELL__LOG__LEVEL", "trace"),
            ("RUST_BACKTRACE", "1"),
        ];
        let Ran { status, out, err } = taskbell(dir, command, &env).await;
        assert_ne!(status, 0, "{command:?}: {out}{err}");
        for hidden in [PASSWORD, ENCODED, "p@ss", "p%40ss"] {
            assert!(!out.contains(hidden) && !err.contains(hidden), "{command:?} tells the password: {out}{err}");
        }
        assert!(!err.contains("panicked"), "{command:?}: {err}");
        sentence = err.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
    }
    sentence
}

async fn role(database: &Database, name: &str, more: &str) {
    database.execute(&format!("CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}' {more}")).await;
}

#[tokio::test]
async fn a_wrong_password_is_told_without_the_password() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::empty().await;
    let told = refused(dir.path(), &database.url_as("taskbell", ENCODED)).await;
    assert!(told.contains("password") && told.contains("taskbell"), "{told}");
}

#[tokio::test]
async fn a_database_that_is_missing_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let gone = Database::empty().await;
    let (url, name) = (gone.url(), gone.name().to_owned());
    drop(gone);
    let told = refused(dir.path(), &url).await;
    assert!(told.contains(&name) && told.contains("does not exist"), "{told}");
}

#[tokio::test]
async fn a_database_that_cannot_hold_every_text_is_refused_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::empty().await;
    let name = database.name();
    database.execute_beside(&format!("DROP DATABASE {name}")).await;
    let narrow = format!("CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    database.execute_beside(&narrow).await;
    let url = database.url_as("narrow", ENCODED);
    database.execute_beside(&format!("CREATE ROLE narrow LOGIN SUPERUSER PASSWORD '{PASSWORD}'")).await;
    let told = refused(dir.path(), &url).await;
    database.execute_beside("DROP ROLE narrow").await;
    assert!(told.contains("LATIN1") && told.contains("UTF8"), "{told}");
}

#[tokio::test]
async fn a_server_that_is_away_is_named_by_its_address() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_port();
    let told = refused(dir.path(), &format!("postgres://bell:{ENCODED}@127.0.0.1:{port}/tasks")).await;
    assert!(told.contains("the database") && told.contains(&format!("127.0.0.1:{port}")), "{told}");
}

#[tokio::test]
async fn a_role_without_rights_is_told_which_it_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::empty().await;
    let name = format!("{}_guest", database.name());
    role(&database, &name, "").await;
    database.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC").await;
    let told = refused(dir.path(), &database.url_as(&name, ENCODED)).await;
    assert!(told.contains("permission denied") && told.contains("schema public"), "{told}");

    // Up to date, and still not for this role.
    let migrated = Database::migrated().await;
    let told = refused(dir.path(), &migrated.url_as(&name, ENCODED)).await;
    assert!(told.contains("permission denied"), "{told}");
    database.execute_beside(&format!("DROP OWNED BY {name}")).await;
    drop(migrated);
    drop(database);
    Database::empty().await.execute_beside(&format!("DROP ROLE {name}")).await;
}

#[tokio::test]
async fn a_role_that_may_use_the_tables_and_not_make_any_is_enough_to_serve() {
    let database = Database::migrated().await;
    let name = format!("{}_worker", database.name());
    role(&database, &name, "").await;
    database.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC").await;
    database
        .execute(&format!(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name}; \
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {name}"
        ))
        .await;
    let mut told = |_: usize, _: usize, _: &str| {};
    let options = postgres::options(&database.url_as(&name, ENCODED));
    for mode in [taskbell::store::migrate::Mode::Check, taskbell::store::migrate::Mode::Apply] {
        let store = taskbell::store::postgres::PostgresStore::open(options.clone(), mode, &mut told).await.unwrap();
        taskbell::store::Store::ready(&store).await.unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let url = database.url_as(&name, ENCODED);
    let key = ["key", "create", "--tenant", "t", "--user", "u", "--role", "user"];
    let ran = taskbell(dir.path(), &key, &[("TASKBELL__DATABASE__URL", &url)]).await;
    assert!(ran.status == 0 && ran.out.starts_with("tb_"), "{} {}", ran.out, ran.err);
    database.execute(&format!("DROP OWNED BY {name}; DROP ROLE {name}")).await;
}
