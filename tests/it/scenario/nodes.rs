//! Several nodes on one PostgreSQL database: they share the work and never a chunk, take over from one another, and go one
//! by one.

use crate::support::eventually;
use crate::support::ground::Ground;
use crate::support::node::{Node, action, answer, click, closure, short_settings};
use crate::support::server::{Client, Server, Spec};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use taskbell::core::action::Action;
use taskbell::core::effect::{Effect, SqlValue};
use taskbell::core::task::State;
use taskbell::engine::EngineSettings;
use taskbell::handler::Handler;

/// A lease, a sweep, a poll, and time for a slow machine.
const TAKEN_OVER: Duration = Duration::from_secs(30);
const END: Duration = Duration::from_secs(120);

async fn two_nodes(ground: &Ground, handlers: impl Fn(usize) -> Vec<(Action, Arc<dyn Handler>)>) -> [Node; 2] {
    let settings = |n: usize| EngineSettings { node: format!("n{n}"), ..short_settings() };
    [Node::start_with(ground, handlers(0), settings(0)).await, Node::start_with(ground, handlers(1), settings(1)).await]
}

/// Proves: G2.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_nodes_share_three_hundred_tasks_and_run_each_once() {
    const TASKS: usize = 300;
    let ground = Ground::postgres().await;
    let done = [Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0))];
    let nodes = two_nodes(&ground, |n| {
        let done = done[n].clone();
        let handler = closure(move |call| {
            let done = done.clone();
            async move {
                done.fetch_add(1, Ordering::Relaxed);
                call.execute("INSERT INTO ledger (item) VALUES ($1)", vec![call.params["n"].as_i64().unwrap().into()]);
                answer(json!({"hasMore": false, "current": 1}))
            }
        });
        vec![(action("once"), handler)]
    })
    .await;
    let table = Effect { sql: "CREATE TABLE ledger (item INTEGER NOT NULL PRIMARY KEY)", rows: vec![Vec::new()] };
    nodes[0].store.execute(vec![table]).await.unwrap();
    join_all((0..TASKS).map(|n| nodes[n % 2].click(click("once", json!({"n": n}))))).await;
    let counted = async || {
        let rows = nodes[0].store.query("SELECT COUNT(*) FROM ledger", Vec::new()).await.unwrap();
        (rows[0][0] == SqlValue::Int(TASKS as i64)).then_some(())
    };
    eventually("every task has run", END, counted).await;
    let counts = nodes[0].store.counts(&Default::default(), true).await.unwrap();
    assert_eq!(counts.by_state, BTreeMap::from([(State::Succeeded, TASKS as i64)]));
    let shares = done.map(|d| d.load(Ordering::Relaxed));
    assert_eq!(shares.iter().sum::<usize>(), TASKS, "no chunk ran twice");
    assert!(shares.iter().all(|share| *share > 0), "one node did everything: {shares:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g1_a_hundred_tasks_of_one_commit_fill_the_places_of_every_node_within_a_poll() {
    let ground = Ground::postgres().await;
    let busy = Arc::new(AtomicUsize::new(0));
    let nodes = two_nodes(&ground, |_| {
        let busy = busy.clone();
        let handler = closure(move |_| {
            let busy = busy.clone();
            async move {
                busy.fetch_add(1, Ordering::SeqCst);
                std::future::pending().await
            }
        });
        vec![(Action { chunk_timeout_ms: 60_000, ..action("stays") }, handler)]
    })
    .await;
    // Past the nodes' own ways in, so that only what goes between nodes can wake them.
    let elsewhere = ground.open().await;
    elsewhere.submit((0..100).map(|_| click("stays", json!({}))).collect()).await.unwrap();
    let from = Instant::now();
    eventually("all eight places are taken", Duration::from_secs(15), async || {
        (busy.load(Ordering::SeqCst) == 8).then_some(())
    })
    .await;
    println!("all places were taken after {:?}", from.elapsed());
    drop(nodes);
}

/// A server of the demo with short leases, beside others on one ground.
async fn server(ground: &Arc<Ground>) -> Server {
    let short = [("LEASE_MS", "1500"), ("HEARTBEAT_MS", "500"), ("SWEEP_MS", "500"), ("POLL_MS", "500")];
    let spec =
        short.iter().fold(Spec::demo(), |spec, (name, value)| spec.env(&format!("TASKBELL__ENGINE__{name}"), value));
    spec.start_on(ground.clone()).await
}

