//! What an application may ask of a real server while its chunk runs, and that it may not a moment later.

use super::SECRET;
use crate::support::ground::Ground;
use crate::support::server::{Client, Server, Spec};
use axum::Json;
use axum::Router;
use axum::extract::State;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

const LIMIT: Duration = Duration::from_secs(20);

type Call = (Value, oneshot::Sender<Value>);

/// An application that does with each chunk what the test tells it.
struct App {
    address: SocketAddr,
    calls: mpsc::Receiver<Call>,
    _serving: AbortOnDropHandle<()>,
}

impl App {
    async fn start() -> Self {
        async fn run(State(calls): State<mpsc::Sender<Call>>, Json(chunk): Json<Value>) -> Json<Value> {
            let (answer, answered) = oneshot::channel();
            calls.send((chunk, answer)).await.unwrap();
            Json(answered.await.unwrap_or_default())
        }
        let (sender, calls) = mpsc::channel(8);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new().route("/run", axum::routing::post(run)).with_state(sender);
        let serving = tokio::spawn(async move { axum_serve(listener, app).await });
        Self { address, calls, _serving: AbortOnDropHandle::new(serving) }
    }

    /// The next chunk that the server sends.
    async fn chunk(&mut self) -> Chunk {
        let next = tokio::time::timeout(LIMIT, self.calls.recv()).await.expect("a chunk is sent");
        let (chunk, answer) = next.unwrap();
        let (url, token) = (chunk["callback"]["url"].clone(), chunk["callback"]["token"].clone());
        let text = |value: Value| value.as_str().unwrap().to_owned();
        Chunk { told: chunk, answer: Some(answer), url: text(url), token: text(token), http: reqwest::Client::new() }
    }

    /// Runs on a database that several nodes share: one with pages and no engine, one with an engine and no pages.
    async fn nodes(&self) -> (Server, Server) {
        let ground = Arc::new(Ground::postgres().await);
        let config = Spec::with_config(&self.config(""));
        let web = config.clone().role("web").start_on(ground.clone()).await;
        (web, config.role("work").start_on(ground).await)
    }

    fn config(&self, more: &str) -> String {
        let address = self.address;
        format!(
            "[outbound]\nallow = [\"{address}\"]\n[[actions]]\nkey = \"import\"\n\
             handler = {{ http = \"http://{address}/run\", secret = \"{SECRET}\" }}\n{more}"
        )
    }
}

async fn axum_serve(listener: TcpListener, app: Router) {
    taskbell::web::server::serve(listener, app, tokio_util::sync::CancellationToken::new(), LIMIT).await;
}

/// A chunk under way at the application.
struct Chunk {
    told: Value,
    answer: Option<oneshot::Sender<Value>>,
    url: String,
    token: String,
    http: reqwest::Client,
}

