//! T7b: SIGTERM under load, again and again, with sockets open, connections that never said anything and requests that were
//! never sent to their end, and a second signal at once. The process ends in time, nobody is left without a word, no attempt
//! is used up, and nothing that was accepted is lost or done twice.
//!
//! `TASKBELL_TEST_LONG=1` runs 30 drains on each database and holds them to ten seconds; else it is two.

use crate::push::page::{keys, store_of};
use crate::support::ground::Ground;
use crate::support::server::{Client, Server, Spec, terminate};
use crate::support::socket::Socket;
use crate::support::{eventually, on_each_database};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use taskbell::core::principal::Role;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const END: Duration = Duration::from_secs(180);
const SOCKETS_OF_ONE: usize = 20;
const USERS: usize = 10;
const ODD_CONNECTIONS: usize = 10;
const GRACE_MS: &str = "8000";
/// The second signal comes so long after the first.
const SECOND: Duration = Duration::from_millis(10);

fn long() -> bool {
    std::env::var("TASKBELL_TEST_LONG").is_ok_and(|v| v == "1")
}

on_each_database! {
    o1_o3_o6_thirty_drains_under_load_end_in_time_and_use_no_attempt
    who_has_half_sent_a_request_holds_up_no_drain_and_who_goes_on_sending_is_answered
}

