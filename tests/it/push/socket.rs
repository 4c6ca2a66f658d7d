//! Push over real WebSockets of a real server process: the handshake, a task watched to its end, cut sockets, hostile bytes,
//! readers that stand still, the memory of idle sockets, and the end of the process.

use super::peer::item;
use crate::support::eventually;
use crate::support::server::{Client, Server, Spec};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

const LIMIT: Duration = Duration::from_secs(60);

/// A client of the socket.
struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    /// Connects; `bearer` proves who it is at once.
    async fn open(server: &Server, bearer: Option<&str>) -> Self {
        let bearer = bearer.map(|key| format!("Bearer {key}"));
        let headers: Vec<_> = bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
        Self::open_with(server, &headers).await
    }

    async fn open_with(server: &Server, more: &[(&'static str, &str)]) -> Self {
        let mut request = format!("ws://127.0.0.1:{}/api/v1/ws", server.port()).into_client_request().unwrap();
        let headers = request.headers_mut();
        headers.insert("sec-websocket-protocol", "taskbell.v1".parse().unwrap());
        for (name, value) in more {
            headers.insert(*name, value.parse().unwrap());
        }
        let (socket, answer) = connect_async(request).await.unwrap();
        assert_eq!(answer.headers()["sec-websocket-protocol"], "taskbell.v1");
        Self(socket)
    }

    /// Connects, says hello and takes the welcome.
    async fn enter(server: &Server, key: &str, have: Value) -> Self {
        let mut socket = Self::open(server, None).await;
        socket.send(json!({"t": "hello", "token": key, "have": have, "lang": "en"})).await;
        assert_eq!(socket.frame().await["t"], "welcome");
        socket
    }

    async fn send(&mut self, frame: Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    async fn message(&mut self) -> Option<Result<Message, Error>> {
        tokio::time::timeout(LIMIT, self.0.next()).await.expect("something comes in time")
    }

    async fn frame(&mut self) -> Value {
        match self.message().await {
            Some(Ok(Message::Text(text))) => serde_json::from_str(&text).unwrap(),
            other => panic!("a frame was to come, not {other:?}"),
        }
    }

    async fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let search = async {
            loop {
                let frame = self.frame().await;
                if wanted(&frame) {
                    return frame;
                }
            }
        };
        tokio::time::timeout(LIMIT, search).await.unwrap_or_else(|_| panic!("{what} comes in time"))
    }

    /// The close code; `None` when the connection ends without one.
    async fn close_code(&mut self) -> Option<u16> {
        loop {
            match self.message().await {
                Some(Ok(Message::Close(frame))) => return frame.map(|frame| frame.code.into()),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    }
}

/// Imports the shipped customers in steps with a pause between them, seconds.
async fn import(client: &Client, batch: u32, pause: f64) -> String {
    let params = json!({"batch": batch, "pause": pause});
    let task = client.submit(json!({"action": "import-customers", "params": params})).await;
    task["id"].as_str().unwrap().to_owned()
}

fn state<'a>(frame: &'a Value, id: &str) -> Option<&'a str> {
    item(frame, id)?["state"].as_str()
}

/// Resident memory of a process, KiB.
fn resident_kib(pid: u32) -> i64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim_end_matches("kB").trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p2_a_click_is_followed_to_its_end_with_progress_that_never_falls() {
    let server = Spec::demo().start().await;
    let client = server.client("alice", "user").await;
    let mut socket = Socket::open(&server, Some(&client.key)).await;
    socket.send(json!({"t": "hello", "token": null})).await;
    let welcome = socket.frame().await;
    assert_eq!((&welcome["t"], &welcome["pingMs"]), (&json!("welcome"), &json!(25_000)));
    let snap = socket.frame().await;
    assert_eq!((&snap["t"], &snap["items"], &snap["epoch"]), (&json!("snap"), &json!([]), &welcome["epoch"]));
    let id = import(&client, 200, 0.02).await;
    let (mut revision, mut current, mut told) = (-1, 0, 0);
    loop {
        let frame = socket.until("a change of the task", |frame| item(frame, &id).is_some()).await;
        let task = item(&frame, &id).unwrap();
        assert!(task["revision"].as_i64().unwrap() > revision, "revisions rise");
        assert!(task["progress"]["current"].as_i64().unwrap() >= current, "progress never falls");
        revision = task["revision"].as_i64().unwrap();
        current = task["progress"]["current"].as_i64().unwrap();
        told += 1;
        let percent = &task["progress"]["percent"];
        match task["state"].as_str().unwrap() {
            "succeeded" => break assert_eq!((current, percent), (20_000, &json!(100))),
            _ => assert!(*percent != 100, "100 only at the end"),
        }
    }
    assert!(told > 3, "progress came on the way");
    let counts = client.get("/api/v1/notifications").await.1["counts"].clone();
    assert_eq!(counts["unseen"], 1);
}

/// Proves: G8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k1_a_cut_socket_comes_back_to_the_true_state_without_another_event() {
    let server = Spec::demo().start().await;
    let client = server.client("alice", "user").await;
    let mut socket = Socket::enter(&server, &client.key, Value::Null).await;
    let snap = socket.frame().await;
    let have = json!({"epoch": snap["epoch"], "head": snap["head"]});
    drop(socket);
    let id = import(&client, 2_000, 0.0).await;
    client.until(&id, LIMIT, |task| task["state"] == "succeeded").await;
    let mut back = Socket::enter(&server, &client.key, have).await;
    let snap = back.frame().await;
    assert_eq!((state(&snap, &id), &snap["counts"]["unseen"]), (Some("succeeded"), &json!(1)));
    let mut again = Socket::enter(&server, &client.key, json!({"epoch": snap["epoch"], "head": snap["head"]})).await;
    assert_eq!(again.frame().await["t"], "same");
}

