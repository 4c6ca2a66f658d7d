//! Somebody who looks on while nodes die: follows the notification center over the WebSocket, at one node after the other.
//!
//! What it is shown of a task never falls back (invariant 10), whatever node shows it, and is the row in the end.

use super::PATIENCE;
use super::nodes::Nodes;
use crate::support::eventually;
use crate::support::server::Client;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::task::AbortOnDropHandle;

/// Between two tries to connect.
const AGAIN: Duration = Duration::from_millis(100);

/// How many of the tasks that are shown are looked up in the end.
const LOOKED_UP: usize = 20;

/// It looks on as long as the value lives.
pub struct Watcher {
    client: Client,
    seen: Arc<Mutex<Seen>>,
    _watching: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Seen {
    /// The highest revision that was ever shown, by task.
    highest: BTreeMap<String, i64>,
    /// What the page shows now.
    shown: BTreeMap<String, i64>,
    frames: usize,
    connections: usize,
    fell: Vec<String>,
}

impl Watcher {
    /// Begins.
    pub async fn start(nodes: &Nodes) -> Self {
        let (seen, mut ports) = (Arc::new(Mutex::new(Seen::default())), Vec::new());
        for server in &nodes.servers {
            ports.push(server.lock().await.port());
        }
        // The same person as the one who clicks.
        let client = nodes.servers[0].lock().await.client("olga", "operator").await;
        let watching = watch(ports, client.key.clone(), Arc::clone(&seen));
        Self { client, seen, _watching: AbortOnDropHandle::new(tokio::spawn(watching)) }
    }

    /// Waits until the newest of the tasks that are shown are as their rows, when nothing changes any more; fails with what ever
    /// fell back.
    pub async fn shows_the_rows(&self) {
        eventually("what is shown is what the rows say", PATIENCE, async || {
            let newest = |seen: &Seen| -> Vec<_> { seen.shown.clone().into_iter().rev().take(LOOKED_UP).collect() };
            let shown = newest(&self.seen.lock().unwrap());
            for (id, revision) in &shown {
                let (_, task) = self.client.get(&format!("/api/v1/tasks/{id}")).await;
                if task["revision"] != *revision {
                    return None;
                }
            }
            (!shown.is_empty()).then_some(())
        })
        .await;
        let seen = self.seen.lock().unwrap();
        assert!(seen.fell.is_empty(), "what was shown fell back: {:#?}", seen.fell);
        println!("{} tasks in {} frames over {} connections", seen.highest.len(), seen.frames, seen.connections);
    }
}

impl Seen {
    fn take(&mut self, frame: &Value) {
        self.frames += 1;
        match frame["t"].as_str() {
            Some("snap") => self.shown.clear(),
            Some("delta") => {}
            Some("gone") => {
                self.shown.remove(frame["id"].as_str().unwrap());
                return;
            }
            _ => return,
        }
        for item in frame["items"].as_array().unwrap() {
            let (id, revision) = (item["id"].as_str().unwrap(), item["revision"].as_i64().unwrap());
            let highest = self.highest.entry(id.to_owned()).or_insert(revision);
            if revision < *highest {
                self.fell.push(format!("{id} from {highest} to {revision} by {}", frame["t"]));
            }
            *highest = revision.max(*highest);
            self.shown.insert(id.to_owned(), revision);
        }
    }
}

async fn watch(ports: Vec<u16>, key: String, seen: Arc<Mutex<Seen>>) {
    for port in ports.iter().cycle() {
        // A node that is down refuses, and one that dies breaks off: then it is the next one's turn.
        let _ = look(*port, &key, &seen).await;
        tokio::time::sleep(AGAIN).await;
    }
}

async fn look(port: u16, key: &str, seen: &Mutex<Seen>) -> Result<(), Error> {
    let mut request = format!("ws://127.0.0.1:{port}/api/v1/ws").into_client_request()?;
    request.headers_mut().insert("sec-websocket-protocol", "taskbell.v1".parse().unwrap());
    request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
    let (mut socket, _) = connect_async(request).await?;
    socket.send(Message::text(json!({"t": "hello"}).to_string())).await?;
    seen.lock().unwrap().connections += 1;
    while let Some(message) = socket.next().await {
        let Message::Text(text) = message? else { continue };
        let frame: Value = serde_json::from_str(&text).unwrap();
        if frame["t"] == "ping" {
            socket.send(Message::text(json!({"t": "pong"}).to_string())).await?;
        }
        seen.lock().unwrap().take(&frame);
    }
    Ok(())
}
