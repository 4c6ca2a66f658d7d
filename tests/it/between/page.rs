//! An open page: it says hello, answers pings, and keeps what it is told by the rules of the protocol.

use crate::support::eventually;
use crate::support::server::{Client, Server};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

#[derive(Default)]
struct Known {
    tasks: BTreeMap<String, (i64, String)>,
    statuses: Vec<String>,
    ended: Option<String>,
}

impl Known {
    fn take(&mut self, frame: &Value) {
        match frame["t"].as_str().unwrap() {
            "snap" => self.tasks.clear(),
            "gone" => drop(self.tasks.remove(frame["id"].as_str().unwrap())),
            "status" => self.statuses.push(frame["live"].as_str().unwrap().to_owned()),
            _ => {}
        }
        for item in frame["items"].as_array().into_iter().flatten() {
            let (id, revision) = (item["id"].as_str().unwrap(), item["revision"].as_i64().unwrap());
            let known = self.tasks.entry(id.to_owned()).or_default();
            if revision > known.0 {
                *known = (revision, item["state"].as_str().unwrap().to_owned());
            }
        }
    }
}

/// An open page.
pub struct Page {
    known: Arc<Mutex<Known>>,
    reads: JoinHandle<()>,
}

impl Page {
    /// Opens one on a server.
    pub async fn open(server: &Server, key: &str) -> Self {
        Self::open_by(server.port(), key).await
    }

    /// Opens one by a port, such as that of a proxy.
    pub async fn open_by(port: u16, key: &str) -> Self {
        let mut request = format!("ws://127.0.0.1:{port}/api/v1/ws").into_client_request().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", "taskbell.v1".parse().unwrap());
        let (mut socket, _) = connect_async(request).await.unwrap();
        let hello = json!({"t": "hello", "token": key, "have": null, "lang": "en"});
        socket.send(Message::text(hello.to_string())).await.unwrap();
        let known = Arc::new(Mutex::new(Known::default()));
        let keeps = known.clone();
        let reads = tokio::spawn(async move {
            let why = loop {
                match socket.next().await {
                    Some(Ok(Message::Text(text))) => {
                        let frame: Value = serde_json::from_str(&text).unwrap();
                        keeps.lock().unwrap().take(&frame);
                        if frame["t"] == "ping" {
                            let _ = socket.send(Message::text(json!({"t": "pong"}).to_string())).await;
                        }
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    other => break format!("{other:?}"),
                }
            };
            keeps.lock().unwrap().ended = Some(why);
        });
        Self { known, reads }
    }

    /// How often the server said so.
    pub fn told(&self, live: &str) -> usize {
        self.known.lock().unwrap().statuses.iter().filter(|told| *told == live).count()
    }

    /// What it shows of a task.
    pub fn state(&self, id: &str) -> Option<String> {
        self.known.lock().unwrap().tasks.get(id).map(|(_, state)| state.clone())
    }

    /// Fails when the connection has ended.
    pub fn assert_open(&self) {
        let ended = self.known.lock().unwrap().ended.clone();
        assert!(ended.is_none(), "a page lost its connection: {ended:?}");
    }

    /// Waits until it shows nothing older than what the API tells at this moment.
    pub async fn until_true(&self, client: &Client, limit: Duration) {
        let (_, list) = client.get("/api/v1/tasks?limit=100").await;
        let all = list["items"].as_array().unwrap();
        eventually("a page shows what the database holds", limit, async || {
            let known = self.known.lock().unwrap();
            let shown = |task: &Value| {
                let known = known.tasks.get(task["id"].as_str().unwrap());
                known.is_some_and(|(revision, _)| *revision >= task["revision"].as_i64().unwrap())
            };
            all.iter().all(shown).then_some(())
        })
        .await;
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.reads.abort();
    }
}
