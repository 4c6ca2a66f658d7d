//! Figures of one node in this process: clicks in, no-op tasks out, how soon a click is picked up, progress on the way.

use crate::Kind;
use crate::crowd::Crowd;
use crate::figures::quantile;
use crate::support::ground::Ground;
use crate::support::node::{Call, Node, action, alice, answer, click, closure, short_settings};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use taskbell::bus::{LocalBus, Signal};
use taskbell::core::action::Action;
use taskbell::core::change::Change;
use taskbell::core::progress::Reported;
use taskbell::core::submit::{Submit, Submitted};
use taskbell::core::task::State;
use taskbell::engine::EngineSettings;
use taskbell::engine::commands::Commands;
use taskbell::handler::{ChunkContext, Handler, HandlerError};
use taskbell::store::migrate::Mode;
use taskbell::store::postgres::{PostgresOptions, PostgresStore};
use taskbell::store::sqlite::{SqliteOptions, SqliteStore};
use taskbell::store::{ClaimParams, Reach, Report, Store};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

/// Clients at once.
pub const CLIENTS: usize = 32;
/// Tasks of one batch that is laid out before a measurement.
const BATCH: usize = 500;

/// The settings of a node as they are without a configuration.
fn usual_settings() -> EngineSettings {
    EngineSettings {
        parallelism: 16,
        lease_ms: 30_000,
        heartbeat_ms: 10_000,
        poll_ms: 1_000,
        sweep_ms: 5_000,
        ..short_settings()
    }
}

/// Opens a database as service does: with full durability, and as many connections.
pub async fn open(ground: &Ground) -> Arc<dyn Store> {
    match ground.database() {
        None => open_file(ground.path().join("taskbell.db")).await,
        Some(database) => {
            let options = PostgresOptions::new(database.url());
            Arc::new(PostgresStore::open(options, Mode::Apply, &mut |_, _, _| {}).await.unwrap())
        }
    }
}

/// Opens a SQLite file as service does.
pub async fn open_file(path: PathBuf) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(SqliteOptions::new(path), Mode::Apply, &mut |_, _, _| {}).await.unwrap())
}

/// A click of one of 32 users.
pub fn click_of(user: usize) -> Submit {
    let owner = format!("user-{user}");
    let mut submit = click("noop", json!({"customer": 4711, "user": user}));
    submit.caller.user.clone_from(&owner);
    submit.owner = owner;
    submit
}

/// Lays out tasks that wait.
pub async fn lay_out(store: &dyn Store, count: usize, change: impl Fn(Submit) -> Submit) {
    for first in (0..count).step_by(BATCH) {
        let batch = (first..count.min(first + BATCH)).map(|i| change(click_of(i % CLIENTS))).collect();
        store.submit(batch).await.unwrap();
    }
}

/// Submits a second: 32 clients, each with one click at a time, answered after its commit.
pub async fn submits(kind: Kind, count: usize, crowd: Crowd) -> f64 {
    let (_ground, store) = crowd.ready(kind).await;
    let commands = Commands::new(store, LocalBus::default(), Arc::new(Notify::new()));
    let each = count / CLIENTS;
    let began = Instant::now();
    let mut clients = JoinSet::new();
    for user in 0..CLIENTS {
        let commands = commands.clone();
        clients.spawn(async move {
            for _ in 0..each {
                let submitted = commands.submit(click_of(user)).await.unwrap();
                assert!(matches!(submitted, Submitted::Created(_)));
            }
        });
    }
    clients.join_all().await;
    (each * CLIENTS) as f64 / began.elapsed().as_secs_f64()
}

fn noop() -> (Action, Arc<dyn Handler>) {
    (action("noop"), closure(|_| async { answer(json!({"hasMore": false})) }))
}

