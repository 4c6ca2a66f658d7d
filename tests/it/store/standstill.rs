//! Nodes that stand still in a transaction, as the database server sees them: what they have open is ended by others, and
//! nothing of whoever speaks is.

use super::fixture::Fixture;
use crate::support::eventually;
use crate::support::postgres::{self, Database};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _};
use std::time::Duration;
use taskbell::store::migrate::Mode;
use taskbell::store::postgres::{PostgresOptions, PostgresStore};
use taskbell::store::{Nodes as _, Still, Store as _};
use tokio::sync::Mutex;

/// Long beside what a busy machine takes from one question to the next.
const SILENT_MS: i64 = 10_000;
const LIMIT: Duration = Duration::from_secs(60);
const LOCK: &str = "BEGIN; SELECT pg_advisory_xact_lock(1)";

/// A session as a node has it, without the limits that the server ends it by.
async fn session(database: &Database, node: &str) -> PgConnection {
    let options: PgConnectOptions = database.url().parse().unwrap();
    options.application_name(&format!("taskbell {node}")).connect().await.unwrap()
}

async fn run(session: &mut PgConnection, sql: &str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(session).await.map(drop)
}

async fn store(database: &Database, node: &str) -> PostgresStore {
    let options = PostgresOptions { node: Some(node.to_owned()), ..postgres::options(&database.url()) };
    PostgresStore::open(options, Mode::Check, &mut |_, _, _| {}).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_that_stands_still_has_open_is_ended_and_nothing_of_one_that_speaks() {
    let database = Database::migrated().await;
    let looker = store(&database, "looker").await;
    // One is in the middle of a transaction and asks something else now and then; one is in no transaction.
    let (mut open, speaks) = (session(&database, "alive").await, Mutex::new(session(&database, "alive").await));
    run(&mut open, "BEGIN; SELECT 1").await.unwrap();
    let mut idle = session(&database, "idle").await;
    run(&mut idle, "SELECT 1").await.unwrap();
    let (mut holds, mut waits) = (session(&database, "still").await, session(&database, "still").await);
    run(&mut holds, LOCK).await.unwrap();
    // The first one's end may give it the lock in the instant before its own: what counts is that it does not keep it.
    let waiting = tokio::spawn(async move {
        let _ = run(&mut waits, LOCK).await;
        run(&mut waits, "SELECT 1").await
    });
    let waiting_now = "SELECT COUNT(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
        WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted";
    eventually("its second transaction waits for the first", LIMIT, async || {
        let count: i64 = sqlx::query_scalar(waiting_now).fetch_one(&mut database.connect().await).await.unwrap();
        (count > 0).then_some(())
    })
    .await;
    let ended = eventually("it is told from the others", LIMIT, async || {
        run(&mut *speaks.lock().await, "SELECT 1").await.unwrap();
        let ended = looker.end_still(SILENT_MS).await.unwrap();
        (!ended.is_empty()).then_some(ended)
    })
    .await;
    assert_eq!(ended, [Still { node: "still".into(), sessions: 2 }]);
    waiting.await.unwrap().expect_err("a transaction of a node that stands still goes on");
    run(&mut holds, "SELECT 1").await.unwrap_err();
    tokio::time::timeout(LIMIT, run(&mut database.connect().await, LOCK)).await.expect("the lock is free").unwrap();
    run(&mut open, "COMMIT").await.unwrap();
    run(&mut idle, "SELECT 1").await.unwrap();
    assert_eq!(looker.end_still(SILENT_MS).await.unwrap(), []);
}

#[tokio::test]
async fn the_sessions_of_a_node_carry_its_name() {
    let database = Database::migrated().await;
    let node = store(&database, "machine:17:00ff").await;
    node.now().await.unwrap();
    let sql = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()
        AND application_name = 'taskbell machine:17:00ff'";
    let named: i64 = sqlx::query_scalar(sql).fetch_one(&mut database.connect().await).await.unwrap();
    assert!(named > 0);
}

#[tokio::test]
async fn where_one_process_owns_the_database_nobody_stands_still_beside_it() {
    for f in [Fixture::memory(), Fixture::sqlite().await] {
        assert_eq!(f.store.end_still(0).await.unwrap(), []);
    }
}
