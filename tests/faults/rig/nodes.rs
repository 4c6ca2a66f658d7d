//! Nodes of one database, their clicks, and what is checked when all is over.

use super::PATIENCE;
use super::ledger;
use super::receiver::Receiver;
use crate::invariants::{all_tasks, assert_invariants};
use crate::support::ground::Ground;
use crate::support::postgres;
use crate::support::server::{Server, Spec};
use serde_json::{Value, json};
use sqlx::Connection as _;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use taskbell::core::task::State;
use taskbell::store::Store;
use taskbell::store::migrate::Mode;
use taskbell::store::postgres::PostgresStore;
use taskbell::store::sqlite::{SqliteOptions, SqliteStore};
use tokio::time::Instant;

/// In the environment of a process that is to be a node.
pub const NODE: &str = "TASKBELL_FAULTS_NODE";
const FILE: &str = "data/taskbell.db";
/// Between two tries of a click.
const AGAIN: Duration = Duration::from_millis(100);

/// Settings of nodes that are to notice soon what has become of each other, and of themselves.
pub const QUICK: [(&str, &str); 3] =
    [("ENGINE__LEASE_MS", "1500"), ("ENGINE__HEARTBEAT_MS", "300"), ("ENGINE__SWEEP_MS", "300")];

/// How much each task of a test works.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    pub chunks: usize,
    pub items: usize,
    pub pause: Duration,
}

/// A few nodes on one database.
pub struct Nodes {
    pub ground: Arc<Ground>,
    pub servers: Vec<tokio::sync::Mutex<Server>>,
    pub receiver: Receiver,
    ports: Vec<u16>,
    http: reqwest::Client,
    key: String,
    /// The ids that were answered, by the idempotency key of the click.
    accepted: Mutex<BTreeMap<String, String>>,
}

impl Nodes {
    /// Starts so many; on a file it can be one only.
    pub async fn start(ground: Arc<Ground>, count: usize, settings: &[(&str, &str)]) -> Self {
        Self::start_each(ground, count, settings, |_| Vec::new()).await
    }

    /// The same, each with variables of its own in its environment.
    pub async fn start_each(
        ground: Arc<Ground>,
        count: usize,
        settings: &[(&str, &str)],
        own: impl Fn(usize) -> Vec<(String, String)>,
    ) -> Self {
        let config = format!("[database]\nurl = \"sqlite://{FILE}\"\n{}", ledger::ACTION);
        let mut spec = Spec::with_config(&config).exe(std::env::current_exe().unwrap()).env(NODE, "1");
        for (name, value) in settings {
            spec = spec.env(&format!("TASKBELL__{name}"), value);
        }
        let (mut servers, mut ports) = (Vec::new(), Vec::new());
        for n in 0..count {
            let each = own(n).iter().fold(spec.clone(), |spec, (name, value)| spec.env(name, value));
            let server = each.start_on(Arc::clone(&ground)).await;
            ports.push(server.port());
            servers.push(tokio::sync::Mutex::new(server));
        }
        let key = servers[0].lock().await.client("olga", "operator").await.key;
        execute(&ground, ledger::TABLE).await;
        let http = reqwest::Client::builder().timeout(Duration::from_secs(10)).build().unwrap();
        let receiver = Receiver::start().await;
        Self { ground, servers, receiver, ports, http, key, accepted: Mutex::default() }
    }

    /// Clicks until a node has accepted it, each try at the next node; answers the id.
    pub async fn click(&self, key: &str, work: Work, with_receiver: bool) -> String {
        let params = params(work, if with_receiver { self.receiver.port() } else { 0 });
        let body = json!({"action": "ledger", "idempotencyKey": key, "params": params});
        let end = Instant::now() + PATIENCE;
        for port in self.ports.iter().cycle() {
            let url = format!("http://127.0.0.1:{port}/api/v1/tasks");
            let answer = self.http.post(url).bearer_auth(&self.key).json(&body).send().await;
            match answer {
                Ok(answer) if answer.status().is_success() => {
                    // The reply may be cut off: then nobody was told.
                    if let Ok(task) = answer.json::<Value>().await {
                        let id = task["id"].as_str().unwrap().to_owned();
                        let before = self.accepted.lock().unwrap().insert(key.to_owned(), id.clone());
                        assert!(before.is_none_or(|before| before == id), "{key} became two tasks");
                        return id;
                    }
                }
                Ok(answer) => {
                    let (status, later) = (answer.status().as_u16(), answer.headers().contains_key("retry-after"));
                    assert!(matches!(status, 429 | 503) && later, "{status}: {:?}", answer.text().await);
                }
                Err(_) => {}
            }
            assert!(Instant::now() < end, "nobody accepts {key}");
            tokio::time::sleep(AGAIN).await;
        }
        unreachable!("there is a node")
    }

