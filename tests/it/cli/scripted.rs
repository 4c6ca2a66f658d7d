//! A server that answers the client of the command line from a script, and keeps what it was sent.

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One move of the server in the life of a socket.
pub enum Move {
    /// Send a frame.
    Send(Value),
    /// Wait for a frame of this kind; anything else is a fault of the client.
    Expect(&'static str),
    /// Wait for this frame.
    ExpectThis(Value),
    /// From now on the API gives this task.
    Task(Value),
    /// Close with a code.
    Close(u16),
}

/// What the server knows and what it was sent.
#[derive(Default)]
pub struct Script {
    /// The task that the API gives.
    pub task: Value,
    /// The refusal of every call, when there is one.
    pub refusal: Option<(u16, Value)>,
    /// The lines of the log.
    pub log: Vec<Value>,
    /// The lives of sockets, first to last; a further socket is closed with 1012.
    pub sockets: VecDeque<Vec<Move>>,
    /// What was sent: method and path → headers and body.
    pub sent: Vec<(String, HeaderMap, Vec<u8>)>,
    /// What the client did that it must not do.
    pub faults: Vec<String>,
}

/// A running server.
#[derive(Clone)]
pub struct Server {
    /// Its address.
    pub url: String,
    script: Arc<Mutex<Script>>,
}

impl Server {
    /// Starts a server on a free port of this machine.
    pub async fn start(script: Script) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Self { url, script: Arc::new(Mutex::new(script)) };
        let router = Router::new()
            .route("/api/v1/tasks", post(submit))
            .route("/api/v1/tasks/{id}", get(task))
            .route("/api/v1/tasks/{id}/logs", get(logs))
            .route("/api/v1/uploads", post(upload))
            .route("/api/v1/ws", get(socket))
            .with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        server
    }

    /// Looks at the script.
    pub fn with<T>(&self, look: impl FnOnce(&mut Script) -> T) -> T {
        look(&mut self.script.lock().unwrap())
    }

    fn take(&self, what: String, headers: HeaderMap, body: &[u8]) -> Option<Response> {
        self.with(|script| {
            script.sent.push((what, headers, body.to_vec()));
            let (status, problem) = script.refusal.clone()?;
            Some((StatusCode::from_u16(status).unwrap(), Json(problem)).into_response())
        })
    }
}

async fn submit(State(server): State<Server>, headers: HeaderMap, body: Bytes) -> Response {
    let refused = server.take("POST tasks".to_owned(), headers, &body);
    refused.unwrap_or_else(|| (StatusCode::CREATED, Json(server.with(|script| script.task.clone()))).into_response())
}

async fn upload(State(server): State<Server>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let refused = server.take(format!("POST uploads?{}", uri.query().unwrap_or_default()), headers, &body);
    refused.unwrap_or_else(|| (StatusCode::CREATED, Json(json!({"id": "f1", "name": "x", "size": 1}))).into_response())
}

async fn task(State(server): State<Server>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    let refused = server.take(format!("GET tasks/{id}"), headers, &[]);
    refused.unwrap_or_else(|| Json(server.with(|script| script.task.clone())).into_response())
}

async fn logs(State(server): State<Server>, Query(query): Query<HashMap<String, String>>) -> Json<Value> {
    let after: i64 = query["after"].parse().unwrap();
    let items: Vec<Value> =
        server.with(|script| script.log.iter().filter(|line| line["seq"].as_i64() > Some(after)).cloned().collect());
    Json(json!({"items": items, "next": null, "dropped": 0}))
}

async fn socket(State(server): State<Server>, headers: HeaderMap, upgrade: WebSocketUpgrade) -> Response {
    server.take("GET ws".to_owned(), headers, &[]);
    let moves = server.with(|script| script.sockets.pop_front()).unwrap_or_else(|| vec![Move::Close(1012)]);
    upgrade.protocols(["taskbell.v1"]).on_upgrade(move |socket| play(server, socket, moves))
}

/// The next frame; the end of the connection as a text.
async fn receive(socket: &mut WebSocket) -> Value {
    match tokio::time::timeout(Duration::from_secs(10), socket.recv()).await {
        Ok(Some(Ok(Message::Text(text)))) => serde_json::from_str(&text).unwrap_or_default(),
        other => Value::String(format!("{other:?}")),
    }
}

async fn play(server: Server, mut socket: WebSocket, moves: Vec<Move>) {
    for next in moves {
        match next {
            Move::Send(frame) => {
                if socket.send(Message::text(frame.to_string())).await.is_err() {
                    return;
                }
            }
            Move::Expect(kind) => {
                let got = receive(&mut socket).await;
                if got["t"] != kind {
                    server.with(|script| script.faults.push(format!("expected {kind}, got {got}")));
                }
            }
            Move::ExpectThis(frame) => {
                let got = receive(&mut socket).await;
                if got != frame {
                    server.with(|script| script.faults.push(format!("expected {frame}, got {got}")));
                }
            }
            Move::Task(task) => server.with(|script| script.task = task),
            Move::Close(code) => {
                // A client that has left already needs no farewell.
                let _ = socket.send(Message::Close(Some(CloseFrame { code, reason: "".into() }))).await;
            }
        }
    }
    // The life ends as a cut: the stream is dropped, or the client has said farewell.
    if let Ok(Some(Ok(Message::Close(_)))) = tokio::time::timeout(Duration::from_millis(200), socket.recv()).await {}
}
