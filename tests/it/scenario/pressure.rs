//! T10: more than a node can bear. Whoever asks too much is told to come again, memory does not grow, and what was accepted is
//! finished, and once. A log store that is locked, slow, silent or gone never fails or stops a task, and what it costs is
//! counted and shown in the log.
//!
//! `TASKBELL_TEST_LONG=1` runs the whole form: a minute each.

use crate::push::page::{keys, resident_bytes, store_of};
use crate::support::eventually;
use crate::support::ground::Ground;
use crate::support::proxy::Proxy;
use crate::support::server::{Client, Server, Spec};
use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use taskbell::core::principal::Role;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

const SOON: Duration = Duration::from_secs(60);
const END: Duration = Duration::from_secs(600);
/// Memory that a server may have, bytes.
const MOST_BYTES: u64 = 300 << 20;
const CLICKERS: usize = 24;
/// What a talking task says in each of its twenty chunks.
const LINES: i64 = 200;
const CHUNKS: i64 = 20;
const TALKERS: usize = 3;

const SCRIPTS: [(&str, &str); 3] = [
    ("noop", "export default () => ({ hasMore: false });\n"),
    (
        "talk",
        "export default (task, cx) => {
           const n = (cx.checkpoint?.n ?? 0) + 1;
           for (let i = 0; i < 200; i++) cx.log(`chunk ${n} line ${i}`);
           return n < 20 ? { hasMore: true, checkpoint: { n }, nextDelaySeconds: 0.2 } : { hasMore: false };
         };\n",
    ),
    (
        "flood",
        "export default (task, cx) => {
           const n = (cx.checkpoint?.n ?? 0) + 1;
           for (let i = 0; i < 500; i++) cx.log(`chunk ${n} line ${i} ${'x'.repeat(2000)}`);
           return n < task.params.chunks ? { hasMore: true, checkpoint: { n } } : { hasMore: false };
         };\n",
    ),
];

fn long() -> bool {
    std::env::var("TASKBELL_TEST_LONG").is_ok_and(|v| v == "1")
}

async fn server(ground: Arc<Ground>, logs: Option<&str>) -> Server {
    let mut config = String::new();
    for (key, text) in SCRIPTS {
        let script = ground.path().join(format!("{key}.js"));
        std::fs::write(&script, text).unwrap();
        config += &format!("[[actions]]\nkey = \"{key}\"\nhandler = {{ script = {script:?} }}\n");
    }
    let noop = ground.path().join("noop.js");
    config += &format!(
        "[[actions]]\nkey = \"keyed\"\nhandler = {{ script = {noop:?} }}\n\
         concurrency = {{ key = \"k:{{tenant}}\", limit = 1, policy = \"wait\", max_waiting = 20 }}\n"
    );
    let spec = Spec::with_config(&config);
    match logs {
        Some(url) => spec.env("TASKBELL__LOGS__URL", url),
        None => spec,
    }
    .start_on(ground)
    .await
}

/// Follows the memory of a server until it is dropped.
struct Memory {
    most: Arc<AtomicU64>,
    _looks: tokio_util::task::AbortOnDropHandle<()>,
}

