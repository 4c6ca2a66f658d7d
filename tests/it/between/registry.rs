//! The registry of nodes on real processes: who is there, what each can run, who has gone; and tasks that nobody can run.

use crate::support::ground::Ground;
use crate::support::on_each_database;
use crate::support::server::{Client, Server, Spec};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Far more than anything here takes.
const LIMIT: Duration = Duration::from_secs(60);

/// A node that runs these actions, with a short lease.
fn node(scripts: &TempDir, actions: &[&str]) -> Spec {
    let script = scripts.path().join("done.js");
    std::fs::write(&script, "export default () => ({ hasMore: false });").unwrap();
    let action = |key: &&str| format!("[[actions]]\nkey = \"{key}\"\nhandler = {{ script = {script:?} }}\n");
    let config = format!("[[records]]\ntype = \"order\"\n{}", actions.iter().map(action).collect::<String>());
    Spec::with_config(&config)
        .env("TASKBELL__ENGINE__LEASE_MS", "1500")
        .env("TASKBELL__ENGINE__HEARTBEAT_MS", "500")
        .env("TASKBELL__ENGINE__POLL_MS", "200")
}

async fn platform(server: &Server) -> Client {
    let key = server.command(&["key", "create", "--tenant", "*", "--user", "pia", "--role", "platform"]).await;
    Client::new(&server.url(), key.trim())
}

/// Waits until the list of nodes is as wished.
async fn until_nodes(client: &Client, wished: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let list = client
        .until_any("/api/v1/admin/nodes", LIMIT, |list| list["items"].as_array().is_some_and(|items| wished(items)))
        .await;
    list["items"].as_array().unwrap().clone()
}

on_each_database! {
    a_node_tells_what_it_is_and_what_it_has_done
}

async fn a_node_tells_what_it_is_and_what_it_has_done(ground: Arc<Ground>) {
    let scripts = tempfile::tempdir().unwrap();
    let mut server = node(&scripts, &["a", "b"]).start_on(ground).await;
    let (alice, pia) = (server.client("alice", "user").await, platform(&server).await);
    for role in ["user", "operator", "admin"] {
        let (status, refused) = server.client("mallory", role).await.get("/api/v1/admin/nodes").await;
        assert_eq!((status, &refused["code"]), (403, &json!("forbidden")), "{role}");
    }
    let task = alice.submit(json!({"action": "a"})).await;
    alice.until(task["id"].as_str().unwrap(), LIMIT, |task| task["state"] == "succeeded").await;
    let nodes = until_nodes(&pia, |nodes| nodes.len() == 1 && nodes[0]["executed"] == 1).await;
    let one = &nodes[0];
    assert_eq!((&one["role"], &one["state"], &one["slots"]), (&json!("all"), &json!("alive"), &json!(16)), "{one}");
    assert_eq!((&one["version"], &one["claimed"]), (&json!(env!("CARGO_PKG_VERSION")), &json!(1)), "{one}");
    assert_eq!((&one["actions"], &one["tenants"]), (&json!(["a", "b"]), &json!(["*"])), "{one}");
    assert!(one["lastClaimAt"].is_string() && one["lastClaimError"].is_null(), "{one}");
    assert!(one["heartbeatAgeMs"].as_i64().unwrap() < 60_000, "{one}");
    let loops: Vec<&str> = one["loops"].as_array().unwrap().iter().map(|l| l["name"].as_str().unwrap()).collect();
    assert_eq!(loops, ["claim", "heartbeat", "sweep"]);
    assert!(one["loops"].as_array().unwrap().iter().all(|l| l["ok"] == true && l["breakdowns"] == 0), "{one}");
    let first = one["id"].clone();
    assert!(server.terminate().await.success());
    server.start_again().await;
    let nodes = until_nodes(&pia, |nodes| !nodes.is_empty()).await;
    assert!(nodes.len() == 1 && nodes[0]["id"] != first, "one that was stopped in order is gone: {nodes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_whose_handler_no_node_has_says_so_until_one_comes_and_holds_up_nobody() {
    let (ground, scripts) = (Arc::new(Ground::postgres().await), tempfile::tempdir().unwrap());
    let all = node(&scripts, &["common", "rare"]);
    let mut web = all.role("web").start_on(ground.clone()).await;
    let common = node(&scripts, &["common"]).start_on(ground.clone()).await;
    let (alice, pia) = (web.client("alice", "user").await, platform(&web).await);
    until_nodes(&pia, |nodes| nodes.len() == 2).await;
    let waiting = |reason: &'static str| move |task: &Value| task["waiting"]["reason"] == reason;
    let rare: Vec<String> = {
        let mut ids = Vec::new();
        for _ in 0..30 {
            ids.push(alice.submit(json!({"action": "rare"})).await["id"].as_str().unwrap().to_owned());
        }
        ids
    };
    alice.until(&rare[0], LIMIT, waiting("no-handler")).await;
    let (_, list) = alice.get("/api/v1/tasks?action=rare").await;
    assert!(list["items"].as_array().unwrap().iter().all(waiting("no-handler")), "{list}");
    let other = alice.submit(json!({"action": "common"})).await;
    alice.until(other["id"].as_str().unwrap(), LIMIT, |task| task["state"] == "succeeded").await;
    // One that is killed says no goodbye: it is stale once its leases have ended.
    let mut able = node(&scripts, &["common", "rare"]).role("work").start_on(ground.clone()).await;
    for id in &rare {
        alice.until(id, LIMIT, |task| task["state"] == "succeeded").await;
    }
    able.kill().await;
    let nodes = until_nodes(&pia, |nodes| nodes.iter().any(|n| n["state"] == "stale")).await;
    let stale: Vec<&Value> = nodes.iter().filter(|n| n["state"] == "stale").collect();
    assert_eq!((stale.len(), &stale[0]["role"]), (1, &json!("work")), "{nodes:?}");
    let late = alice.submit(json!({"action": "rare"})).await;
    alice.until(late["id"].as_str().unwrap(), LIMIT, waiting("no-handler")).await;
    drop(common);
    web.kill().await;
}
