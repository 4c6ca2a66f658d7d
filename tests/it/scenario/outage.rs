//! A PostgreSQL server that is in trouble: gone, restarted, stalled for one node, read-only, ending connections at will. A
//! caller sees 503 with a time to come again and nothing else; work waits and loses nothing; it goes on by itself.

use crate::support::eventually;
use crate::support::ground::Ground;
use crate::support::postgres::{self, Database};
use crate::support::proxy::Proxy;
use crate::support::server::{Client, Server, Spec};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

mod fail_over;
mod pooler;
mod restarts;
mod snapshot;
mod workers;

const END: Duration = Duration::from_secs(120);
/// How long writes may be refused after the trouble is over; what is promised.
const BACK: Duration = Duration::from_secs(30);

fn long() -> bool {
    std::env::var("TASKBELL_TEST_LONG").is_ok_and(|v| v == "1")
}

fn demo() -> Spec {
    let short = [("LEASE_MS", "1500"), ("HEARTBEAT_MS", "500"), ("SWEEP_MS", "500"), ("POLL_MS", "500")];
    short.iter().fold(Spec::demo(), |spec, (name, value)| spec.env(&format!("TASKBELL__ENGINE__{name}"), value))
}

async fn start_import(client: &Client, pause_seconds: f64) -> String {
    let params = json!({"batch": 500, "pause": pause_seconds});
    let task = client.submit(json!({"action": "import-customers", "params": params})).await;
    let id = task["id"].as_str().unwrap().to_owned();
    client.until(&id, END, |t| t["progress"]["current"].as_i64() > Some(0)).await;
    id
}

/// Waits for the end of an import, and counts what it wrote.
async fn assert_ends_exactly_once(client: &Client, ground: &Ground, id: &str) -> Value {
    let task = client.until(id, END, |t| t["state"] == "succeeded" || t["state"] == "failed").await;
    assert_eq!((&task["state"], &task["rows"]["ok"]), (&json!("succeeded"), &json!(20_000)), "{task}");
    assert_eq!(task["attempt"], 1, "trouble of the database uses no attempt: {task}");
    let sql = "SELECT COUNT(*) FROM customers UNION ALL SELECT MIN(times_written) FROM customers \
        UNION ALL SELECT MAX(times_written) FROM customers";
    assert_eq!(ground.numbers("data/taskbell.db", sql).await, [20_000, 1, 1]);
    task
}

/// What came of clicks in times of trouble.
#[derive(Default)]
struct Clicked {
    /// The tasks that were promised, each once.
    accepted: BTreeSet<String>,
    /// How often somebody was told to come again.
    refused: usize,
}

impl Clicked {
    /// What was promised is there, and nothing else: a click that was refused and came again made one task.
    async fn assert_kept(&self, ground: &Ground) {
        let sql = "SELECT COUNT(*) FROM taskbell_tasks WHERE idempotency_key LIKE 'click %'";
        assert_eq!(ground.numbers("data/taskbell.db", sql).await, [self.accepted.len() as i64]);
    }

    /// These too.
    fn and(mut self, mut others: Self) -> Self {
        self.accepted.append(&mut others.accepted);
        Self { accepted: self.accepted, refused: self.refused + others.refused }
    }
}

/// Clicks until it is accepted, with one key, and looks whenever it is refused; each refusal says when to come again.
async fn click_until_accepted(client: &Client, limit: Duration, clicked: &Mutex<Clicked>) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let key = format!("click {}", COUNT.fetch_add(1, Ordering::Relaxed));
    let body = json!({"action": "recalculate-totals", "idempotencyKey": key, "runAt": "2100-01-01T00:00:00.000Z"});
    eventually("a click is accepted", limit, async || {
        let (status, retry_after, task) = client.try_post("/api/v1/tasks", &body).await;
        match status {
            200 | 201 => {
                assert!(clicked.lock().unwrap().accepted.insert(task["id"].as_str().unwrap().to_owned()), "{task}");
                return Some(());
            }
            503 => assert!(retry_after.is_some(), "{task}"),
            _ => panic!("{status}: {task}"),
        }
        clicked.lock().unwrap().refused += 1;
        let (status, answer) = client.get("/api/v1/tasks").await;
        assert!(status == 200 || status == 503, "{status}: {answer}");
        None
    })
    .await;
}