impl Memory {
    fn of(server: &Server) -> Self {
        let (most, pid) = (Arc::new(AtomicU64::new(resident_bytes(server))), server.pid());
        let seen = most.clone();
        let looks = tokio::spawn(async move {
            loop {
                let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
                let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
                let kib: u64 = line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or_default();
                seen.fetch_max(kib * 1024, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        Self { most, _looks: tokio_util::task::AbortOnDropHandle::new(looks) }
    }

    fn assert_bounded(&self) -> u64 {
        let most = self.most.load(Ordering::Relaxed);
        assert!(most < MOST_BYTES, "{} MiB", most >> 20);
        most >> 20
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t10_under_more_than_a_node_can_bear_what_is_accepted_is_finished_and_the_rest_told_to_come_again() {
    let time = if long() { Duration::from_secs(60) } else { Duration::from_secs(4) };
    let server = server(Arc::new(Ground::sqlite().await), None).await;
    let store = store_of(&server).await;
    let keys = keys(store.as_ref(), CLICKERS, Role::User).await;
    let memory = Memory::of(&server);
    let answers = Arc::new(Mutex::new(BTreeMap::<u16, usize>::new()));
    let mut clicking = Vec::new();
    for (n, key) in keys.iter().enumerate() {
        let (client, answers) = (Client::new(&server.url(), key), answers.clone());
        clicking.push(tokio::spawn(async move {
            let (began, large) = (Instant::now(), "x".repeat(200_000));
            let mut accepted = Vec::new();
            let full = || answers.lock().unwrap().contains_key(&429);
            // On a slow machine it takes longer until the queue is full for the first time.
            while began.elapsed() < time || began.elapsed() < SOON && !full() {
                // A quarter of them with much to carry, the others behind one key.
                let body = match n % 4 {
                    0 => json!({"action": "noop", "params": {"text": large}}),
                    _ => json!({"action": "keyed"}),
                };
                let (status, later, answer) = client.try_post("/api/v1/tasks", &body).await;
                *answers.lock().unwrap().entry(status).or_default() += 1;
                match status {
                    201 => accepted.push(answer["id"].as_str().unwrap().to_owned()),
                    429 | 503 => assert!(later.is_some(), "{answer}"),
                    _ => panic!("{status}: {answer}"),
                }
            }
            accepted
        }));
    }
    let mut accepted = Vec::new();
    for clicker in clicking {
        accepted.extend(clicker.await.unwrap());
    }
    let answers = answers.lock().unwrap().clone();
    assert!(answers.contains_key(&429), "the queue behind the key is full at times: {answers:?}");
    let count = i64::try_from(accepted.len()).unwrap();
    let sql =
        "SELECT COUNT(*) FROM taskbell_tasks UNION ALL SELECT COUNT(*) FROM taskbell_tasks WHERE state = 'succeeded'";
    eventually("what was accepted is finished, and nothing else is there", END, async || {
        (server.ground().numbers("data/taskbell.db", sql).await == [count, count]).then_some(())
    })
    .await;
    println!("{answers:?}, {} MiB at most", memory.assert_bounded());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t10_large_bodies_that_do_not_end_fill_their_room_and_no_more() {
    let server = server(Arc::new(Ground::sqlite().await), None).await;
    let client = server.client("alice", "user").await;
    let memory = Memory::of(&server);
    let large = json!({"action": "noop", "params": {"text": "x".repeat(200_000)}});
    let mut open = Vec::new();
    // Together more than a node holds of bodies.
    for _ in 0..300 {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
        let head = format!(
            "POST /api/v1/tasks HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: 250000\r\n\r\n",
            server.port(),
            client.key
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&[b' '; 200_000]).await.unwrap();
        open.push(stream);
    }
    let full = async || {
        let (status, later, answer) = client.try_post("/api/v1/tasks", &large).await;
        (status == 503).then_some((later, answer))
    };
    let (later, answer) = eventually("a large body finds no room", SOON, full).await;
    assert!(later.is_some() && answer["code"] == "busy", "{answer}");
    assert_eq!(client.get("/api/v1/tasks").await.0, 200, "who brings nothing is answered");
    memory.assert_bounded();
    drop(open);
    let room = async || (client.try_post("/api/v1/tasks", &large).await.0 == 201).then_some(());
    eventually("there is room again", SOON, room).await;
}

/// Starts tasks that talk much.
async fn talkers(client: &Client, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(client.submit(json!({"action": "talk"})).await["id"].as_str().unwrap().to_owned());
    }
    ids
}

/// They end well in their first attempt, whatever the log store does.
async fn assert_end_well(client: &Client, ids: &[String]) {
    for id in ids {
        let task = client.until(id, SOON, |task| task["state"] == "succeeded" || task["state"] == "failed").await;
        assert_eq!((&task["state"], &task["attempt"]), (&json!("succeeded"), &json!(1)), "{task}");
    }
}

/// What is kept of a log, and what is told to be missing.
async fn kept(client: &Client, id: &str) -> (i64, i64) {
    let (mut count, mut after) = (0, 0);
    loop {
        let (status, page): (u16, Value) = client.get(&format!("/api/v1/tasks/{id}/logs?after={after}")).await;
        if status != 200 {
            return (0, 0);
        }
        count += page["items"].as_array().unwrap().len();
        match page["next"].as_i64() {
            Some(next) => after = next,
            None => return (i64::try_from(count).unwrap(), page["dropped"].as_i64().unwrap()),
        }
    }
}

/// Every line is kept, or counted as missing. Answers how many are missing.
async fn assert_counted(client: &Client, ids: &[String], lines: i64) -> i64 {
    let mut missing = 0;
    for id in ids {
        missing += eventually("each line is kept or counted", SOON, async || {
            let (kept, dropped) = kept(client, id).await;
            (kept + dropped == lines).then_some(dropped)
        })
        .await;
    }
    missing
}

async fn log_file(server: &Server) -> SqliteConnection {
    SqliteConnectOptions::new().filename(server.folder().join("data/taskbell-logs.db")).connect().await.unwrap()
}

async fn say(connection: &mut SqliteConnection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(connection).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t10_a_log_file_that_is_locked_or_slow_stops_no_task_and_the_gap_is_counted() {
    let (locked, slow) = if long() { (60, 12) } else { (8, 1) };
    let server = server(Arc::new(Ground::sqlite().await), None).await;
    let client = server.client("alice", "user").await;
    let mut file = log_file(&server).await;
    say(&mut file, "BEGIN IMMEDIATE").await;
    let began = Instant::now();
    let mut ids = talkers(&client, TALKERS).await;
    assert_end_well(&client, &ids).await;
    while began.elapsed() < Duration::from_secs(locked) {
        let more = talkers(&client, TALKERS).await;
        assert_end_well(&client, &more).await;
        ids.extend(more);
    }
    say(&mut file, "COMMIT").await;
    let missing = assert_counted(&client, &ids, LINES * CHUNKS).await;
    assert!(missing > 0, "more was said than waits for a store");

    let slow_ids = talkers(&client, TALKERS).await;
    for _ in 0..slow {
        say(&mut file, "BEGIN IMMEDIATE").await;
        tokio::time::sleep(Duration::from_millis(4_500)).await;
        say(&mut file, "COMMIT").await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_end_well(&client, &slow_ids).await;
    let slow_missing = assert_counted(&client, &slow_ids, LINES * CHUNKS).await;
    let whole: String = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut file).await.unwrap();
    assert_eq!(whole, "ok");
    file.close().await.unwrap();
    println!("{} tasks: {missing} lines missing while locked, {slow_missing} while slow", ids.len() + slow_ids.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t10_a_log_server_that_is_silent_or_gone_stops_no_task_and_the_gap_is_counted() {
    let time = if long() { Duration::from_secs(60) } else { Duration::from_secs(5) };
    let (ground, logs) = (Arc::new(Ground::postgres().await), Ground::postgres().await);
    let database = logs.database().unwrap();
    let proxy = Proxy::before(database.port()).await;
    let server = server(ground, Some(&database.url_by_port(proxy.port()))).await;
    let client = server.client("alice", "user").await;
    for (trouble, name) in [(Proxy::stall as fn(&Proxy), "silent"), (Proxy::cut, "gone")] {
        trouble(&proxy);
        let began = Instant::now();
        let mut ids = talkers(&client, TALKERS).await;
        assert_end_well(&client, &ids).await;
        while began.elapsed() < time {
            let more = talkers(&client, TALKERS).await;
            assert_end_well(&client, &more).await;
            ids.extend(more);
        }
        client.until_any("/readyz", SOON, |ready| ready["parts"]["logs"] == "down").await;
        assert_eq!(client.get("/readyz").await.0, 200, "a node works without its log store");
        proxy.mend();
        let missing = assert_counted(&client, &ids, LINES * CHUNKS).await;
        assert!(missing > 0, "more was said than waits for a store");
        println!("{name}: {missing} lines of {} tasks missing", ids.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t10_a_task_that_floods_its_log_costs_its_neighbours_no_line_and_the_node_no_memory() {
    // All lines of one talker have room, however slow the store is; with more it has to keep up.
    let (chunks, neighbours) = if long() { (600, TALKERS) } else { (40, 1) };
    let server = server(Arc::new(Ground::sqlite().await), None).await;
    let client = server.client("alice", "user").await;
    let memory = Memory::of(&server);
    let began = Instant::now();
    let flood = client.submit(json!({"action": "flood", "params": {"chunks": chunks}})).await;
    let flood = flood["id"].as_str().unwrap().to_owned();
    let ids = talkers(&client, neighbours).await;
    assert_end_well(&client, &ids).await;
    let task = client.until(&flood, END, |task| task["state"] == "succeeded" || task["state"] == "failed").await;
    assert_eq!(task["state"], "succeeded", "{task}");
    let rate = chunks as f64 / began.elapsed().as_secs_f64();
    assert_eq!(assert_counted(&client, &ids, LINES * CHUNKS).await, 0, "the neighbours keep their lines");
    let missing = assert_counted(&client, &[flood], 500 * chunks).await;
    println!("{rate:.1} MB/s, {missing} lines missing of {}, {} MiB at most", 500 * chunks, memory.assert_bounded());
}
