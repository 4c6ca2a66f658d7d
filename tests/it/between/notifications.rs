//! Notifications of the database that are refused, and that get lost on the way.

use crate::support::eventually;
use crate::support::ground::Ground;
use crate::support::postgres::{self, Database};
use crate::support::server::Spec;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use taskbell::store::Store as _;
use taskbell::store::migrate::Mode;
use taskbell::store::postgres::{PostgresChannel, PostgresOptions, PostgresStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader, BufWriter};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

const SOON: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m2_twenty_refused_listens_leave_no_connection_behind() {
    let server = postgres::Server::start().await;
    let database = Database::empty_on(server.url()).await;
    let options = PostgresOptions { connections: 3, ..PostgresOptions::new(database.url()) };
    let store = PostgresStore::open(options.clone(), Mode::Apply, &mut |_, _, _| {}).await.unwrap();
    server.become_standby().await;
    let channel = PostgresChannel::new(options);
    for _ in 0..20 {
        let refused = channel.listen().await.expect_err("a standby refuses");
        assert!(refused.to_string().contains("LISTEN"), "{refused}");
    }
    let plain = async || tokio::join!(store.now(), store.now(), store.now());
    let (a, b, c) = eventually("three plain queries at once", SOON, async || {
        let all = plain().await;
        (all.0.is_ok() && all.1.is_ok() && all.2.is_ok()).then_some(all)
    })
    .await;
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    let sql = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    eventually("only those of the pool are left", SOON, async || {
        let (count,): (i64,) = sqlx::query_as(sql).fetch_one(&mut database.connect().await).await.unwrap();
        (count <= 3).then_some(())
    })
    .await;
    server.promote().await;
    let mut listener = channel.listen().await.unwrap();
    eventually("a word can be told again", SOON, async || channel.tell("here").await.ok()).await;
    assert_eq!(listener.next().await.unwrap(), "here");
}

/// Between a node and its database: passes everything on but notifications, as a transaction pooler does.
async fn proxy_that_swallows_notifications(server: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { continue };
            let ((mut from_client, to_client), (from_server, mut to_server)) =
                (client.into_split(), server.into_split());
            tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
            tokio::spawn(pass_all_but_notifications(from_server, to_client));
        }
    });
    port
}

async fn pass_all_but_notifications(from: OwnedReadHalf, to: OwnedWriteHalf) {
    let (mut from, mut to) = (BufReader::new(from), BufWriter::new(to));
    let mut head = [0; 5];
    // The answer to the question for TLS is a single byte, and here always no.
    loop {
        if from.read_exact(&mut head[..1]).await.is_err() {
            return;
        }
        if head[0] == b'N' && to.write_all(b"N").await.is_ok() && to.flush().await.is_ok() {
            break;
        }
    }
    while from.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length - 4];
        if from.read_exact(&mut body).await.is_err() {
            return;
        }
        if head[0] != b'A' && to.write_all(&[&head[..], &body].concat()).await.is_err() {
            return;
        }
        // Together what came together, and nothing is held back.
        if from.buffer().is_empty() && to.flush().await.is_err() {
            return;
        }
    }
}

/// Proves: G7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m12_a_node_that_hears_no_notifications_says_so_in_one_line_and_polls() {
    let ground = Arc::new(Ground::postgres().await);
    let database = ground.database().unwrap();
    let port = proxy_that_swallows_notifications(database.port()).await;
    let spec = Spec::demo().env("TASKBELL__DATABASE__URL", &database.url_by_port(port));
    let server = spec.env("TASKBELL__ENGINE__POLL_MS", "500").start_on(ground.clone()).await;
    let client = server.client("user", "user").await;
    let told = "notifications of the database do not arrive";
    eventually("it is told", SOON, async || server.said().contains(told).then_some(())).await;
    assert_eq!(client.get("/readyz").await.1["parts"]["wake"], "poll");
    // Not taken in by this node, so that nothing but its poll finds it.
    let elsewhere = Spec::demo().role("web").start_on(ground.clone()).await;
    let client = crate::support::server::Client::new(&elsewhere.url(), &client.key);
    let task = client.submit(json!({"action": "recalculate-totals"})).await;
    client.until(task["id"].as_str().unwrap(), SOON, |task| task["state"] != "queued").await;
    assert_eq!(server.said().matches(told).count(), 1, "{}", server.said());
}
