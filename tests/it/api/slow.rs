//! Clients that take their time: each is cut in the end, and until then costs the others little.

use crate::support::server::{Client, Server, Spec};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const SLOW: usize = 500;
/// A body has 30 s; the rest is for a busy machine.
const BODY_LIMIT: Duration = Duration::from_secs(60);

/// How long the slowest but one in a hundred of many requests took.
async fn p99(client: &Client) -> Duration {
    let mut took = Vec::new();
    for _ in 0..300 {
        let start = Instant::now();
        assert_eq!(client.get("/api/v1/tasks").await.0, 200);
        took.push(start.elapsed());
    }
    took.sort();
    took[took.len() - 3]
}

/// A request whose head, or whose body, does not come to its end.
async fn slow(server: &Server, key: &str, with_head: bool) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    let end = if with_head { "\r\n\r\n{" } else { "" };
    let head = format!(
        "POST /api/v1/tasks HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
         Content-Length: 100000{end}",
        server.port()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// Proves: G23.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s15_five_hundred_slow_clients_leave_the_others_alone_and_are_cut_in_the_end() {
    let server = Spec::demo().start().await;
    let client = server.client("alice", "user").await;
    p99(&client).await;
    let alone = p99(&client).await;
    let mut clients = Vec::new();
    for n in 0..SLOW {
        clients.push(slow(&server, &client.key, n % 2 == 0).await);
    }
    // One byte a second each, as long as it lives.
    let dripping: Vec<_> = clients
        .into_iter()
        .map(|stream| {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.into_split();
                let drip = tokio::spawn(async move {
                    while to.write_all(b" ").await.is_ok() {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                });
                let mut answer = Vec::new();
                // A reset is an end as well.
                let _ = tokio::time::timeout(BODY_LIMIT, from.read_to_end(&mut answer)).await.expect("it is cut");
                drip.abort();
                String::from_utf8(answer).unwrap()
            })
        })
        .collect();
    let beside = p99(&client).await;
    assert!(
        beside < alone * 10 + Duration::from_millis(250),
        "p99 was {alone:?} alone and {beside:?} beside {SLOW} slow ones"
    );
    let mut too_slow = 0;
    for answer in dripping {
        let answer = answer.await.unwrap();
        too_slow += usize::from(answer.contains(" 408 "));
        assert!(answer.is_empty() || answer.contains(" 408 "), "{answer}");
    }
    // A connection may be reset before its answer was read; of these few may be.
    assert!(too_slow >= SLOW / 2 * 9 / 10, "those whose head was whole are told: {too_slow}");
    assert_eq!(client.get("/api/v1/tasks").await.0, 200);
}
