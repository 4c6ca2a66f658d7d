//! The node goes: every connection is told, closed with 1012, and waited for.

use super::peer::Seen;
use super::world::{World, identity, opening, user};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn p9_a_drain_tells_everybody_closes_with_1012_and_waits_for_them() {
    let world = World::open().await;
    let mut peers = Vec::new();
    for name in ["alice", "bob", "carol"] {
        peers.push(world.watch(name).await.0);
    }
    let mut silent = world.connect(opening(Some(identity(user("dora")))));
    let hub = world.hub.clone();
    let drained = tokio::spawn(async move { hub.drain(Duration::from_secs(10)).await });
    for peer in &mut peers {
        let told = peer.frame("drain").await;
        assert_eq!((&told["retryMs"], &told["spreadMs"]), (&json!(500), &json!(5_000)));
        assert_eq!(peer.next().await, Seen::Closed(1012));
    }
    assert_eq!(silent.close_code().await, 1012, "one that said nothing yet is no reason to wait");
    drop((peers, silent));
    tokio::time::timeout(Duration::from_secs(8), drained).await.expect("before the grace is over").unwrap();
    assert_eq!(world.hub.connection_count(), 0);

    let mut late = world.connect(opening(Some(identity(user("alice")))));
    late.send(json!({"t": "hello"}));
    assert_eq!(late.close_code().await, 1012);
}

#[tokio::test]
async fn p9_a_client_that_answers_no_close_is_not_waited_for_beyond_its_limit() {
    let world = World::open().await;
    let (mut peer, _) = world.watch("alice").await;
    let ((), code) = tokio::join!(world.hub.drain(Duration::from_secs(10)), peer.close_code());
    assert_eq!((code, world.hub.connection_count()), (1012, 0));
}