/// Two servers, and the import of 20,000 customers under way on one of them: that one first.
async fn two_servers_and_an_import(ground: &Arc<Ground>, pause_seconds: f64) -> (Server, Server, Client, String) {
    let (first, second) = (server(ground).await, server(ground).await);
    let operator = second.client("olga", "operator").await;
    let params = json!({"batch": 1000, "pause": pause_seconds});
    let task = operator.submit(json!({"action": "import-customers", "params": params})).await;
    let id = task["id"].as_str().unwrap().to_owned();
    // Between two chunks nobody holds it.
    let owner = eventually("a node has it", END, async || {
        let (_, task) = operator.get(&format!("/api/v1/tasks/{id}")).await;
        task["leaseOwner"].as_str().map(str::to_owned)
    })
    .await;
    if owner == format!("{}:{}", first.pid(), first.port()) {
        let operator = Client::new(&second.url(), &operator.key);
        (first, second, operator, id)
    } else {
        let operator = Client::new(&first.url(), &operator.key);
        (second, first, operator, id)
    }
}

fn current(task: &Value) -> i64 {
    task["progress"]["current"].as_i64().unwrap()
}

async fn assert_imported_exactly_once(ground: &Ground) {
    let sql = "SELECT COUNT(*) FROM customers UNION ALL SELECT MIN(times_written) FROM customers \
        UNION ALL SELECT MAX(times_written) FROM customers";
    assert_eq!(ground.numbers("data/taskbell.db", sql).await, [20_000, 1, 1]);
}

/// Proves: G4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_node_is_taken_over_within_a_lease_and_a_sweep() {
    let ground = Arc::new(Ground::postgres().await);
    let (mut busy, other, client, id) = two_servers_and_an_import(&ground, 0.0).await;
    busy.kill().await;
    let (_, task) = client.get(&format!("/api/v1/tasks/{id}")).await;
    let at = current(&task);
    let task = client.until(&id, TAKEN_OVER, |t| current(t) > at || t["state"] == "succeeded").await;
    assert_ne!(task["state"], "failed", "{task}");
    let task = client.until(&id, END, |t| t["state"] == "succeeded").await;
    assert_eq!((&task["rows"]["ok"], &task["attempt"]), (&json!(20_000), &json!(1)), "{task}");
    assert_imported_exactly_once(&ground).await;
    drop(other);
}

/// Proves: G10.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_nodes_drains_under_load_and_no_attempt_is_used() {
    let ground = Arc::new(Ground::postgres().await);
    let (mut busy, other, client, id) = two_servers_and_an_import(&ground, 0.1).await;
    let status = busy.terminate().await;
    assert!(status.success(), "{status}: {}", busy.said());
    let task = client.until(&id, END, |t| t["state"] == "succeeded").await;
    assert_eq!((&task["attempt"], &task["takeovers"], &task["rows"]["ok"]), (&json!(1), &json!(0), &json!(20_000)));
    assert_imported_exactly_once(&ground).await;
    drop(other);
}

/// Proves: G5.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_racing_clicks_on_two_nodes_make_one_task_two_hundred_times() {
    const RACERS: usize = 50;
    const ROUNDS: usize = 200;
    let ground = Arc::new(Ground::postgres().await);
    let servers = [server(&ground).await, server(&ground).await];
    let first = servers[0].client("user", "user").await;
    let clients = [Client::new(&servers[0].url(), &first.key), Client::new(&servers[1].url(), &first.key)];
    for round in 0..ROUNDS {
        let body = json!({"action": "recalculate-totals", "idempotencyKey": format!("race {round}"),
            "runAt": "2100-01-01T00:00:00.000Z"});
        let answers = join_all((0..RACERS).map(|n| clients[n % 2].try_post("/api/v1/tasks", &body))).await;
        let (created, replayed): (Vec<_>, Vec<_>) = answers.iter().partition(|(status, _, _)| *status == 201);
        assert_eq!((created.len(), replayed.len()), (1, RACERS - 1), "round {round}");
        let id = &created[0].2["id"];
        let same =
            |(status, _, task): &&(u16, _, Value)| *status == 200 && task["replayed"] == true && &task["id"] == id;
        assert!(replayed.iter().all(same), "round {round}: {replayed:?}");
    }
    let sql = "SELECT COUNT(*) FROM taskbell_tasks WHERE idempotency_key LIKE 'race %' \
        UNION ALL SELECT CAST(SUM(suppressed) AS BIGINT) FROM taskbell_tasks";
    let expected = [ROUNDS as i64, (ROUNDS * (RACERS - 1)) as i64];
    assert_eq!(ground.numbers("data/taskbell.db", sql).await, expected);
}