/// How tasks are drained.
#[derive(Clone, Copy)]
pub struct Drain {
    /// Tasks.
    pub count: usize,
    /// Chunks at once of each node.
    pub places: usize,
    /// Nodes, each with connections of its own; only a server takes more than one.
    pub nodes: usize,
    /// Who else is there.
    pub crowd: Crowd,
}

/// No-op tasks a second, from the start of nodes that find `count` of them to the end of the last one, as the nodes' bus
/// tells it: the database is not asked meanwhile.
pub async fn drained(kind: Kind, drain: Drain) -> f64 {
    let (ground, store) = drain.crowd.ready(kind).await;
    lay_out(store.as_ref(), drain.count, |submit| submit).await;
    let mut stores = vec![store];
    while stores.len() < drain.nodes {
        stores.push(open(&ground).await);
    }
    let reach = Reach { tenant: Some(alice().tenant), owner: None };
    let counting = stores[0].clone();
    let succeeded = async || {
        let counts = counting.counts(&reach, true).await.unwrap();
        counts.by_state.get(&State::Succeeded).copied().unwrap_or(0) as usize
    };
    let before = succeeded().await;
    let (began, bus) = (Instant::now(), LocalBus::default());
    let mut signals = bus.subscribe();
    let mut nodes = Vec::new();
    for (n, store) in stores.into_iter().enumerate() {
        let settings = EngineSettings { node: format!("bench-{n}"), parallelism: drain.places, ..usual_settings() };
        nodes.push(Node::start_on(store, bus.clone(), ground.path(), vec![noop()], settings).await);
    }
    let mut ended = 0;
    while ended < drain.count {
        match signals.next().await.expect("the bus lives as long as the nodes") {
            Signal::Changes(changes) => {
                ended += changes.iter().filter(|c| matches!(c, Change::Task(t) if t.state == State::Succeeded)).count();
            }
            Signal::Missed => ended = succeeded().await - before,
            _ => {}
        }
    }
    let took = began.elapsed();
    assert!(succeeded().await - before >= drain.count);
    for node in nodes {
        node.engine.drain().await;
    }
    ended as f64 / took.as_secs_f64()
}

/// Chunks a second that one node commits, each with a checkpoint and progress and followed by the next at once.
pub async fn chunk_commits(kind: Kind) -> f64 {
    const CHUNKS: i64 = 100;
    let ground = kind.ground().await;
    let store = open(&ground).await;
    lay_out(store.as_ref(), CLIENTS, |submit| submit).await;
    let handler = closure(|call: Arc<Call>| async move {
        let (chunk, more) = (call.chunk, call.chunk < CHUNKS);
        answer(json!({"hasMore": more, "checkpoint": {"row": chunk * 500}, "current": chunk, "total": CHUNKS}))
    });
    let settings = EngineSettings { parallelism: CLIENTS, ..usual_settings() };
    let (began, bus) = (Instant::now(), LocalBus::default());
    let mut signals = bus.subscribe();
    let node = Node::start_on(store, bus, ground.path(), vec![(action("noop"), handler)], settings).await;
    let mut ended = BTreeSet::new();
    while ended.len() < CLIENTS {
        if let Signal::Changes(changes) = signals.next().await.expect("the bus lives as long as the node") {
            let done = changes.iter().filter(|c| matches!(c, Change::Task(t) if t.state == State::Succeeded));
            ended.extend(done.map(Change::task_id));
        }
    }
    let took = began.elapsed();
    node.engine.drain().await;
    CLIENTS as f64 * CHUNKS as f64 / took.as_secs_f64()
}

