//! The registry of nodes: beats by the database's clock, goodbyes, and what becomes of those who are silent.

use super::fixture::*;
use taskbell::core::node::{Node, SHOWN_MS, Standing};
use taskbell::core::time::Millis;

store_suite! {
    a_node_is_known_from_its_first_beat_to_its_goodbye
    a_node_that_is_silent_for_longer_than_its_lease_is_stale_and_goes_an_hour_later
}

pub fn node(id: &str) -> Node {
    Node {
        id: id.into(),
        role: "all".into(),
        version: "0.1.0".into(),
        parallelism: 16,
        lease_ms: LEASE_MS,
        tenants: vec!["acme".into()],
        actions: ACTIONS.map(str::to_owned).to_vec(),
        packs: Vec::new(),
        started_at: Millis(0),
        beat_at: Millis(0),
        standing: Standing { running: 2, redis: "off".into(), wake: "local".into(), ..Standing::default() },
    }
}

async fn a_node_is_known_from_its_first_beat_to_its_goodbye(f: &Fixture) {
    assert!(f.store.nodes().await.unwrap().nodes.is_empty());
    let began = f.now();
    assert_eq!(f.store.beat(&node("a")).await.unwrap(), began);
    f.pass(1_000);
    let busy = Standing { running: 3, draining: true, ..Standing::default() };
    let changed = Node { standing: busy, actions: vec!["other".into()], packs: vec!["p".into()], ..node("a") };
    f.store.beat(&changed).await.unwrap();
    let list = f.store.nodes().await.unwrap();
    assert_eq!(list.as_of, f.now());
    assert_eq!(list.nodes, [Node { started_at: began, beat_at: f.now(), ..changed }]);
    f.store.leave("a").await.unwrap();
    f.store.leave("nobody").await.unwrap();
    assert!(f.store.nodes().await.unwrap().nodes.is_empty());
}

async fn a_node_that_is_silent_for_longer_than_its_lease_is_stale_and_goes_an_hour_later(f: &Fixture) {
    let alone = f.store.capabilities().single_process;
    f.store.beat(&node("a")).await.unwrap();
    f.pass(LEASE_MS + 1);
    let list = f.store.nodes().await.unwrap();
    assert_eq!((list.nodes.len(), list.living().count()), (1, 0));
    f.store.beat(&node("b")).await.unwrap();
    let ids: Vec<String> = f.store.nodes().await.unwrap().nodes.into_iter().map(|n| n.id).collect();
    // Where one process owns the database, whoever comes is the only one.
    let others: &[&str] = if alone { &["b"] } else { &["a", "b"] };
    assert_eq!(ids, others);
    f.pass(SHOWN_MS);
    f.store.beat(&node("b")).await.unwrap();
    let ids: Vec<String> = f.store.nodes().await.unwrap().nodes.into_iter().map(|n| n.id).collect();
    assert_eq!(ids, ["b"], "its last beat is more than an hour ago");
}
