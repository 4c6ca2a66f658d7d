//! A server that crashes under load, over and over: nothing that was promised is lost, work goes on within seconds, and no
//! node is left with fewer connections than it may have.

use super::*;
use crate::store::invariants::assert_invariants;
use rand::RngExt;
use std::time::Duration;

const RESTARTS: usize = 5;
/// Connections of a node's pool.
const CONNECTIONS: i64 = 5;

/// A user of the database for each node, so that their connections can be told apart.
async fn node_of(ground: &Arc<Ground>, user: &str) -> Server {
    let database = ground.database().unwrap();
    database.execute(&format!("CREATE ROLE {user} LOGIN SUPERUSER PASSWORD 'p'")).await;
    let spec = demo().env("TASKBELL__DATABASE__URL", &database.url_as(user, "p"));
    spec.env("TASKBELL__DATABASE__CONNECTIONS", &CONNECTIONS.to_string()).start_on(ground.clone()).await
}

/// Holds the tasks up until every connection of a node's pool waits for them.
async fn assert_pool_is_whole(client: &Client, ground: &Ground, user: &str) {
    let mut c = ground.database().unwrap().connect().await;
    sqlx::raw_sql("BEGIN; LOCK TABLE taskbell_tasks IN ACCESS EXCLUSIVE MODE").execute(&mut c).await.unwrap();
    let asked = join_all((0..3 * CONNECTIONS).map(|_| client.get("/api/v1/tasks")));
    let sql = format!("SELECT COUNT(*) FROM pg_stat_activity WHERE usename = '{user}' AND wait_event_type = 'Lock'");
    let all_wait = async {
        let c = tokio::sync::Mutex::new(&mut c);
        eventually("every connection of the pool is at work", BACK, async || {
            let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql.clone()));
            let waiting: i64 = query.fetch_one(&mut **c.lock().await).await.unwrap();
            assert!(waiting <= CONNECTIONS, "{user} has {waiting} connections");
            (waiting == CONNECTIONS).then_some(())
        })
        .await;
        sqlx::raw_sql("ROLLBACK").execute(&mut **c.lock().await).await.unwrap();
    };
    let (answers, ()) = tokio::join!(asked, all_wait);
    assert!(answers.iter().all(|(status, _)| [200, 503].contains(status)), "{answers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_restarted_five_times_under_load_loses_nothing_and_leaves_every_pool_whole() {
    let database_server = postgres::Server::start().await;
    let ground = Arc::new(Ground::on(Database::empty_on(database_server.url()).await));
    let nodes = [node_of(&ground, "first").await, node_of(&ground, "second").await];
    let first = nodes[0].client("user", "user").await;
    let clients = [first.clone(), Client::new(&nodes[1].url(), &first.key)];
    let id = start_import(&first, 0.3).await;
    let between = Mutex::<Clicked>::default();
    let clicked = clicks_during(&clients, async {
        for _ in 0..RESTARTS {
            let load_ms = rand::rng().random_range(500..1_500);
            tokio::time::sleep(Duration::from_millis(load_ms)).await;
            database_server.restart().await;
            let from = Instant::now();
            join_all(clients.iter().map(|client| click_until_accepted(client, BACK, &between))).await;
            eprintln!("both nodes accept clicks again {:?} after a restart", from.elapsed());
        }
    })
    .await;
    let clicked = clicked.and(between.into_inner().unwrap());
    eprintln!("{} clicks accepted, {} told to come again", clicked.accepted.len(), clicked.refused);
    clicked.assert_kept(&ground).await;
    assert_ends_exactly_once(&first, &ground, &id).await;
    for (client, user) in clients.iter().zip(["first", "second"]) {
        assert_pool_is_whole(client, &ground, user).await;
    }
    assert_invariants(ground.open().await.as_ref()).await;
}
