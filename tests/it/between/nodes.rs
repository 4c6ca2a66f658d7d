//! Two nodes: what one does, the pages and the engine of the other know, whatever carries it.

use super::page::Page;
use crate::support::eventually;
use crate::support::ground::Ground;
use crate::support::redis::Redis;
use crate::support::server::{Client, Server, Spec};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Fresh again within 5 s of the return, and what another node did within 2 s.
const FRESH: Duration = Duration::from_secs(15);
const END: Duration = Duration::from_secs(120);

fn node(redis: Option<&Redis>) -> Spec {
    let spec = Spec::demo().env("TASKBELL__ENGINE__POLL_MS", "500");
    match redis {
        Some(redis) => spec.env("TASKBELL__REDIS__URL", &redis.url()),
        None => spec,
    }
}

async fn until_ready(client: &Client, part: &str, word: &str) {
    client.until_any("/readyz", FRESH, |ready| ready["parts"][part] == word).await;
}

async fn pages(servers: &[Server], key: &str) -> Vec<Page> {
    let mut pages = Vec::new();
    for server in servers {
        for _ in 0..3 {
            pages.push(Page::open(server, key).await);
        }
    }
    pages
}

async fn all(pages: &[Page], what: &str, wanted: impl Fn(&Page) -> bool) {
    eventually(what, FRESH, async || {
        pages.iter().for_each(Page::assert_open);
        pages.iter().all(&wanted).then_some(())
    })
    .await;
}

/// A task that takes about so long, in chunks.
async fn slow_task(client: &Client, seconds: f64) -> String {
    let params = json!({"batch": 1000, "pause": seconds / 20.0});
    let task = client.submit(json!({"action": "import-customers", "params": params})).await;
    task["id"].as_str().unwrap().to_owned()
}

/// Proves: G7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n1_redis_restarted_five_times_under_load_costs_nobody_a_connection_or_a_task() {
    let (ground, redis) = (Arc::new(Ground::postgres().await), Redis::start(&[]).await);
    let servers =
        [node(Some(&redis)).start_on(ground.clone()).await, node(Some(&redis)).start_on(ground.clone()).await];
    let first = servers[0].client("user", "user").await;
    let second = Client::new(&servers[1].url(), &first.key);
    for client in [&first, &second] {
        until_ready(client, "redis", "ok").await;
    }
    let pages = pages(&servers, &first.key).await;
    let mut tasks = vec![slow_task(&first, 20.0).await];
    for round in 1..=5 {
        redis.kill().await;
        all(&pages, "pages are told that changes come late", |page| page.told("degraded") >= round).await;
        tasks.push(slow_task(&second, 1.0).await);
        let newest = tasks.last().unwrap().clone();
        all(&pages, "a task reaches every page without Redis", |page| page.state(&newest).is_some()).await;
        redis.restart().await;
        all(&pages, "pages are told that all is well", |page| {
            page.told("ok") >= round && page.told("ok") == page.told("degraded")
        })
        .await;
        join_all(pages.iter().map(|page| page.until_true(&first, FRESH))).await;
    }
    for id in &tasks {
        let task = first.until(id, END, |task| task["state"] == "succeeded").await;
        assert_eq!((&task["attempt"], &task["takeovers"]), (&json!(1), &json!(0)), "{task}");
    }
    join_all(pages.iter().map(|page| page.until_true(&first, FRESH))).await;
    all(&pages, "every page shows every end", |page| {
        tasks.iter().all(|id| page.state(id).as_deref() == Some("succeeded"))
    })
    .await;
    for server in &servers {
        let away = server.said().lines().filter(|line| line.contains("redis is away")).count();
        assert!(away <= 5, "an outage is told once: {}", server.said());
    }
}

