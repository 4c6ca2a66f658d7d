//! Workers and the server are killed, again and again: each task comes to its right end, and every committed step counts once.

use super::{Language, SOON, alice, key, prepare, run, start};
use crate::support::ground::Ground;
use crate::support::on_each_database;
use rand::RngExt;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

on_each_database! {
    killed_workers_and_a_killed_server_lose_nothing_and_double_nothing
}

const TASKS: usize = 6;
const LETTERS: i64 = 100;
const KILLS: usize = 8;

/// Proves: G17.
async fn killed_workers_and_a_killed_server_lose_nothing_and_double_nothing(ground: Arc<Ground>) {
    let mut server = start(ground).await;
    let (alice, key, folder) = (alice(&server).await, key(&server).await, tempfile::tempdir().unwrap());
    let program = prepare(Language::Python, folder.path()).await;
    let mut workers: Vec<_> = (0..3).map(|_| run(&program, &server.url(), &key)).collect();
    let mut ids = Vec::new();
    for _ in 0..TASKS {
        let task = alice.submit(json!({"action": "write-letters", "params": {"count": LETTERS}})).await;
        ids.push(task["id"].as_str().unwrap().to_owned());
    }
    for kill in 0..KILLS {
        let (pause_ms, victim) = (rand::rng().random_range(50..400), rand::rng().random_range(0..workers.len()));
        // Somewhere in the middle of a chunk, a commit or a poll.
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        if kill % 4 == 3 {
            server.kill().await;
            server.start_again().await;
        } else {
            workers[victim].kill().await.unwrap();
            workers[victim] = run(&program, &server.url(), &key);
        }
    }
    for id in &ids {
        let task = alice.until(id, SOON, |task| task["finishedAt"] != Value::Null).await;
        assert_eq!((&task["state"], &task["result"]), (&json!("succeeded"), &json!({"written": LETTERS})), "{task}");
        assert_eq!((&task["rows"]["ok"], &task["chunks"]), (&json!(LETTERS), &json!(LETTERS / 20)), "{task}");
        assert_eq!(task["attempt"], 1, "a kill uses no attempt: {task}");
        let events = alice.get(&format!("/api/v1/tasks/{id}/events")).await.1;
        let lost = events["items"].as_array().unwrap().iter().filter(|e| e["reason"] == "lease-lost").count();
        assert_eq!(task["takeovers"], json!(lost), "{events}");
    }
}
