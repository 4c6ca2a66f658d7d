//! Races: two nodes on one database ask for the same thing at the same instant. The database has to choose one.

use super::fixture::{Fixture, LEASE_MS};
use super::words::*;
use crate::support::ground::Ground;
use crate::support::on_each_database;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use taskbell::core::ids::FencingToken;
use taskbell::core::ids::TaskId;
use taskbell::core::lifecycle::Ask;
use taskbell::core::submit::{Submit, Submitted};
use taskbell::core::task::State;
use taskbell::store::{AskParams, ListParams, RenewParams, Renewed, Store};
use tokio::task::JoinSet;

/// Callers at one instant.
const CALLERS: usize = 50;

on_each_database! {
    c2_fifty_clicks_of_one_key_on_two_nodes_are_one_task_and_49_replays
    c2_a_key_whose_holder_has_failed_passes_to_one_of_fifty
    racing_clicks_of_two_nodes_never_hold_a_key_beyond_its_limit
}

/// How often a race is run.
fn rounds() -> usize {
    if std::env::var("TASKBELL_TEST_LONG").is_ok_and(|v| v == "1") { 200 } else { 12 }
}

/// All clicks at once, every second one on the other node; no caller may be told of a fault.
async fn all_at_once(nodes: &[Arc<dyn Store>], clicks: Vec<Submit>) -> Vec<Submitted> {
    let mut calls = JoinSet::new();
    for (n, click) in clicks.into_iter().enumerate() {
        let node = nodes[n % nodes.len()].clone();
        calls.spawn(async move { node.submit(vec![click]).await.unwrap().answer.remove(0) });
    }
    calls.join_all().await
}

/// The one task that was made of a key, with a replay for everybody else.
fn one_and_replays(answers: &[Submitted]) -> TaskId {
    let made: Vec<&Submitted> = answers.iter().filter(|a| matches!(a, Submitted::Created(_))).collect();
    assert_eq!(made.len(), 1, "{made:#?}");
    let id = made[0].task().unwrap().id;
    let others = answers.iter().filter(|a| matches!(a, Submitted::Replayed(task) if task.id == id)).count();
    assert_eq!(others, answers.len() - 1);
    id
}

async fn c2_fifty_clicks_of_one_key_on_two_nodes_are_one_task_and_49_replays(ground: Arc<Ground>) {
    let nodes = [ground.open().await, ground.open().await];
    let mut made = BTreeSet::new();
    for round in 0..rounds() {
        let clicks = (0..CALLERS).map(|_| keyed(&format!("round {round}"))).collect();
        let id = one_and_replays(&all_at_once(&nodes, clicks).await);
        assert!(made.insert(id), "the key of an earlier round");
    }
    let listed = nodes[0].list(ListParams { limit: rounds() + 1, ..ListParams::default() }).await.unwrap();
    assert_eq!(listed.items.iter().map(|task| task.id).collect::<BTreeSet<_>>(), made, "one row a key");
}

async fn c2_a_key_whose_holder_has_failed_passes_to_one_of_fifty(ground: Arc<Ground>) {
    let nodes = [ground.open().await, ground.open().await];
    let mut holder = None;
    for _ in 0..rounds() {
        let id = one_and_replays(&all_at_once(&nodes, (0..CALLERS).map(|_| keyed("k")).collect()).await);
        assert_ne!(holder.replace(id), Some(id), "a cancelled holder holds nothing");
        let cancel = AskParams { caller: bob(), task: id, ask: Ask::Cancel, reason: None };
        nodes[0].ask(vec![cancel]).await.unwrap();
    }
}

async fn racing_clicks_of_two_nodes_never_hold_a_key_beyond_its_limit(ground: Arc<Ground>) {
    const LIMIT: u32 = 2;
    let nodes = [ground.open().await, ground.open().await];
    for round in 0..rounds() {
        let key = format!("round {round}");
        all_at_once(&nodes, (0..8).map(|_| under(&key, LIMIT)).collect()).await;
        let listed = nodes[0].list(ListParams { limit: 500, ..ListParams::default() }).await.unwrap().items;
        let own = listed.iter().filter(|task| task.concurrency.as_ref().is_some_and(|c| c.key == key));
        let held = own.clone().filter(|task| task.slot_held).count();
        let waiting = own.filter(|task| task.state == State::Blocked).count();
        assert_eq!((held, waiting), (LIMIT as usize, 6), "{key}");
    }
}

/// Proves: G2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_a_renewal_is_held_up_by_nobody_who_writes_one_of_the_tasks() {
    const LIMIT: Duration = Duration::from_secs(60);
    let f = Fixture::postgres().await;
    f.submit((0..3).map(|n| keyed(&n.to_string())).collect()).await;
    let claimed = f.claim_on("n1", 3).await;
    let mut held: Vec<_> = claimed.iter().map(|c| (c.task.id, c.task.fencing_token)).collect();
    held.sort_unstable_by_key(|(id, _)| *id);
    f.pass(1_000);
    let renew = |held: Vec<_>, waits| {
        let params = RenewParams { node: "n1".into(), held, lease_ms: LEASE_MS, waits };
        let store = f.store.clone();
        tokio::time::timeout(LIMIT, async move { store.renew(params).await.unwrap() })
    };
    let mut writing = f.store.begin().await.unwrap();
    writing.load(&[held[1].0]).await.unwrap();
    let stale = (held[1].0, FencingToken(99));
    let asked = held.iter().copied().chain([stale]).collect();
    let answers = renew(asked, false).await.expect("it waits for nobody");
    assert_eq!(answers, [Renewed::Ok, Renewed::Busy, Renewed::Ok, Renewed::Stale]);
    let until = f.now().plus(LEASE_MS);
    assert_eq!(f.get(held[0].0).await.lease_until, Some(until));
    assert_eq!(f.get(held[1].0).await.lease_until, Some(until.plus(-1_000)), "left as it was");
    let waiting = tokio::spawn(renew(vec![held[1]], true));
    let ends = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(writing);
    };
    let (answers, ()) = tokio::join!(waiting, ends);
    assert_eq!(answers.unwrap().expect("it comes to an end"), [Renewed::Ok]);
    assert_eq!(f.get(held[1].0).await.lease_until, Some(until));
    f.check().await;
}
