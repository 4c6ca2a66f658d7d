//! Readers that do not read: they cost one merged change a task, and in the end their connection.

use super::peer::{LIMIT, Seen, item};
use super::world::World;
use serde_json::{Value, json};
use std::cell::Cell;
use std::time::Duration;
use taskbell::core::ids::FencingToken;
use taskbell::core::progress::Reported;
use taskbell::core::time::Millis;
use taskbell::push::Limits;
use taskbell::store::Report;
use taskbell::store::logs::{Append, Level, LogStore as _, NewLine};

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

#[tokio::test]
async fn p6_a_reader_that_is_slower_than_the_limit_is_closed_with_4008() {
    let world = World::with(Limits { write_ms: 100, close_ms: 20_000, ..Default::default() }).await;
    let (mut peer, _) = world.watch("alice").await;
    let (id, token) = world.start("alice").await;
    let reports = async {
        for n in 1.. {
            world.report(id, token, n, true).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let reads = async {
        loop {
            // Longer than one frame may wait.
            tokio::time::sleep(Duration::from_millis(400)).await;
            if let Seen::Closed(code) = peer.next().await {
                return code;
            }
        }
    };
    let code = tokio::select! {
        code = tokio::time::timeout(LIMIT, reads) => code.expect("it is closed in time"),
        () = reports => 0,
    };
    assert_eq!(code, 4008);
}

/// Proves: G23.
#[tokio::test]
async fn p6_no_frame_is_larger_than_what_may_wait_however_much_is_to_be_told() {
    let limits = Limits::default();
    let world = World::open().await;
    let (mut early, _) = world.watch("alice").await;
    let wide = |chars: usize| "\u{1F514}".repeat(chars);
    for _ in 0..100 {
        world.submit_titled("alice", &wide(200), true).await;
    }
    let message = Reported { message: Some(Some(wide(2_000))), ..Reported::default() };
    let claimed = world.claim_all().await;
    let report = |(task, token): &(_, _)| Report { task: *task, token: *token, report: message.clone() };
    world.store.report(claimed.iter().map(report).collect()).await.unwrap();
    let (task, _) = claimed[0];
    let line =
        |_| NewLine { at: Millis(0), level: Level::Info, source: "handler", chunk: 1, message: "\"".repeat(16_000) };
    let lines = (0..50).map(line).collect();
    let append = Append { tenant: "t".into(), task, token: FencingToken(1), lines };
    world.logs.append(vec![append]).await.unwrap();

    let bytes = |frame: &Value| frame.to_string().len();
    let frame_most = limits.pending_bytes / 4 * 3 + 1_024;
    let (mut peer, snap) = world.watch("alice").await;
    assert!(bytes(&snap) <= frame_most, "{} bytes", bytes(&snap));
    let shown = snap["items"].as_array().unwrap().len();
    assert!(snap["more"] == true && (10..100).contains(&shown), "{shown} items");
    peer.send(json!({"t": "sub", "topic": format!("task:{task}"), "after": 0}));
    let mut to = 0;
    while to < 50 {
        let log = peer.until("the log", |frame| frame["t"] == "log").await;
        assert!(bytes(&log) <= frame_most, "{} bytes of a log", bytes(&log));
        to = log["to"].as_i64().unwrap();
    }
    // What the first page has not read yet is told in several frames.
    let ends = |frame: &Value| {
        assert!(bytes(frame) <= frame_most, "{} bytes of changes", bytes(frame));
        item(frame, &claimed[99].0.to_string()).is_some_and(|task| task["state"] == "running")
    };
    early.until("the last change", ends).await;
}
