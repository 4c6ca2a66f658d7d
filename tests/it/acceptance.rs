//! The main job, end to end, on real server processes and on each database: what a newcomer is promised.

use crate::support::ground::Ground;
use crate::support::postgres::{self, Database};
use crate::support::server::{Client, Server, Spec};
use crate::support::{eventually, on_each_database};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The import takes some ten seconds with these; a slow machine may take ten times as long.
const END: Duration = Duration::from_secs(120);
/// How soon work goes on after a start: at once on a file, after a lease and a sweep on a server.
const ON: Duration = Duration::from_secs(30);
/// How long writes may be refused after a database server is back.
const BACK: Duration = Duration::from_secs(30);

on_each_database! {
    the_demo_import_ends_with_exactly_its_rows_and_a_hundred_percent_only_then
    twenty_crashes_during_the_import_lose_nothing_and_double_nothing
}

/// The demo with leases that end soon.
async fn demo(ground: &Arc<Ground>) -> Server {
    let short = [("LEASE_MS", "1500"), ("HEARTBEAT_MS", "500"), ("SWEEP_MS", "500"), ("POLL_MS", "500")];
    let spec = Spec::demo();
    let spec = short.iter().fold(spec, |spec, (name, value)| spec.env(&format!("TASKBELL__ENGINE__{name}"), value));
    spec.start_on(ground.clone()).await
}

/// Every shipped customer stands in the table once, and was written once.
async fn assert_imported_exactly_once(ground: &Ground) {
    let sql = "SELECT COUNT(*) FROM customers UNION ALL SELECT COUNT(DISTINCT number) FROM customers \
        UNION ALL SELECT MIN(times_written) FROM customers UNION ALL SELECT MAX(times_written) FROM customers";
    assert_eq!(ground.numbers("data/taskbell.db", sql).await, [20_000, 20_000, 1, 1]);
}

async fn start_import(client: &Client, pause_seconds: f64) -> String {
    let body = json!({"action": "import-customers", "params": {"batch": 200, "pause": pause_seconds}});
    client.submit(body).await["id"].as_str().unwrap().to_owned()
}

fn current(task: &Value) -> i64 {
    task["progress"]["current"].as_i64().unwrap()
}

/// Proves: G12.
async fn the_demo_import_ends_with_exactly_its_rows_and_a_hundred_percent_only_then(ground: Arc<Ground>) {
    let server = demo(&ground).await;
    let client = server.client("user", "user").await;
    let id = start_import(&client, 0.02).await;
    let mut before = 0;
    let started = Instant::now();
    let task = loop {
        let (_, task) = client.get(&format!("/api/v1/tasks/{id}")).await;
        assert!(current(&task) >= before, "progress fell from {before}: {task}");
        before = current(&task);
        if task["state"] == "succeeded" {
            break task;
        }
        assert_ne!(task["progress"]["percent"], 100, "{task}");
        assert!(started.elapsed() < END, "{task}");
    };
    assert_eq!((current(&task), &task["progress"]["total"]), (20_000, &json!(20_000)));
    assert_eq!((&task["progress"]["percent"], &task["rows"]["ok"]), (&json!(100), &json!(20_000)));
    assert_imported_exactly_once(&ground).await;
}

/// Proves: G1.
async fn twenty_crashes_during_the_import_lose_nothing_and_double_nothing(ground: Arc<Ground>) {
    crash_twenty_times(ground, async |_, _| ()).await;
}

