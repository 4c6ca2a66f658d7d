//! Storms: several nodes do everything to one database at once, in whatever order their batches hold the rows. No deadlock,
//! no lost race and no busy database may reach a caller, and what is left must be as sound as after any quiet hour.

use super::fixture::{GRACE_MS, claim_params};
use super::invariants::assert_invariants;
use super::words::*;
use crate::support::ground::Ground;
use crate::support::on_each_database;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use taskbell::core::ids::{FencingToken, TaskId};
use taskbell::core::lifecycle::{Ask, Ended};
use taskbell::core::submit::Submit;
use taskbell::core::task::State;
use taskbell::store::migrate::Mode;
use taskbell::store::postgres::PostgresStore;
use taskbell::store::{AskParams, ChunkCommit, ClaimParams, ListParams, RenewParams, Result, Store, SweepParams};
use tokio::task::JoinSet;

/// Leases end while others still work with them.
const LEASE_MS: i64 = 40;
/// Rows that one batch touches.
const BATCH: usize = 25;

/// How long a storm blows; a minute in the long form.
fn span() -> Duration {
    let long = std::env::var("TASKBELL_TEST_LONG").is_ok_and(|v| v == "1");
    Duration::from_secs(if long { 60 } else { 3 })
}

/// Ends that were accepted: (task, token, chunk).
type Accepted = Mutex<BTreeSet<(TaskId, FencingToken, i64)>>;

on_each_database! {
    m6_a_storm_of_every_batch_from_four_nodes_hurts_no_caller_and_no_row
}