    /// Clicks a series at once, all of which has to be accepted; the nodes take turns.
    pub async fn click_many(&self, series: &str, numbers: Range<usize>, work: Work) {
        let params = params(work, 0);
        let item = |n| json!({"action": "ledger", "idempotencyKey": format!("{series} {n}"), "params": params});
        let (first, body) = (numbers.start, json!({"items": numbers.map(item).collect::<Vec<_>>()}));
        let end = Instant::now() + PATIENCE;
        for port in self.ports.iter().cycle().skip(first) {
            let url = format!("http://127.0.0.1:{port}/api/v1/tasks/batch");
            let answer = self.http.post(url).bearer_auth(&self.key).json(&body).send().await.unwrap();
            let (status, later) = (answer.status().as_u16(), answer.headers().contains_key("retry-after"));
            let answer: Value = answer.json().await.unwrap();
            if status == 200 {
                let mut accepted = self.accepted.lock().unwrap();
                for (item, asked) in answer["items"].as_array().unwrap().iter().zip(body["items"].as_array().unwrap()) {
                    let (id, key) = (&item["task"]["id"], &asked["idempotencyKey"]);
                    let id = id.as_str().unwrap_or_else(|| panic!("{item}"));
                    accepted.insert(key.as_str().unwrap().to_owned(), id.to_owned());
                }
                return;
            }
            assert!(matches!(status, 429 | 503) && later && Instant::now() < end, "{status}: {answer}");
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// What each node tells of itself in numbers.
    pub async fn metrics(&self) -> Vec<String> {
        let mut texts = Vec::new();
        for port in &self.ports {
            let answer = self.http.get(format!("http://127.0.0.1:{port}/metrics")).send().await.unwrap();
            texts.push(answer.text().await.unwrap());
        }
        texts
    }

    /// Resident memory of each node, bytes.
    pub async fn memory(&self) -> Vec<u64> {
        let mut bytes = Vec::new();
        for server in &self.servers {
            let status = std::fs::read_to_string(format!("/proc/{}/status", server.lock().await.pid())).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
            bytes.push(line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10);
        }
        bytes
    }

    /// Ends all nodes in peace.
    pub async fn end(&self) {
        for server in &self.servers {
            server.lock().await.terminate().await;
        }
    }

    /// Starts all that have ended again, with another variable in their environment.
    pub async fn start_again_with(&self, name: &str, value: &str) {
        for server in &self.servers {
            let mut server = server.lock().await;
            assert!(server.start_again_with(name, value).await, "{}", server.said());
        }
    }

    /// Asks a node for a path; nothing where there is no answer.
    pub async fn get(&self, node: usize, path: &str) -> Option<(u16, String)> {
        let answer = self.ask(node, path).await?;
        Some((answer.status().as_u16(), answer.text().await.ok()?))
    }

    /// What a node takes for the time.
    pub async fn clock(&self, node: usize) -> SystemTime {
        let answer = self.ask(node, "/healthz").await.expect("the node answers");
        httpdate::parse_http_date(answer.headers()["date"].to_str().unwrap()).unwrap()
    }

    async fn ask(&self, node: usize, path: &str) -> Option<reqwest::Response> {
        let url = format!("http://127.0.0.1:{}{path}", self.ports[node]);
        self.http.get(url).bearer_auth(&self.key).send().await.ok()
    }

    /// What a node has counted under these names since its start, all labels together.
    pub async fn counted(&self, node: usize, names: &[&str]) -> u64 {
        let lines = self.counts(node, names).await;
        lines.iter().filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).map(|count| count as u64).sum()
    }

    /// The lines of the metrics of a node under these names; none where it does not answer.
    pub async fn counts(&self, node: usize, names: &[&str]) -> Vec<String> {
        let (_, text) = self.get(node, "/metrics").await.unwrap_or_default();
        text.lines().filter(|line| names.iter().any(|name| line.starts_with(name))).map(str::to_owned).collect()
    }

    /// No node has lost a lease, by what it counted.
    pub async fn assert_no_lease_lost(&self) {
        for node in 0..self.servers.len() {
            let lost = self.counts(node, &["taskbell_leases_ended_total", "taskbell_stale_writes_total"]).await;
            assert!(lost.iter().all(|line| line.ends_with(" 0")), "node {node}: {lost:?}");
        }
    }

    /// Tasks whose lease is held by the node with this process id, which is part of its name; read past all nodes.
    pub async fn held_by(&self, pid: u32) -> i64 {
        let database = self.ground.database().expect("several nodes are on a server");
        let owner = format!("%:{pid}:%");
        let sql = "SELECT COUNT(*) FROM taskbell_tasks WHERE lease_owner LIKE $1";
        sqlx::query_scalar(sql).bind(owner).fetch_one(&mut database.connect().await).await.unwrap()
    }

    /// Waits until no task is unfinished; fails with those that are.
    pub async fn all_ended(&self, limit: Duration) {
        let open = "SELECT COUNT(*) FROM taskbell_tasks WHERE finished_at IS NULL";
        let end = Instant::now() + limit;
        while self.numbers(open).await != [0] {
            if Instant::now() > end {
                let tasks = all_tasks(open_beside(&self.ground).await.as_ref()).await;
                let open: Vec<_> = tasks.iter().filter(|task| !task.state.is_final()).collect();
                panic!("{} tasks have not ended within {limit:?}, the first: {:#?}", open.len(), open.first());
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Waits until so many tasks have ended, or until the time is over.
    pub async fn ended(&self, count: usize, limit: Duration) {
        let ended = "SELECT COUNT(*) FROM taskbell_tasks WHERE finished_at IS NOT NULL";
        let end = Instant::now() + limit;
        while self.numbers(ended).await < vec![count as i64] && Instant::now() < end {
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Ends the nodes and checks all there is to check: every accepted task is there once and has succeeded, each of its
    /// effects happened once, and the invariants hold. Answers how many leases were lost.
    pub async fn settle(&self, work: Work, with_receiver: bool) -> i64 {
        self.end().await;
        let store = open_beside(&self.ground).await;
        assert_invariants(store.as_ref()).await;
        let tasks = all_tasks(store.as_ref()).await;
        let accepted = self.accepted.lock().unwrap().clone();
        assert_eq!(tasks.len(), accepted.len(), "a task for each accepted click");
        let (total, mut lost) = ((work.chunks * work.items) as i64, 0);
        for task in &tasks {
            assert_eq!(task.state, State::Succeeded, "{task:?}");
            assert_eq!((task.progress.current, task.chunks), (total, work.chunks as i64), "{task:?}");
            assert!(accepted.values().any(|id| *id == task.id.to_string()), "{} was told to nobody", task.id);
            lost += task.takeovers;
        }
        let rows = if with_receiver { (total + 1) / 2 } else { total };
        let all = tasks.len() as i64;
        assert_eq!(self.numbers("SELECT COUNT(*) FROM ledger").await, [all * rows], "lost or doubled");
        let distinct = "SELECT COUNT(*) FROM (SELECT DISTINCT task, item FROM ledger) AS each";
        assert_eq!(self.numbers(distinct).await, [all * rows], "lost");
        let fallen = "SELECT COUNT(*) FROM ledger a JOIN ledger b ON a.task = b.task AND a.item < b.item WHERE a.token > b.token";
        assert_eq!(self.numbers(fallen).await, [0], "a token fell");
        if with_receiver {
            let (keys, calls) = self.receiver.counts();
            assert_eq!(keys as i64, all * (total - rows), "the receiver has not heard of all");
            println!("the receiver heard of {keys} effects in {calls} calls");
        }
        lost
    }

    /// Runs a statement past the nodes.
    pub async fn execute(&self, sql: &'static str) {
        execute(&self.ground, sql).await;
    }

    /// The whole numbers that a statement answers, read past the nodes.
    pub async fn numbers(&self, sql: &'static str) -> Vec<i64> {
        self.ground.numbers(FILE, sql).await
    }
}

/// What a task of the ledger is to do.
fn params(work: Work, receiver: u16) -> Value {
    json!({"chunks": work.chunks, "items": work.items, "pauseMs": work.pause.as_millis() as u64, "receiver": receiver})
}

/// Runs a statement past the nodes.
async fn execute(ground: &Ground, sql: &'static str) {
    match ground.database() {
        Some(database) => database.execute(sql).await,
        None => {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(ground.path().join(FILE));
            let mut file = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
            sqlx::raw_sql(sql).execute(&mut file).await.unwrap();
            file.close().await.unwrap();
        }
    }
}

/// Opens the database past the nodes.
async fn open_beside(ground: &Ground) -> Arc<dyn Store> {
    let mut told = |_: usize, _: usize, _: &str| {};
    match ground.database() {
        Some(database) => {
            Arc::new(PostgresStore::open(postgres::options(&database.url()), Mode::Check, &mut told).await.unwrap())
        }
        None => {
            let options = SqliteOptions::new(ground.path().join(FILE));
            Arc::new(SqliteStore::open(options, Mode::Check, &mut told).await.unwrap())
        }
    }
}
