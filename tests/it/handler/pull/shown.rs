//! Each worker of the page does a task, stops when it is asked to, lives through a restart of the server, and ends by SIGTERM.

use super::{Language, SOON, alice, ended, key, prepare, run, start};
use crate::support::ground::Ground;
use serde_json::json;
use std::sync::Arc;

async fn does_its_work(language: Language) {
    let mut server = start(Arc::new(Ground::usual().await)).await;
    let (alice, key, folder) = (alice(&server).await, key(&server).await, tempfile::tempdir().unwrap());
    let program = prepare(language, folder.path()).await;
    let worker = run(&program, &server.url(), &key);
    let click = |count: i64| json!({"action": "write-letters", "params": {"count": count}});

    let id = alice.submit(click(50)).await["id"].as_str().unwrap().to_owned();
    let task = alice.until(&id, SOON, |task| task["state"] == "succeeded").await;
    assert_eq!(
        (&task["result"], &task["chunks"], &task["rows"]["ok"]),
        (&json!({"written": 50}), &json!(3), &json!(50))
    );
    assert_eq!((&task["progress"]["unit"], &task["progress"]["percent"]), (&json!("letters"), &json!(100)));
    let told = |logs: &serde_json::Value| logs["items"].as_array().is_some_and(|lines| lines.len() == 3);
    alice.until_any(&format!("/api/v1/tasks/{id}/logs"), SOON, told).await;

    let long = alice.submit(click(1_000_000)).await["id"].as_str().unwrap().to_owned();
    alice.until(&long, SOON, |task| task["chunks"].as_i64() > Some(0)).await;
    server.kill().await;
    server.start_again().await;
    let before = alice.get(&format!("/api/v1/tasks/{long}")).await.1["chunks"].clone();
    alice.until(&long, SOON, |task| task["chunks"].as_i64() > before.as_i64().map(|n| n + 1)).await;
    assert_eq!(alice.post(&format!("/api/v1/tasks/{long}/cancel"), &json!({})).await.0, 202);
    let task = alice.until(&long, SOON, |task| task["state"] == "cancelled").await;
    assert_eq!(task["rows"]["ok"], task["progress"]["current"], "what was committed counts once, and all of it");

    assert!(ended(worker).await.success());
    let left = alice.submit(click(1)).await;
    assert_eq!(left["state"], "queued");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_worker_in_python_does_its_work() {
    does_its_work(Language::Python).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_worker_in_typescript_does_its_work() {
    does_its_work(Language::TypeScript).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_worker_with_curl_does_its_work() {
    does_its_work(Language::Bash).await;
}
