//! A Redis server that refuses, that cannot be trusted, and sockets that come and go.

use super::page::Page;
use crate::push::page::resident_bytes;
use crate::support::eventually;
use crate::support::ground::Ground;
use crate::support::redis::Redis;
use crate::support::server::{Client, Spec, free_port};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);
/// What an allocator keeps for itself.
const SLACK_BYTES: u64 = 8 << 20;
const END: Duration = Duration::from_secs(120);

/// Proves: G7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n2_a_user_without_the_right_to_the_channel_is_told_in_one_line_and_the_nodes_go_on() {
    let redis = Redis::start(&["user tb on >p#x ~* +@all"]).await;
    let ground = Arc::new(Ground::postgres().await);
    let node = || Spec::demo().env("TASKBELL__REDIS__URL", &format!("redis://tb:p%23x@127.0.0.1:{}", redis.port()));
    let (first, second) = (node().start_on(ground.clone()).await, node().start_on(ground.clone()).await);
    let client = first.client("user", "user").await;
    for server in [&first, &second] {
        let client = Client::new(&server.url(), "");
        client.until_any("/readyz", SOON, |ready| ready["parts"]["redis"] == "refused").await;
        assert_eq!(client.get("/readyz").await.0, 200);
    }
    let page = Page::open(&second, &client.key).await;
    let task = client.submit(json!({"action": "recalculate-totals"})).await;
    let id = task["id"].as_str().unwrap();
    client.until(id, END, |task| task["state"] == "succeeded").await;
    eventually("the other node's page shows it", SOON, async || {
        (page.state(id).as_deref() == Some("succeeded")).then_some(())
    })
    .await;
    for server in [&first, &second] {
        let said = server.said();
        // On a busy machine a later try may find the server slow, which is told as well, and once.
        let lines: Vec<&str> = said.lines().filter(|line| line.contains("redis")).collect();
        let refused: Vec<&&str> = lines.iter().filter(|line| line.contains("&taskbell:*")).collect();
        assert!(refused.len() == 1 && lines.len() <= 2, "{said}");
        assert!(!said.contains("p#x") && !said.contains("p%23x"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rights_that_the_docs_name_are_enough() {
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operations.md")).unwrap();
    let named = docs.split("`ACL SETUSER taskbell on >PASSWORD ").nth(1).and_then(|rest| rest.split('`').next());
    let redis = Redis::start(&[&format!("user taskbell on >PASSWORD {}", named.expect("the docs name them"))]).await;
    let url = format!("redis://taskbell:PASSWORD@127.0.0.1:{}", redis.port());
    let server = Spec::demo().env("TASKBELL__REDIS__URL", &url).start().await;
    let client = Client::new(&server.url(), "");
    client.until_any("/readyz", SOON, |ready| ready["parts"]["redis"] == "ok").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_and_a_server_that_is_away_are_told_without_a_secret() {
    let redis = Redis::start(&["requirepass right"]).await;
    let away = free_port();
    let cases = [
        (format!("redis://:hunter2@127.0.0.1:{}", redis.port()), "refused", "password"),
        (format!("redis://:hunter2@127.0.0.1:{away}"), "down", "redis is away"),
        // It speaks no TLS.
        (format!("rediss://:hunter2@127.0.0.1:{}", redis.port()), "down", "redis is away"),
    ];
    for (url, part, words) in cases {
        let server = Spec::demo().env("TASKBELL__REDIS__URL", &url).start().await;
        let client = Client::new(&server.url(), "");
        client.until_any("/readyz", SOON, |ready| ready["parts"]["redis"] == part).await;
        assert_eq!(client.get("/readyz").await.0, 200, "{url}");
        eventually("it is told", SOON, async || server.said().contains(words).then_some(())).await;
        assert!(!server.said().contains("hunter2"), "{}", server.said());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n5_a_node_has_two_connections_to_redis_however_many_sockets_come_and_go() {
    let count = if std::env::var("TASKBELL_TEST_LONG").is_ok_and(|v| v == "1") { 2_000 } else { 200 };
    let redis = Redis::start(&[]).await;
    let server = Spec::demo().env("TASKBELL__REDIS__URL", &redis.url()).start().await;
    let client = server.client("user", "user").await;
    client.until_any("/readyz", SOON, |ready| ready["parts"]["redis"] == "ok").await;
    redis.until_clients(2).await;
    let mut before = 0;
    for round in 0..count / 10 {
        let mut open = Vec::new();
        for _ in 0..10 {
            open.push(Page::open(&server, &client.key).await);
        }
        redis.until_clients(2).await;
        // Without a close: the sockets are dropped as they are.
        drop(open);
        // What a process takes once it takes at the first sockets already.
        if round == 4 {
            before = resident_bytes(&server);
        }
    }
    redis.until_clients(2).await;
    eventually("the memory is given back", SOON, async || {
        (resident_bytes(&server) <= before + before / 10 + SLACK_BYTES).then_some(())
    })
    .await;
}
