//! The main job, end to end, on a real server process: what a newcomer is promised.

use crate::support::eventually;
use crate::support::server::{Client, Server, Spec};
use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use std::time::{Duration, Instant};

/// The import takes some ten seconds with these; a slow machine may take ten times as long.
const END: Duration = Duration::from_secs(120);

async fn numbers(server: &Server, sql: &'static str) -> Vec<i64> {
    let file = server.folder().join("data/taskbell.db");
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(file).read_only(true)).await.unwrap();
    let rows: Vec<(i64,)> = sqlx::query_as(sql).fetch_all(&pool).await.unwrap();
    pool.close().await;
    rows.into_iter().map(|r| r.0).collect()
}

/// Every shipped customer stands in the table once, and was written once.
async fn assert_imported_exactly_once(server: &Server) {
    let found = numbers(
        server,
        "SELECT COUNT(*) FROM customers UNION ALL SELECT COUNT(DISTINCT number) FROM customers \
        UNION ALL SELECT MIN(times_written) FROM customers UNION ALL SELECT MAX(times_written) FROM customers",
    )
    .await;
    assert_eq!(found, [20_000, 20_000, 1, 1]);
}

async fn start_import(client: &Client, pause_seconds: f64) -> String {
    let body = json!({"action": "import-customers", "params": {"batch": 200, "pause": pause_seconds}});
    client.submit(body).await["id"].as_str().unwrap().to_owned()
}

fn current(task: &Value) -> i64 {
    task["progress"]["current"].as_i64().unwrap()
}

#[tokio::test]
async fn the_demo_import_ends_with_exactly_its_rows_and_a_hundred_percent_only_then() {
    let server = Spec::demo().start().await;
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
    assert_imported_exactly_once(&server).await;
}

#[tokio::test]
async fn twenty_crashes_during_the_import_lose_nothing_and_double_nothing() {
    const CRASHES: u32 = 20;
    let mut server = Spec::demo().start().await;
    let client = server.client("user", "user").await;
    let id = start_import(&client, 0.25).await;
    let path = format!("/api/v1/tasks/{id}");
    let (mut before, mut waits, mut seen_moving) = (0, Vec::new(), 0);
    let seed: u64 = rand::random();
    println!("seed {seed}");
    for crash in 0..u64::from(CRASHES) {
        // Spread over a little more than one step and its pause, so that all parts of a step are hit.
        let moment =
            Duration::from_millis((seed.rotate_left(crash as u32 * 3) ^ crash.wrapping_mul(0x9E37_79B9)) % 700);
        tokio::time::sleep(moment).await;
        server.kill().await;
        server.start_again().await;
        let up = Instant::now();
        let (_, task) = client.get(&path).await;
        assert!(current(&task) >= before, "crash {crash}: progress fell from {before} to {}", current(&task));
        before = current(&task);
        let moved = eventually("work goes on", Duration::from_secs(6), async || {
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
    println!("work went on after a start: median {:?}, longest {:?}", waits[waits.len() / 2], waits[waits.len() - 1]);
    assert!(seen_moving >= CRASHES * 3 / 4, "the import ended before it was crashed often enough: {seen_moving}");
    let task = client.until(&id, END, |t| t["state"] == "succeeded").await;
    assert_eq!((current(&task), &task["progress"]["percent"]), (20_000, &json!(100)));
    assert_eq!(task["rows"]["ok"], 20_000);
    assert!(task["attempt"] == 1 && task["takeovers"].as_i64().unwrap() <= i64::from(CRASHES), "{task}");
    assert_imported_exactly_once(&server).await;
}