/// Proves: G7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p10_two_nodes_without_redis_show_what_the_other_one_does() {
    let ground = Arc::new(Ground::postgres().await);
    let servers = [node(None).start_on(ground.clone()).await, node(None).start_on(ground.clone()).await];
    let first = servers[0].client("user", "user").await;
    let second = Client::new(&servers[1].url(), &first.key);
    for client in [&first, &second] {
        until_ready(client, "wake", "listen").await;
        let (status, ready) = client.get("/readyz").await;
        assert_eq!((status, &ready["parts"]["redis"]), (200, &json!("off")));
    }
    let pages = pages(&servers, &first.key).await;
    for client in [&first, &second] {
        let id = slow_task(client, 2.0).await;
        all(&pages, "every page shows it running", |page| page.state(&id).as_deref() == Some("running")).await;
        first.until(&id, END, |task| task["state"] == "succeeded").await;
        all(&pages, "every page shows its end", |page| page.state(&id).as_deref() == Some("succeeded")).await;
    }
}

/// A node that only takes in, and one that only works and would not look by itself for minutes.
async fn wakes(redis: Option<&Redis>, by: &str) {
    let ground = Arc::new(Ground::postgres().await);
    let takes_in = node(redis).role("web").start_on(ground.clone()).await;
    let mut works = node(redis).role("work");
    works.env.retain(|(name, _)| name != "TASKBELL__ENGINE__POLL_MS");
    let works = works.env("TASKBELL__ENGINE__POLL_MS", "600000").start_on(ground.clone()).await;
    let client = takes_in.client("user", "user").await;
    for server in [&takes_in, &works] {
        until_ready(&Client::new(&server.url(), &client.key), "wake", by).await;
    }
    for _ in 0..3 {
        let task: Value = client.submit(json!({"action": "recalculate-totals"})).await;
        client.until(task["id"].as_str().unwrap(), FRESH, |task| task["state"] != "queued").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_click_on_one_node_wakes_the_other_by_redis() {
    let redis = Redis::start(&[]).await;
    wakes(Some(&redis), "redis").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_click_on_one_node_wakes_the_other_by_the_database() {
    wakes(None, "listen").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g5_a_node_that_is_woken_before_the_commit_finds_nothing_and_starts_right_after_it() {
    let ground = Arc::new(Ground::postgres().await);
    let takes_in = node(None).role("web").start_on(ground.clone()).await;
    let mut works = node(None).role("work");
    works.env.retain(|(name, _)| name != "TASKBELL__ENGINE__POLL_MS");
    let works = works.env("TASKBELL__ENGINE__POLL_MS", "600000").start_on(ground.clone()).await;
    let client = takes_in.client("user", "user").await;
    for server in [&takes_in, &works] {
        until_ready(&Client::new(&server.url(), &client.key), "wake", "listen").await;
    }
    // The owner's head has a row now, and a submit waits for it between its insert and its commit.
    let task = client.submit(json!({"action": "recalculate-totals"})).await;
    client.until(task["id"].as_str().unwrap(), END, |task| task["state"] == "succeeded").await;
    let database = ground.database().unwrap();
    let mut holds = database.connect().await;
    sqlx::raw_sql("BEGIN; SELECT head FROM taskbell_heads FOR UPDATE").execute(&mut holds).await.unwrap();
    let body = json!({"action": "recalculate-totals"});
    let click = async { client.submit(body).await };
    let wake_too_early = async {
        let waiting =
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        eventually("the submit waits before its commit", FRESH, async || {
            (ground.numbers("data/taskbell.db", waiting).await[0] > 0).then_some(())
        })
        .await;
        for _ in 0..10 {
            database.execute("NOTIFY taskbell, 'elsewhere wc'").await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        sqlx::raw_sql("ROLLBACK").execute(&mut holds).await.unwrap();
    };
    let (task, ()) = tokio::join!(click, wake_too_early);
    client.until(task["id"].as_str().unwrap(), FRESH, |task| task["state"] != "queued").await;
    for server in [&takes_in, &works] {
        let said = server.said();
        assert!(!said.contains("not found") && !said.contains("ERROR"), "{said}");
    }
}