impl Chunk {
    async fn get(&self, path: &str) -> (u16, Value) {
        self.send(self.http.get(format!("{}{path}", self.url))).await
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.send(self.http.post(format!("{}{path}", self.url)).json(&body)).await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> (u16, Value) {
        let answer = request.bearer_auth(&self.token).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    fn answer(&mut self, outcome: Value) {
        self.answer.take().unwrap().send(outcome).unwrap();
    }

    /// Every callback is refused as by nobody.
    async fn is_dead(&self) {
        for (status, body) in [
            self.get("/lease").await,
            self.get("/files/x").await,
            self.post("/progress", json!({"current": 1})).await,
            self.post("/log", json!({"lines": ["late"]})).await,
            self.send(self.http.post(format!("{}/artifacts?name=a", self.url)).body("late")).await,
        ] {
            assert_eq!((status, &body["code"]), (401, &json!("unauthenticated")), "{body}");
        }
    }
}

async fn start(more: &str) -> (App, Server, Client) {
    let app = App::start().await;
    let server = Spec::with_config(&app.config(more)).start().await;
    let client = server.client("alice", "user").await;
    (app, server, client)
}

/// Proves: G17.
#[tokio::test]
async fn while_its_chunk_runs_an_application_reports_logs_reads_and_keeps_files_and_then_no_more() {
    let (mut app, _server, client) = start("").await;
    let file = client.upload("rows.csv", b"a;b\n1;2\n".to_vec()).await;
    let task = client.submit(json!({"action": "import", "params": {"file": file}})).await;
    let id = task["id"].as_str().unwrap().to_owned();
    let mut first = app.chunk().await;
    assert_eq!((&first.told["task"]["id"], &first.told["chunk"]), (&task["id"], &json!(1)));
    assert_eq!(first.get("/lease").await, (200, json!({"current": true, "stopRequested": false})));
    for n in 0..200 {
        assert_eq!(first.post("/progress", json!({"current": n, "total": 400, "unit": "rows"})).await.0, 204);
    }
    client.until(&id, LIMIT, |task| task["progress"]["current"] == 199 && task["progress"]["total"] == 400).await;
    let lines = json!({"lines": ["plain", {"level": "warn", "message": "levelled"}]});
    assert_eq!(first.post("/log", lines).await.0, 204);
    let logs = format!("/api/v1/tasks/{id}/logs");
    let told = client.until_any(&logs, LIMIT, |page| page["items"].as_array().is_some_and(|i| i.len() == 2)).await;
    let shown = |i: usize| format!("{} {}", told["items"][i]["level"], told["items"][i]["message"]);
    assert_eq!((shown(0).as_str(), shown(1).as_str()), ("\"info\" \"plain\"", "\"warn\" \"levelled\""));
    let read = first.http.get(format!("{}/files/{file}", first.url)).bearer_auth(&first.token).send().await.unwrap();
    assert_eq!(read.text().await.unwrap(), "a;b\n1;2\n");
    assert_eq!(first.get("/files/01932b6e-7a00-7000-8000-000000000009").await.0, 404);
    let keep = first.http.post(format!("{}/artifacts?name=report.txt", first.url)).body("all well");
    let (status, kept) = first.send(keep.header("content-type", "text/plain")).await;
    assert_eq!((status, &kept["name"], &kept["size"]), (201, &json!("report.txt"), &json!(8)));
    first.answer(json!({"hasMore": true, "checkpoint": {"n": 1}}));

    let mut second = app.chunk().await;
    assert_eq!((&second.told["chunk"], &second.told["checkpoint"]), (&json!(2), &json!({"n": 1})));
    assert_eq!(second.get("/lease").await.0, 200);
    first.is_dead().await;
    second.answer(json!({"hasMore": false, "current": 400}));
    let task = client.until(&id, LIMIT, |task| task["state"] == "succeeded").await;
    second.is_dead().await;
    assert_eq!(task["artifacts"][0]["name"], "report.txt");
    let (status, _) = client.get(&format!("/api/v1/artifacts/{}", task["artifacts"][0]["id"].as_str().unwrap())).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn a_stop_is_told_through_the_lease_and_what_was_reached_counts() {
    let (mut app, _server, client) = start("").await;
    let task = client.submit(json!({"action": "import"})).await;
    let id = task["id"].as_str().unwrap();
    let mut chunk = app.chunk().await;
    assert_eq!(client.post(&format!("/api/v1/tasks/{id}/cancel"), &json!({})).await.0, 202);
    assert_eq!(chunk.get("/lease").await, (200, json!({"current": true, "stopRequested": true})));
    chunk.answer(json!({"hasMore": true, "checkpoint": {"n": 5}, "current": 5}));
    let ended = client.until(id, LIMIT, |task| task["state"] == "cancelled").await;
    assert_eq!(ended["progress"]["current"], 5);
    chunk.is_dead().await;
}

/// Proves: G17.
#[tokio::test]
async fn a_chunk_that_does_not_answer_is_dropped_and_its_token_dies_with_it() {
    let (mut app, _server, client) =
        start("chunk_timeout = \"300ms\"\nretry = { max_attempts = 2, base = \"1ms\", cap = \"1ms\" }\n").await;
    let task = client.submit(json!({"action": "import"})).await;
    let silent = app.chunk().await;
    let mut again = app.chunk().await;
    assert_eq!((&again.told["chunk"], &again.told["attempt"]), (&json!(1), &json!(2)));
    assert!(again.told["fencingToken"].as_i64() > silent.told["fencingToken"].as_i64());
    assert_eq!(again.told["lastError"], "timeout");
    silent.is_dead().await;
    again.answer(json!({"hasMore": false}));
    client.until(task["id"].as_str().unwrap(), LIMIT, |task| task["state"] == "succeeded").await;
}

/// Proves: G17.
#[tokio::test]
async fn any_node_answers_whichever_runs_the_chunk() {
    let mut app = App::start().await;
    let (web, work) = app.nodes().await;
    let client = web.client("alice", "user").await;
    let task = client.submit(json!({"action": "import"})).await;
    let id = task["id"].as_str().unwrap();
    let mut chunk = app.chunk().await;
    assert_eq!(chunk.url, format!("{}/api/v1/callback", work.url()), "without a public address it is that of the node");
    for (node, current) in [(&web, 3), (&work, 5)] {
        chunk.url = format!("{}/api/v1/callback", node.url());
        assert_eq!(chunk.get("/lease").await, (200, json!({"current": true, "stopRequested": false})));
        assert_eq!(chunk.post("/progress", json!({"current": current})).await.0, 204);
        client.until(id, LIMIT, |task| task["progress"]["current"] == current).await;
    }
    assert_eq!(client.post(&format!("/api/v1/tasks/{id}/pause"), &json!({})).await.0, 202);
    for node in [&web, &work] {
        chunk.url = format!("{}/api/v1/callback", node.url());
        assert_eq!(chunk.get("/lease").await.1["stopRequested"], true);
    }
    chunk.answer(json!({"hasMore": true, "checkpoint": 1}));
    client.until(id, LIMIT, |task| task["state"] == "paused").await;
    for node in [&web, &work] {
        chunk.url = format!("{}/api/v1/callback", node.url());
        chunk.is_dead().await;
    }
}

#[tokio::test]
async fn no_other_token_opens_a_callback_and_a_callback_token_opens_nothing_else() {
    let (mut app, server, client) = start("").await;
    client.submit(json!({"action": "import"})).await;
    let mut chunk = app.chunk().await;
    let good = chunk.token.clone();
    let parts: Vec<&str> = good.splitn(6, '.').collect();
    let changed = |at: usize, to: &str| {
        let mut parts = parts.clone();
        parts[at] = to;
        parts.join(".")
    };
    let fakes =
        [String::new(), "tbc_".into(), client.key.clone(), changed(1, "99"), changed(2, "2"), changed(5, "other")];
    for fake in fakes {
        chunk.token = fake;
        chunk.is_dead().await;
    }
    chunk.token = good.clone();
    assert_eq!(chunk.get("/lease").await.0, 200);
    let intruder = Client::new(&server.url(), &good);
    assert_eq!(intruder.get("/api/v1/tasks").await.0, 401);
    assert_eq!(intruder.post("/api/v1/tasks", &json!({"action": "import"})).await.0, 401);
    let unknown = chunk.post("/progress", json!({"current": -1, "percent": 5})).await;
    let told = unknown.1["errors"].to_string();
    assert!(unknown.0 == 422 && told.contains("current") && told.contains("percent"), "{told}");
    assert_eq!(chunk.post("/log", json!({"lines": [1]})).await.0, 422);
    chunk.answer(json!({"hasMore": false}));
    assert!(!server.said().contains(SECRET) && !server.said().contains(&good), "no secret in the log");
}