/// Proves: G14.
async fn m6_a_storm_of_every_batch_from_four_nodes_hurts_no_caller_and_no_row(ground: Arc<Ground>) {
    let mut nodes = Vec::new();
    for _ in 0..4 {
        nodes.push(ground.open().await);
    }
    blow(nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m8_a_role_whose_transactions_are_serializable_by_default_changes_nothing() {
    let ground = Ground::postgres().await;
    let database = ground.database().unwrap();
    let role = format!("{}_strict", database.name());
    database.execute(&format!("CREATE ROLE {role} LOGIN SUPERUSER PASSWORD 'p'")).await;
    database.execute(&format!("ALTER ROLE {role} SET default_transaction_isolation = 'serializable'")).await;
    let mut nodes: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..4 {
        let options = crate::support::postgres::options(&database.url_as(&role, "p"));
        nodes.push(Arc::new(PostgresStore::open(options, Mode::Check, &mut |_, _, _| {}).await.unwrap()));
    }
    blow(nodes).await;
    database.execute(&format!("DROP ROLE {role}")).await;
}

pub(crate) async fn blow(nodes: Vec<Arc<dyn Store>>) {
    let (until, accepted) = (Instant::now() + span(), Arc::new(Accepted::default()));
    let mut winds = JoinSet::new();
    for (n, store) in nodes.iter().enumerate() {
        let node = format!("n{n}");
        let wind = clicks(store.clone(), until);
        winds.spawn(async move { ("clicks", wind.await) });
        let wind = works(store.clone(), node, until, accepted.clone());
        winds.spawn(async move { ("works", wind.await) });
        let wind = sweeps(store.clone(), until);
        winds.spawn(async move { ("sweeps", wind.await) });
        let wind = cancels(store.clone(), until, n);
        winds.spawn(async move { ("cancels", wind.await) });
        let wind = deletes(store.clone(), until, n);
        winds.spawn(async move { ("deletes", wind.await) });
        let wind = marks(store.clone(), until);
        winds.spawn(async move { ("marks", wind.await) });
    }
    let mut rounds = BTreeMap::<&str, Vec<usize>>::new();
    while let Some(wind) = winds.join_next().await {
        let (name, count) = wind.unwrap();
        rounds.entry(name).or_default().push(count.unwrap_or_else(|e| panic!("{name}: a caller was told: {e:?}")));
    }
    eprintln!("rounds in {:?}: {rounds:?}", span());
    let ends = accepted.lock().unwrap().len();
    assert!(ends > 20, "hardly anything was done: {ends} ends");
    assert_invariants(nodes[0].as_ref()).await;
}

async fn clicks(store: Arc<dyn Store>, until: Instant) -> Result<usize> {
    let mut rounds = 0;
    while Instant::now() < until || rounds < 2 {
        let keys = ["k1", "k2", "k3"];
        let click = |n: usize| match n % 4 {
            0 => keyed(&format!("{}", (rounds + n) % 40)),
            1 => Submit { priority: -(n as i32), ..under(keys[(n / 4 + rounds) % 3], 2) },
            _ => click(),
        };
        store.submit((0..BATCH).map(click).collect()).await?;
        rounds += 1;
    }
    Ok(rounds)
}

async fn works(store: Arc<dyn Store>, node: String, until: Instant, accepted: Arc<Accepted>) -> Result<usize> {
    let mut rounds = 0;
    while Instant::now() < until || rounds < 2 {
        let params = ClaimParams { lease_ms: LEASE_MS, ..claim_params(&node, BATCH) };
        let mut claimed = store.claim(params).await?.answer;
        // In another order than they were claimed in, as group commits gather them.
        claimed.sort_by_key(|c| std::cmp::Reverse(c.task.created_at));
        let held = claimed.iter().map(|c| (c.task.id, c.task.fencing_token)).collect();
        store.renew(RenewParams { node: node.clone(), held, lease_ms: LEASE_MS, waits: false }).await?;
        let ends: Vec<ChunkCommit> = claimed
            .iter()
            .enumerate()
            .map(|(n, c)| {
                let outcome = [done, || more(1), throws, gives_up][(n + rounds) % 4]();
                ended(c, outcome)
            })
            .collect();
        let answers = store.commit(ends.clone()).await?.answer;
        let mut accepted = accepted.lock().unwrap();
        for (end, answer) in ends.iter().zip(answers) {
            if matches!(answer.ended, Ended::Applied { .. }) {
                assert!(accepted.insert((end.task, end.token, end.chunk)), "accepted twice: {end:?}");
            }
        }
        rounds += 1;
    }
    Ok(rounds)
}

async fn sweeps(store: Arc<dyn Store>, until: Instant) -> Result<usize> {
    let mut rounds = 0;
    while Instant::now() < until || rounds < 2 {
        store
            .sweep(SweepParams { limit: 100, all: false, cancel_grace_ms: GRACE_MS, retries: Default::default() })
            .await?;
        rounds += 1;
    }
    Ok(rounds)
}

/// Tasks in some states, in an order that differs from node to node.
async fn some(store: &dyn Store, states: &[State], descending: bool) -> Result<Vec<TaskId>> {
    let params = ListParams { states: states.to_vec(), descending, limit: BATCH, ..ListParams::default() };
    Ok(store.list(params).await?.items.iter().map(|t| t.id).collect())
}

async fn cancels(store: Arc<dyn Store>, until: Instant, n: usize) -> Result<usize> {
    let mut rounds = 0;
    while Instant::now() < until || rounds < 2 {
        let ids = some(store.as_ref(), &[State::Queued, State::Running, State::Blocked], n.is_multiple_of(2)).await?;
        let asks = [Ask::Cancel, Ask::Pause, Ask::Resume, Ask::ForceCancel];
        let ask = |(i, task)| AskParams { caller: operator(), task, ask: asks[(i + rounds) % 4], reason: None };
        store.ask(ids.into_iter().enumerate().map(ask).collect()).await?;
        rounds += 1;
    }
    Ok(rounds)
}

async fn deletes(store: Arc<dyn Store>, until: Instant, n: usize) -> Result<usize> {
    let mut rounds = 0;
    while Instant::now() < until || rounds < 2 {
        let ended = [State::Succeeded, State::Failed, State::Cancelled];
        let ids = some(store.as_ref(), &ended, n.is_multiple_of(2)).await?;
        store.delete(&operator(), ids).await?;
        rounds += 1;
    }
    Ok(rounds)
}

async fn marks(store: Arc<dyn Store>, until: Instant) -> Result<usize> {
    let mut rounds = 0;
    while Instant::now() < until || rounds < 2 {
        mark_all_seen(store.as_ref()).await?;
        rounds += 1;
    }
    Ok(rounds)
}
