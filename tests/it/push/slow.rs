//! Readers that do not read: they cost one merged change a task, and in the end their connection.

use super::peer::{LIMIT, item};
use super::world::World;
use serde_json::Value;
use std::cell::Cell;
use taskbell::push::Limits;

#[tokio::test]
async fn p6_a_connection_that_takes_nothing_is_dropped() {
    let world = World::with(Limits { write_ms: 100, close_ms: 100, ..Default::default() }).await;
    let (mut peer, _) = world.watch("alice").await;
    let (id, token) = world.start("alice").await;
    let reported = Cell::new(0);
    let left = async || {
        reported.set(reported.get() + 1);
        world.report(id, token, reported.get(), true).await;
        (world.hub.connection_count() == 0).then_some(())
    };
    crate::support::eventually("the connection is given up", LIMIT, left).await;
    peer.gone().await;
}

#[tokio::test]
async fn k5_readers_that_stand_still_do_not_hold_up_others_and_get_the_latest_state() {
    let world = World::with(Limits { user_connections: 100, ..Default::default() }).await;
    let (id, token) = world.start("alice").await;
    let mut still = Vec::new();
    for _ in 0..50 {
        still.push(world.watch("alice").await.0);
    }
    let (mut healthy, _) = world.watch("alice").await;
    let newest = |frame: &Value| item(frame, &id.to_string()).is_some_and(|t| t["progress"]["current"] == 500);
    for n in 1..=500 {
        world.report(id, token, n, true).await;
    }
    healthy.until("the newest progress", newest).await;
    for peer in &mut still {
        let frames = Cell::new(0);
        let counted = |frame: &Value| {
            frames.set(frames.get() + 1);
            newest(frame)
        };
        peer.until("the newest progress", counted).await;
        assert!(frames.get() <= 4, "what was not read was merged, not queued: {} frames", frames.get());
    }
}