/// Starts the import and kills its server twenty times, each time as soon as it has gone on. `between` does what else is
/// to happen while the server lives.
async fn crash_twenty_times(ground: Arc<Ground>, between: impl AsyncFn(u64, &Client)) {
    const CRASHES: u32 = 20;
    let mut server = demo(&ground).await;
    let client = server.client("user", "user").await;
    let id = start_import(&client, 0.25).await;
    let path = format!("/api/v1/tasks/{id}");
    let (mut before, mut waits, mut seen_moving) = (0, Vec::new(), 0);
    let seed: u64 = rand::random();
    eprintln!("seed {seed}");
    for crash in 0..u64::from(CRASHES) {
        // Spread over a little more than one step and its pause, so that all parts of a step are hit.
        let moment =
            Duration::from_millis((seed.rotate_left(crash as u32 * 3) ^ crash.wrapping_mul(0x9E37_79B9)) % 700);
        tokio::time::sleep(moment).await;
        between(crash, &client).await;
        server.kill().await;
        server.start_again().await;
        let up = Instant::now();
        let (_, task) = client.get(&path).await;
        assert!(current(&task) >= before, "crash {crash}: progress fell from {before} to {}", current(&task));
        before = current(&task);
        let moved = eventually("work goes on", ON, async || {
            let (_, task) = client.get(&path).await;
            (current(&task) > before || task["state"] == "succeeded").then_some(task)
        })
        .await;
        assert!(current(&moved) >= before);
        before = current(&moved);
        seen_moving += u32::from(moved["state"] == "running");
        waits.push(up.elapsed());
    }
    waits.sort_unstable();
    eprintln!("work went on after a start: median {:?}, longest {:?}", waits[waits.len() / 2], waits[waits.len() - 1]);
    assert!(seen_moving >= CRASHES * 3 / 4, "the import ended before it was crashed often enough: {seen_moving}");
    let task = client.until(&id, END, |t| t["state"] == "succeeded").await;
    assert_eq!((current(&task), &task["progress"]["percent"]), (20_000, &json!(100)));
    assert_eq!(task["rows"]["ok"], 20_000);
    assert!(task["attempt"] == 1 && task["takeovers"].as_i64().unwrap() <= i64::from(CRASHES), "{task}");
    assert_imported_exactly_once(&ground).await;
}

/// Proves: G1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_restarts_of_the_database_server_and_twenty_crashes_lose_nothing_and_double_nothing() {
    let database_server = postgres::Server::start().await;
    let ground = Arc::new(Ground::on(Database::empty_on(database_server.url()).await));
    let accepted = Mutex::new(BTreeMap::new());
    crash_twenty_times(ground.clone(), async |crash, client| {
        if crash % 4 == 1 {
            let down = AtomicBool::new(true);
            let restart = async {
                database_server.restart().await;
                down.store(false, Ordering::SeqCst);
                Instant::now()
            };
            let clicking = async {
                while down.load(Ordering::SeqCst) {
                    click_until_accepted(client, &accepted).await;
                }
                click_until_accepted(client, &accepted).await;
                Instant::now()
            };
            let (back, clicked) = tokio::join!(restart, clicking);
            assert!(clicked.saturating_duration_since(back) < BACK, "the first click after the restart took too long");
        }
    })
    .await;
    let accepted = accepted.into_inner().unwrap();
    assert!(accepted.len() >= 10, "{accepted:?}");
    let sql = "SELECT COUNT(*) FROM taskbell_tasks WHERE idempotency_key LIKE 'through %' \
        UNION ALL SELECT COUNT(DISTINCT idempotency_key) FROM taskbell_tasks WHERE idempotency_key LIKE 'through %'";
    let count = accepted.len() as i64;
    assert_eq!(ground.numbers("data/taskbell.db", sql).await, [count, count], "every accepted click is one task");
}

/// Clicks once, as often as it takes; a refusal must be a 503 that says when to come again.
async fn click_until_accepted(client: &Client, accepted: &Mutex<BTreeMap<String, String>>) {
    let key = format!("through {}", accepted.lock().unwrap().len());
    let later = json!({"action": "recalculate-totals", "idempotencyKey": key, "runAt": "2100-01-01T00:00:00.000Z"});
    let id = eventually("a click is accepted", BACK, async || {
        let (status, retry_after, task) = client.try_post("/api/v1/tasks", &later).await;
        match status {
            200 | 201 => Some(task["id"].as_str().unwrap().to_owned()),
            503 if retry_after.is_some() => None,
            _ => panic!("{status} {retry_after:?} {task}"),
        }
    })
    .await;
    accepted.lock().unwrap().insert(key, id);
}
