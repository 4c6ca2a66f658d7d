//! A reader that stands still before a real server, on a real socket: what it costs is bounded, however much changes, and
//! when it wakes up it hears why it was closed.
//!
//! `TASKBELL_TEST_LONG=1` lets it stand still for a whole minute, else for as long as it takes to be given up.

use super::crowd::{long, server};
use super::page::{keys, resident_bytes, store_of};
use crate::support::ground::Ground;
use crate::support::on_each_database;
use crate::support::server::Client;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use taskbell::core::principal::Role;
use tokio::net::TcpSocket;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

/// Tasks that change again and again.
const DIRTY: usize = 1_000;
/// Clicks of one request.
const BATCH: usize = 250;
/// Readers.
const READERS: usize = 10;
/// What all of them together may make the server grow by, bytes: a few times what the system keeps for them.
const GROWTH: u64 = 50 << 20;
/// How long one frame may wait, and time to get there.
const GIVEN_UP: Duration = Duration::from_secs(16);

on_each_database! {
    k5_readers_that_stand_still_cost_little_and_are_closed_with_4008
}

async fn k5_readers_that_stand_still_cost_little_and_are_closed_with_4008(ground: Arc<Ground>) {
    let server = server(ground, |spec| spec).await;
    let store = store_of(&server).await;
    let key = keys(store.as_ref(), 1, Role::Operator).await.pop().unwrap();
    let client = Client::new(&server.url(), &key);
    // What the first thousand tasks cost is no growth.
    touch(&client).await;
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(64 * 1024).unwrap();
        let stream = socket.connect(([127, 0, 0, 1], server.port()).into()).await.unwrap();
        let mut request = format!("ws://127.0.0.1:{}/api/v1/ws", server.port()).into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
        let (mut socket, _) = client_async(request, stream).await.unwrap();
        socket.send(Message::text(r#"{"t":"hello"}"#)).await.unwrap();
        // The welcome and the snapshot; after them it takes nothing.
        for kind in ["welcome", "snap"] {
            let frame = socket.next().await.unwrap().unwrap();
            assert!(frame.to_text().unwrap().contains(&format!(r#""t":"{kind}""#)), "{frame}");
        }
        readers.push(socket);
    }
    let (before, began) = (resident_bytes(&server), Instant::now());
    let stall = if long() { Duration::from_secs(60) } else { GIVEN_UP };
    let mut most = before;
    while began.elapsed() < stall {
        touch(&client).await;
        most = most.max(resident_bytes(&server));
    }
    assert!(most - before < GROWTH, "it grew by {} MiB", (most - before) >> 20);
    for mut reader in readers {
        let end = async {
            loop {
                match reader.next().await {
                    Some(Ok(Message::Close(close))) => return close.map(|close| u16::from(close.code)),
                    Some(Ok(_)) => {}
                    other => panic!("a close was to come, not {other:?}"),
                }
            }
        };
        let code = tokio::time::timeout(Duration::from_secs(30), end).await.expect("an end comes");
        assert_eq!(code, Some(4008));
    }
}

/// Makes so many tasks, cancels them and deletes them: each is told three times.
async fn touch(client: &Client) {
    for _ in 0..DIRTY / BATCH {
        let one = json!({"action": "noop", "runAt": "2100-01-01T00:00:00Z"});
        let (status, made) = client.post("/api/v1/tasks/batch", &json!({ "items": vec![one; BATCH] })).await;
        assert_eq!(status, 200, "{made}");
    }
    for act in ["cancel", "delete"] {
        let all = json!({"do": act, "filter": {"action": "noop"}});
        let (status, answer) = client.post("/api/v1/tasks/bulk", &all).await;
        assert_eq!((status, &answer["done"]), (200, &json!(DIRTY)), "{answer}");
    }
}