/// Clicks on every node all the while that something happens, and after it until a click is accepted everywhere.
async fn clicks_during(clients: &[Client], trouble: impl Future<Output = ()>) -> Clicked {
    let (over, clicked) = (AtomicBool::new(false), Mutex::default());
    let trouble = async {
        trouble.await;
        over.store(true, Ordering::SeqCst);
    };
    let clicking = async |client: &Client| {
        while !over.load(Ordering::SeqCst) {
            // Longer than any trouble here takes.
            click_until_accepted(client, END, &clicked).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let from = Instant::now();
        click_until_accepted(client, BACK, &clicked).await;
        eprintln!("clicks were accepted again after {:?}", from.elapsed());
    };
    tokio::join!(trouble, join_all(clients.iter().map(clicking)));
    clicked.into_inner().unwrap()
}

async fn on_a_server_of_its_own() -> (postgres::Server, Arc<Ground>, Server) {
    let database_server = postgres::Server::start().await;
    let ground = Arc::new(Ground::on(Database::empty_on(database_server.url()).await));
    let server = demo().start_on(ground.clone()).await;
    (database_server, ground, server)
}

/// Proves: G14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_away_for_seconds_fails_no_task_and_callers_are_told_to_come_again() {
    let (database_server, ground, server) = on_a_server_of_its_own().await;
    let client = server.client("user", "user").await;
    let id = start_import(&client, 0.2).await;
    let away = Duration::from_secs(if long() { 20 } else { 8 });
    let clicked = clicks_during(std::slice::from_ref(&client), async {
        database_server.pause().await;
        let (status, _) = client.get("/readyz").await;
        assert_eq!(status, 503, "a node without its database is not ready");
        let (status, _) = client.get("/healthz").await;
        assert_eq!(status, 200, "but lives");
        tokio::time::sleep(away).await;
        database_server.restart().await;
    })
    .await;
    assert!(clicked.refused > 0, "nobody noticed");
    clicked.assert_kept(&ground).await;
    assert_ends_exactly_once(&client, &ground, &id).await;
}

/// Proves: G14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_end_a_hundred_times_lose_nothing_and_double_nothing() {
    let ground = Arc::new(Ground::postgres().await);
    let server = demo().start_on(ground.clone()).await;
    let client = server.client("user", "user").await;
    let id = start_import(&client, 0.05).await;
    let ends = if long() { 200 } else { 100 };
    let clicked = clicks_during(std::slice::from_ref(&client), async {
        for _ in 0..ends {
            ground.database().unwrap().terminate_all().await;
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    })
    .await;
    clicked.assert_kept(&ground).await;
    assert_ends_exactly_once(&client, &ground, &id).await;
}

/// Proves: G14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_only_reads_takes_writes_again_as_soon_as_it_is_promoted() {
    let (database_server, ground, server) = on_a_server_of_its_own().await;
    let client = server.client("user", "user").await;
    let id = start_import(&client, 0.2).await;
    let clicked = clicks_during(std::slice::from_ref(&client), async {
        database_server.become_standby().await;
        eventually("writes are refused", BACK, async || {
            let body = json!({"action": "recalculate-totals", "runAt": "2100-01-01T00:00:00.000Z"});
            (client.try_post("/api/v1/tasks", &body).await.0 == 503).then_some(())
        })
        .await;
        eventually("it can be read", BACK, async || {
            (client.get(&format!("/api/v1/tasks/{id}")).await.0 == 200).then_some(())
        })
        .await;
        tokio::time::sleep(Duration::from_secs(if long() { 30 } else { 2 })).await;
        database_server.promote().await;
    })
    .await;
    assert!(clicked.refused > 0, "nobody noticed");
    clicked.assert_kept(&ground).await;
    assert_ends_exactly_once(&client, &ground, &id).await;
}

/// Proves: G2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_database_stalls_is_taken_over_and_its_late_writes_change_nothing() {
    let ground = Arc::new(Ground::postgres().await);
    let database = ground.database().unwrap();
    let proxy = Proxy::before(database.port()).await;
    let behind = database.url_by_port(proxy.port());
    let stalled = demo().env("TASKBELL__DATABASE__URL", &behind).start_on(ground.clone()).await;
    let client = stalled.client("user", "user").await;
    let id = start_import(&client, 0.1).await;
    let other = demo().start_on(ground.clone()).await;
    let client = Client::new(&other.url(), &client.key);
    proxy.stall();
    let (_, task) = client.get(&format!("/api/v1/tasks/{id}")).await;
    let at = task["progress"]["current"].as_i64();
    // The server ends the stalled transaction, with its locks, after five seconds; then the lease ends and is swept.
    client.until(&id, Duration::from_secs(30), |t| t["progress"]["current"].as_i64() > at).await;
    // Three leases, then everything that the stalled node still had to say arrives at once.
    tokio::time::sleep(Duration::from_millis(4_500)).await;
    proxy.mend();
    let task = assert_ends_exactly_once(&client, &ground, &id).await;
    assert!(task["takeovers"].as_i64() >= Some(1) || task["chunks"].as_i64() > Some(0), "{task}");
    let client = Client::new(&stalled.url(), &client.key);
    eventually("the stalled node answers again", BACK, async || (client.get("/readyz").await.0 == 200).then_some(()))
        .await;
}