/// Proves: G8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k1_a_killed_server_comes_back_with_the_same_epoch_and_goes_on() {
    let mut server = Spec::demo().start().await;
    let client = server.client("alice", "user").await;
    let mut socket = Socket::enter(&server, &client.key, Value::Null).await;
    let epoch = socket.frame().await["epoch"].clone();
    let id = import(&client, 100, 0.02).await;
    socket
        .until("progress", |frame| item(frame, &id).is_some_and(|t| t["progress"]["current"].as_i64() > Some(0)))
        .await;
    server.kill().await;
    assert_eq!(socket.close_code().await, None, "a killed process says nothing");
    server.start_again().await;
    let mut back = Socket::enter(&server, &client.key, Value::Null).await;
    let snap = back.frame().await;
    assert_eq!((&snap["epoch"], state(&snap, &id)), (&epoch, Some("running")));
    back.until("the end", |frame| state(frame, &id) == Some("succeeded")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k10_hostile_bytes_end_in_an_error_or_a_close_and_the_node_lives() {
    let server = Spec::demo().start().await;
    let client = server.client("alice", "user").await;
    let not_utf8 = Frame::message(vec![0xff, 0xfe], OpCode::Data(Data::Text), true);
    let hostile = [
        Message::text("null"),
        Message::text("1e999"),
        Message::text(format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000))),
        Message::binary(vec![0; 10]),
        Message::Frame(not_utf8),
        Message::text(format!("\"{}\"", "x".repeat(40 * 1024))),
        Message::binary(vec![0; 1024 * 1024]),
    ];
    for message in hostile {
        for hello in [true, false] {
            let mut socket = match hello {
                true => Socket::enter(&server, &client.key, Value::Null).await,
                false => Socket::open(&server, None).await,
            };
            // The server may have closed before it was read to its end.
            let _ = socket.0.send(message.clone()).await;
            loop {
                match socket.message().await {
                    Some(Ok(Message::Text(text))) if text.contains("\"t\":\"err\"") => break,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                    Some(Ok(_)) => {}
                }
            }
        }
    }
    let mut socket = Socket::enter(&server, &client.key, Value::Null).await;
    assert_eq!(socket.frame().await["t"], "snap");
    assert_eq!(client.get("/api/v1/tasks").await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k5_sockets_that_never_read_cost_little_and_hold_up_nobody() {
    let server = Spec::demo().env("TASKBELL__PUSH__CONNECTIONS_PER_ADDRESS", "1000").start().await;
    let watched = server.client("alice", "user").await;
    let mut keys = Vec::new();
    for n in 0..10 {
        keys.push(server.client(&format!("olga{n}"), "operator").await.key);
    }
    let id = import(&watched, 100, 0.01).await;
    let before = resident_kib(server.pid());
    let mut still = Vec::new();
    for key in keys.iter().flat_map(|key| std::iter::repeat_n(key, 20)) {
        let mut socket = Socket::enter(&server, key, Value::Null).await;
        socket.send(json!({"t": "sub", "topic": format!("task:{id}")})).await;
        still.push(socket);
    }
    let mut healthy = Socket::enter(&server, &watched.key, Value::Null).await;
    healthy.until("the end", |frame| state(frame, &id) == Some("succeeded")).await;
    let grown = resident_kib(server.pid()) - before;
    assert!(grown < 50 * 1024, "200 sockets that stand still took {grown} KiB");
    let mut slow = still.pop().unwrap();
    slow.until("the end, for one that reads at last", |frame| state(frame, &id) == Some("succeeded")).await;
}

/// Proves: G10.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p9_sigterm_closes_every_socket_with_1012_and_the_process_ends() {
    let mut server = Spec::demo().env("TASKBELL__ENGINE__DRAIN_GRACE_MS", "5000").start().await;
    let client = server.client("alice", "user").await;
    let mut sockets = Vec::new();
    for _ in 0..10 {
        sockets.push(Socket::enter(&server, &client.key, Value::Null).await);
    }
    let mut silent = Socket::open(&server, None).await;
    let codes = tokio::spawn(async move {
        let mut codes = Vec::new();
        for socket in &mut sockets {
            codes.push(socket.close_code().await);
        }
        codes.push(silent.close_code().await);
        codes
    });
    let status = server.terminate().await;
    assert!(status.success(), "{status}");
    let codes = codes.await.unwrap();
    assert!(codes.iter().all(|code| *code == Some(1012)), "{codes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n5_sockets_that_vanish_without_a_close_leave_nothing_behind() {
    let server = Spec::demo().start().await;
    let client = server.client("alice", "user").await;
    // A user has 20 connections at most, so each round finds room only when those before it are forgotten.
    for _ in 0..5 {
        let mut sockets = Vec::new();
        for _ in 0..20 {
            let room = async || {
                let mut socket = Socket::open(&server, Some(&client.key)).await;
                socket.send(json!({"t": "hello"})).await;
                (socket.frame().await["t"] == "welcome").then_some(socket)
            };
            sockets.push(eventually("room for one more", LIMIT, room).await);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s4_a_sign_out_ends_the_sockets_of_the_session_and_no_others() {
    let server = Spec::demo().start().await;
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let origin = server.url();
    let post = |path: &str, cookie: &str, body: String| {
        let request = http.post(format!("{origin}{path}")).header("origin", &origin).header("cookie", cookie);
        request.header("content-type", "application/x-www-form-urlencoded").body(body).send()
    };
    let mut sockets = Vec::new();
    let mut cookies = Vec::new();
    for _ in 0..2 {
        let answer = post("/login", "", "user=user&password=".into()).await.unwrap();
        let set = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
        let cookie = set.split(';').next().unwrap().to_owned();
        let mut socket = Socket::open_with(&server, &[("cookie", &cookie), ("origin", &origin)]).await;
        socket.send(json!({"t": "hello"})).await;
        socket.until("the snapshot", |frame| frame["t"] == "snap").await;
        sockets.push(socket);
        cookies.push(cookie);
    }
    let secret = cookies[0].split('=').nth(1).unwrap();
    let body = format!("csrf={}", taskbell::web::auth::csrf_token(secret));
    let answer = post("/logout", &cookies[0], body).await.unwrap();
    assert_eq!(answer.headers()["location"], "/login");
    assert_eq!(sockets[0].close_code().await, Some(4001));
    sockets[1].send(json!({"t": "sync"})).await;
    sockets[1].until("the answer", |frame| frame["t"] == "snap").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_is_followed_live_and_without_gaps() {
    let server = Spec::demo().start().await;
    let client = server.client("alice", "user").await;
    let mut socket = Socket::enter(&server, &client.key, Value::Null).await;
    let task = client.submit(json!({"action": "clean-contacts", "params": {"count": 2_000, "pause": 0.05}})).await;
    let id = task["id"].as_str().unwrap();
    socket.send(json!({"t": "sub", "topic": format!("task:{id}")})).await;
    client.until(id, LIMIT, |task| task["state"] == "succeeded").await;
    let path = format!("/api/v1/tasks/{id}/logs?limit=200");
    let (_, log) = client.get(&path).await;
    let newest = log["items"].as_array().unwrap().last().expect("it wrote lines")["seq"].as_i64().unwrap();
    let mut next = 1;
    while next <= newest {
        let frame = socket.until("more lines", |frame| frame["t"] == "log").await;
        for line in frame["lines"].as_array().unwrap() {
            assert_eq!(line["seq"], next);
            next += 1;
        }
    }
}
