//! A pooler in transaction mode before the server, as Debian's PgBouncer 1.18 comes: it gives a connection to somebody else
//! after each transaction, keeps no prepared statement apart, passes no notification on and refuses to be told settings.
//!
//! Only in the long form: its package is installed only for that.

use super::*;
use crate::store::invariants::assert_invariants;
use crate::store::storm::blow;
use crate::support::server::free_port;
use std::path::Path;
use std::process::Stdio;
use taskbell::store::Store;
use taskbell::store::migrate::Mode;
use taskbell::store::postgres::PostgresStore;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

const PROGRAM: &str = "/usr/sbin/pgbouncer";
/// Connections to the server, of all nodes together.
const SHARED: u32 = 6;

/// Starts one before the server of a database; its port. It ends with the process.
async fn start(ground: &Ground) -> (u16, Child) {
    assert!(Path::new(PROGRAM).exists(), "apt-get install pgbouncer, or run everything with tests/run");
    let (port, server) = (free_port(), url::Url::parse(&ground.database().unwrap().url()).unwrap());
    let password = server.password().unwrap();
    // It does not want to be root, and then has to read its file as somebody else.
    let folder = std::env::temp_dir().join(format!("taskbell-pooler-{port}"));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("pgbouncer.ini");
    let text = format!(
        "[databases]\n* = host=127.0.0.1 port={} user=taskbell password={password}\n\
         [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
         pool_mode = transaction\ndefault_pool_size = {SHARED}\nmax_client_conn = 200\nuser = nobody\n",
        server.port().unwrap()
    );
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let child = command.spawn().unwrap();
    let listens = async || TcpStream::connect(("127.0.0.1", port)).await.ok();
    eventually("the pooler listens", BACK, listens).await;
    std::fs::remove_dir_all(&folder).unwrap();
    (port, child)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m12_nodes_behind_a_pooler_in_transaction_mode_say_so_poll_and_lose_nothing() {
    if !long() {
        eprintln!("left to the long form: TASKBELL_TEST_LONG=1");
        return;
    }
    let ground = Arc::new(Ground::postgres().await);
    let (port, _pooler) = start(&ground).await;
    let node = || demo().env("TASKBELL__DATABASE__URL", &ground.database().unwrap().url_by_port(port));
    let nodes = [node().start_on(ground.clone()).await, node().start_on(ground.clone()).await];
    let first = nodes[0].client("user", "user").await;
    let clients = [first.clone(), Client::new(&nodes[1].url(), &first.key)];
    for (node, client) in nodes.iter().zip(&clients) {
        let told = "notifications of the database cannot be had";
        eventually("it is told", BACK, async || node.said().contains(told).then_some(())).await;
        assert_eq!(node.said().matches("a pooler stands before the database").count(), 1, "{}", node.said());
        assert_eq!(client.get("/readyz").await.1["parts"]["wake"], "poll");
    }
    let id = start_import(&first, 0.05).await;
    let clicked = clicks_during(&clients, async {
        for _ in 0..30 {
            // Each is found by a poll.
            let task = first.submit(json!({"action": "rebuild-index"})).await;
            first.until(task["id"].as_str().unwrap(), BACK, |task| task["state"] != "queued").await;
        }
    })
    .await;
    assert_eq!(clicked.refused, 0);
    clicked.assert_kept(&ground).await;
    assert_ends_exactly_once(&first, &ground, &id).await;
    for node in &nodes {
        assert!(!node.said().contains("prepared statement"), "{}", node.said());
    }
    assert_invariants(ground.open().await.as_ref()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_through_a_pooler_in_transaction_mode_hurts_no_caller_and_no_row() {
    if !long() {
        eprintln!("left to the long form: TASKBELL_TEST_LONG=1");
        return;
    }
    let ground = Ground::postgres().await;
    let (port, _pooler) = start(&ground).await;
    let mut nodes: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..4 {
        let options = postgres::options(&ground.database().unwrap().url_by_port(port));
        nodes.push(Arc::new(PostgresStore::open(options, Mode::Check, &mut |_, _, _| {}).await.unwrap()));
    }
    blow(nodes).await;
}