async fn o1_o3_o6_thirty_drains_under_load_end_in_time_and_use_no_attempt(ground: Arc<Ground>) {
    let (rounds, most) = if long() { (30, Duration::from_secs(10)) } else { (2, Duration::from_secs(40)) };
    let mut server = Spec::demo()
        .env("TASKBELL__ENGINE__DRAIN_GRACE_MS", GRACE_MS)
        // A busy machine takes nobody's lease: whatever is lost was lost by a drain.
        .env("TASKBELL__ENGINE__LEASE_MS", "60000")
        .env("TASKBELL__PUSH__CONNECTIONS_PER_ADDRESS", "1000")
        .start_on(ground)
        .await;
    let store = store_of(&server).await;
    let keys = keys(store.as_ref(), USERS, Role::User).await;
    let client = Client::new(&server.url(), &keys[0]);
    let params = json!({"batch": if long() { 50 } else { 500 }, "pause": 0.4});
    let import = client.submit(json!({"action": "import-customers", "params": params})).await;
    let import = import["id"].as_str().unwrap().to_owned();
    let (url, mut accepted, mut took) = (server.url(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let sockets = sockets(&server, &keys).await;
        let odd = odd_connections(&server, &keys[0], round % 2 == 0).await;
        let over = AtomicBool::new(false);
        let drain = async {
            tokio::time::sleep(Duration::from_millis(1_000)).await;
            let (pid, began) = (server.pid(), Instant::now());
            let again = tokio::spawn(async move {
                tokio::time::sleep(SECOND).await;
                terminate(pid).await;
            });
            let status = server.terminate().await;
            let took = began.elapsed();
            over.store(true, Ordering::SeqCst);
            again.await.unwrap();
            assert!(status.success(), "a second signal changes nothing: {status}");
            took
        };
        let clicking = click(&url, &keys, round, &over);
        let closed = join_all(sockets.into_iter().map(async |mut socket| socket.close_code().await));
        let cut = join_all(odd.into_iter().map(ends));
        let (ended_after, new, codes, _) = tokio::join!(drain, clicking, closed, cut);
        assert!(ended_after <= most, "the drain took {ended_after:?}, the grace is {GRACE_MS} ms");
        assert_eq!(codes.len(), USERS * SOCKETS_OF_ONE);
        assert!(codes.iter().all(|code| [1001, 1012].contains(code)), "{codes:?}");
        took.push(ended_after);
        accepted.extend(new);
        server.start_again().await;
    }
    took.sort();
    eprintln!(
        "{rounds} drains: median {:?}, longest {:?}; {} clicks",
        took[rounds / 2],
        took[rounds - 1],
        accepted.len()
    );
    assert!(!accepted.is_empty());
    for (client, body) in accepted {
        // Whether it was accepted before the end or not: the same key is the same task.
        let (status, task) = client.post("/api/v1/tasks", &body).await;
        assert!(status == 200 || status == 201, "{status}: {task}");
        assert_untouched(&client, task["id"].as_str().unwrap()).await;
    }
    assert_untouched(&client, &import).await;
    let sql = "SELECT COUNT(*) FROM customers UNION ALL SELECT MIN(times_written) FROM customers \
        UNION ALL SELECT MAX(times_written) FROM customers";
    assert_eq!(server.ground().numbers("data/taskbell.db", sql).await, [20_000, 1, 1]);
}

/// The grace is far longer than a test waits for the end of a process.
async fn who_has_half_sent_a_request_holds_up_no_drain_and_who_goes_on_sending_is_answered(ground: Arc<Ground>) {
    let mut server = Spec::demo().env("TASKBELL__ENGINE__DRAIN_GRACE_MS", "600000").start_on(ground).await;
    let key = server.client("user", "user").await.key;
    let mut odd = odd_connections(&server, &key, true).await;
    odd.extend(odd_connections(&server, &key, false).await);
    let mut slow = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    let body = json!({"action": "recalculate-totals", "runAt": "2100-01-01T00:00:00.000Z"}).to_string();
    let head = head(&server, &key, body.len());
    slow.write_all(format!("{head}\r\n\r\n").as_bytes()).await.unwrap();
    let sending = async {
        for byte in body.as_bytes() {
            slow.write_all(&[*byte]).await.unwrap();
            // All of it takes some times as long as a silence may.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let mut answer = String::new();
        slow.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let (status, answer, _) = tokio::join!(server.terminate(), sending, join_all(odd.into_iter().map(ends)));
    assert!(status.success(), "{status}");
    let answered = ["201", "503"].iter().any(|status| answer.starts_with(&format!("HTTP/1.1 {status} ")));
    assert!(answered, "{answer}");
}

/// It succeeds in its first attempt, and never was anybody's whose lease ran out.
async fn assert_untouched(client: &Client, id: &str) {
    let task = client.until(id, END, |task| task["state"] == "succeeded" || task["state"] == "failed").await;
    assert_eq!((&task["state"], &task["attempt"]), (&json!("succeeded"), &json!(1)), "{task}");
    let (_, events) = client.get(&format!("/api/v1/tasks/{id}/events?limit=200")).await;
    let lost = events["items"]
        .as_array()
        .unwrap()
        .iter()
        .any(|event| event["reason"].as_str().is_some_and(|why| why.starts_with("lease-lost")));
    assert!(!lost, "{events}");
}

async fn sockets(server: &Server, keys: &[String]) -> Vec<Socket> {
    let mut sockets = Vec::new();
    for key in keys {
        for _ in 0..SOCKETS_OF_ONE {
            // A busy server may send it away at first.
            let enters = async || {
                let mut socket = Socket::open(&server.url(), &[]).await;
                socket.say(json!({"t": "hello", "token": key, "have": null, "lang": "en"})).await;
                socket.is_welcomed().await.then_some(socket)
            };
            sockets.push(eventually("a socket is welcomed", END, enters).await);
        }
    }
    sockets
}

/// The head of a click but for its last line.
fn head(server: &Server, key: &str, bytes: usize) -> String {
    format!(
        "POST /api/v1/tasks HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {bytes}",
        server.port()
    )
}

/// Connections that never sent a byte, and as many whose request is missing its end: that of the head, or that of the body.
async fn odd_connections(server: &Server, key: &str, whole_head: bool) -> Vec<TcpStream> {
    let mut odd = Vec::new();
    let head = head(server, key, 1_000);
    for _ in 0..ODD_CONNECTIONS {
        odd.push(TcpStream::connect(("127.0.0.1", server.port())).await.unwrap());
        let mut half = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
        let end = if whole_head { "\r\n\r\n{" } else { "" };
        half.write_all(format!("{head}{end}").as_bytes()).await.unwrap();
        odd.push(half);
    }
    odd
}

/// The peer ends it, in whatever way.
async fn ends(mut stream: TcpStream) {
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(END, stream.read_to_end(&mut rest)).await.expect("the connection ends");
}

/// Clicks as different users until the server is gone; answers what may have been accepted: by whom, and with which body.
async fn click(url: &str, keys: &[String], round: usize, over: &AtomicBool) -> Vec<(Client, Value)> {
    let clients: Vec<Client> = keys.iter().map(|key| Client::new(url, key)).collect();
    let mut accepted = Vec::new();
    for n in 0.. {
        if over.load(Ordering::SeqCst) {
            break;
        }
        let params = json!({"count": 1000, "batch": 250, "pause": 0.2});
        let body = json!({"action": "clean-contacts", "params": params, "idempotencyKey": format!("{round}-{n}")});
        let client = &clients[n % clients.len()];
        match client.ask("/api/v1/tasks", &body).await {
            Err(e) if e.is_connect() => {}
            Ok((201, ..)) | Err(_) => accepted.push((client.clone(), body)),
            Ok((503, later, answer)) => assert!(later.is_some(), "{answer}"),
            Ok((status, _, answer)) => panic!("{status}: {answer}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    accepted
}