/// From the answer of a submit to the start of its handler on an idle queue, ms. A handler that starts before the answer
/// arrives counts as 0.
pub async fn pick_ups(kind: Kind, count: usize) -> Vec<f64> {
    let ground = kind.ground().await;
    let (started, mut starts) = mpsc::unbounded_channel();
    let handler = closure(move |_| {
        started.send(Instant::now()).unwrap();
        async { answer(json!({"hasMore": false})) }
    });
    let node = Node::start_on(
        open(&ground).await,
        LocalBus::default(),
        ground.path(),
        vec![(action("noop"), handler)],
        usual_settings(),
    )
    .await;
    let mut latencies = Vec::with_capacity(count);
    for i in 0..count {
        // Not in step with anything of the node.
        tokio::time::sleep(Duration::from_millis(5 + (i as u64 * 7) % 23)).await;
        node.click(click_of(i % CLIENTS)).await;
        let answered = Instant::now();
        let started = starts.recv().await.unwrap();
        latencies.push(started.saturating_duration_since(answered).as_secs_f64() * 1_000.0);
    }
    node.engine.drain().await;
    latencies
}

/// Reports a second that the store writes: one newest report of each of 100 running tasks a batch, as a node sends them.
pub async fn reports_stored(kind: Kind) -> f64 {
    const RUNNING: usize = 100;
    const BATCHES: i64 = 40;
    let ground = kind.ground().await;
    let store = open(&ground).await;
    lay_out(store.as_ref(), RUNNING, |submit| submit).await;
    let claimed = store.claim(claim_of(RUNNING)).await.unwrap().answer;
    let began = Instant::now();
    for done in 1..=BATCHES {
        let report = Reported { current: Some(done), total: Some(Some(BATCHES)), ..Reported::default() };
        let batch: Vec<Report> = claimed
            .iter()
            .map(|c| Report { task: c.task.id, token: c.task.fencing_token, report: report.clone() })
            .collect();
        let stored = store.report(batch).await.unwrap().answer;
        assert!(stored.into_iter().all(|stored| stored));
    }
    RUNNING as f64 * BATCHES as f64 / began.elapsed().as_secs_f64()
}

/// A claim of at most `limit` of the bench's tasks.
pub fn claim_of(limit: usize) -> ClaimParams {
    ClaimParams {
        node: "bench".into(),
        actions: vec!["noop".into()],
        packs: Vec::new(),
        tenants: Vec::new(),
        limit,
        lease_ms: 30_000,
        after_tenant: None,
        many_wait: false,
        seats: None,
    }
}

struct Reporter {
    taken: Arc<AtomicU64>,
}

/// How long a handler reports without a pause.
const CHATTER: Duration = Duration::from_secs(1);

#[async_trait::async_trait]
impl Handler for Reporter {
    async fn run(&self, cx: &ChunkContext) -> Result<taskbell::core::chunk::Outcome, HandlerError> {
        let began = Instant::now();
        let mut current = 0;
        while began.elapsed() < CHATTER {
            for _ in 0..100 {
                current += 1;
                cx.progress(current, Some(1_000_000_000), None);
            }
            tokio::task::yield_now().await;
        }
        self.taken.fetch_add(current.unsigned_abs(), Ordering::Relaxed);
        answer(json!({"hasMore": false, "current": current, "total": current}))
    }
}

/// Reports a second that a running handler gets rid of, while the newest is stored every half second.
pub async fn reports_taken(kind: Kind) -> f64 {
    let ground = kind.ground().await;
    let taken = Arc::new(AtomicU64::new(0));
    let handler: Arc<dyn Handler> = Arc::new(Reporter { taken: taken.clone() });
    let node = Node::start_on(
        open(&ground).await,
        LocalBus::default(),
        ground.path(),
        vec![(action("noop"), handler)],
        usual_settings(),
    )
    .await;
    let id = node.click(click_of(0)).await;
    node.until(id, State::Succeeded).await;
    node.engine.drain().await;
    taken.load(Ordering::Relaxed) as f64 / CHATTER.as_secs_f64()
}

/// The median time of something that is done again and again, ms.
pub async fn median_ms(times: usize, mut once: impl AsyncFnMut() -> Duration) -> f64 {
    let mut took = Vec::with_capacity(times);
    for _ in 0..times {
        took.push(once().await.as_secs_f64() * 1_000.0);
    }
    quantile(&took, 0.5)
}
