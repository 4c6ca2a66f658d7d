//! What the database server knows of the size of our tables. It makes its plans anew when a table was counted (PostgreSQL's
//! documentation of PREPARE), so that a plan of a small table does not outlive it by much.

use super::fixture::Fixture;
use super::words::click;
use crate::support::{crowd, eventually, postgres};
use std::time::Duration;
use taskbell::store::Nodes as _;
use taskbell::store::migrate::Mode;
use taskbell::store::postgres::PostgresStore;

const LIMIT: Duration = Duration::from_secs(60);
const CROWD: usize = 20_000;
const TASKS: &str = "taskbell_tasks";
const NONE: [&str; 0] = [];
/// The server's own upkeep is not to come first.
const BY_ITSELF: &str = "ALTER TABLE taskbell_tasks SET (autovacuum_enabled = off)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_has_grown_is_counted_once_and_not_over_and_over() {
    let f = Fixture::postgres().await;
    f.database().execute(BY_ITSELF).await;
    let mut server = f.database().connect().await;
    assert_eq!(f.store.analyze_grown().await.unwrap(), NONE, "nothing has grown yet");
    f.submit(vec![click()]).await;
    crowd::in_postgres(&mut server, crowd::WAITING, CROWD).await;
    eventually("the tasks are counted", LIMIT, async || {
        let grown = f.store.analyze_grown().await.unwrap();
        grown.contains(&TASKS.to_owned()).then_some(())
    })
    .await;
    let known: f32 =
        sqlx::query_scalar("SELECT reltuples FROM pg_class WHERE oid = CAST('taskbell_tasks' AS regclass)")
            .fetch_one(&mut server)
            .await
            .unwrap();
    assert!(known >= CROWD as f32, "{known}");
    assert_eq!(f.store.analyze_grown().await.unwrap(), NONE, "what was counted has not grown since");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_own_the_tables_leaves_them_to_their_owner() {
    let f = Fixture::postgres().await;
    f.database().execute(BY_ITSELF).await;
    let name = format!("{}_server", f.database().name());
    f.database()
        .execute(&format!(
            "CREATE ROLE {name} LOGIN PASSWORD 'p';
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name}"
        ))
        .await;
    let options = postgres::options(&f.database().url_as(&name, "p"));
    let serves = PostgresStore::open(options, Mode::Check, &mut |_, _, _| {}).await.unwrap();
    f.submit(vec![click()]).await;
    crowd::in_postgres(&mut f.database().connect().await, crowd::WAITING, CROWD).await;
    eventually("its owner counts the table", LIMIT, async || {
        assert_eq!(serves.analyze_grown().await.unwrap(), NONE);
        f.store.analyze_grown().await.unwrap().contains(&TASKS.to_owned()).then_some(())
    })
    .await;
    drop(serves);
    f.database().execute(&format!("DROP OWNED BY {name}; DROP ROLE {name}")).await;
}

#[tokio::test]
async fn where_plans_do_not_follow_from_it_nothing_is_counted() {
    for f in [Fixture::memory(), Fixture::sqlite().await] {
        assert_eq!(f.store.analyze_grown().await.unwrap(), NONE);
    }
}
