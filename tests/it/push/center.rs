//! The notification center on the wire: snapshot, what is newer, and coming back.

use super::peer::{Seen, item};
use super::world::{World, user};
use crate::support::ground::Ground;
use serde_json::{Value, json};
use std::time::Duration;
use taskbell::bus::Signal;
use taskbell::core::change::Change;

#[tokio::test]
async fn p1_a_connection_gets_a_snapshot_and_one_that_has_it_all_gets_same() {
    let world = World::open().await;
    let id = world.submit("alice").await.to_string();
    world.submit("bob").await;
    let (_peer, snap) = world.watch("alice").await;
    assert_eq!(snap["topic"], "me");
    assert_eq!(snap["head"], world.head("alice").await);
    assert_eq!(snap["items"].as_array().unwrap().len(), 1, "only what is hers");
    assert_eq!(item(&snap, &id).unwrap()["state"], "queued");
    assert_eq!(snap["counts"]["queued"], 1);
    assert_eq!(snap["more"], false);

    let have = json!({"epoch": snap["epoch"], "head": snap["head"]});
    let mut back = world.enter(user("alice"), have).await;
    assert_eq!(back.frame("same").await["head"], snap["head"]);

    for stale in
        [json!({"epoch": "another", "head": snap["head"]}), json!({"epoch": snap["epoch"], "head": 0}), json!({})]
    {
        let mut other = world.enter(user("alice"), stale).await;
        other.frame("snap").await;
    }
}

#[tokio::test]
async fn p1_somebody_without_tasks_gets_an_empty_snapshot() {
    let world = World::open().await;
    let (_peer, snap) = world.watch("nobody-yet").await;
    assert_eq!((&snap["items"], &snap["more"], &snap["counts"]["unseen"]), (&json!([]), &json!(false), &json!(0)));
}

#[tokio::test]
async fn p2_revisions_rise_with_each_push_and_the_head_follows() {
    let world = World::open().await;
    let (mut peer, snap) = world.watch("alice").await;
    let (id, token) = world.start("alice").await;
    let (mut revision, mut head) = (0, snap["head"].as_i64().unwrap());
    for n in 1..=20 {
        world.report(id, token, n * 10, true).await;
    }
    world.finish(id, token, true).await;
    loop {
        let frame = peer.frame("delta").await;
        assert!(frame["head"].as_i64().unwrap() >= head);
        head = frame["head"].as_i64().unwrap();
        let task = item(&frame, &id.to_string()).unwrap();
        assert!(task["revision"].as_i64().unwrap() > revision);
        revision = task["revision"].as_i64().unwrap();
        if task["state"] == "succeeded" {
            break;
        }
    }
    assert_eq!(revision, world.task(id).await.revision.0, "the last push is the row");
    assert_eq!(head, world.head("alice").await);
}

#[tokio::test]
async fn p2_what_is_known_of_another_database_counts_nothing_and_a_head_that_is_ahead_neither() {
    let world = World::open().await;
    let id = world.submit("alice").await.to_string();
    let (_, first) = world.watch("alice").await;
    let (epoch, head) = (&first["epoch"], first["head"].as_i64().unwrap());
    for have in [
        json!({"epoch": "another", "head": head}),
        json!({"epoch": epoch, "head": head + 10}),
        json!({"epoch": epoch, "head": head - 1}),
        json!({"epoch": epoch, "head": -1}),
        json!({"epoch": epoch}),
        json!({"head": head}),
    ] {
        let mut peer = world.enter(user("alice"), have.clone()).await;
        let snap = peer.frame("snap").await;
        assert!(item(&snap, &id).is_some(), "{have}");
        assert_eq!((&snap["epoch"], &snap["head"]), (epoch, &json!(head)), "{have}: the head may fall, for it is true");
    }
    let mut peer = world.enter(user("alice"), json!({"epoch": epoch, "head": head})).await;
    peer.frame("same").await;
}

#[tokio::test]
async fn p3_nothing_is_lost_between_the_registration_and_the_snapshot() {
    let world = World::open().await;
    let (id, token) = world.start("alice").await;
    for round in 1..=30 {
        let ((), mut peer) = tokio::join!(
            async {
                world.report(id, token, round * 10, true).await;
                world.submit("alice").await;
                world.report(id, token, round * 10 + 5, true).await;
            },
            world.enter(user("alice"), Value::Null)
        );
        let wanted = world.task(id).await.revision.0;
        let told = |frame: &Value| item(frame, &id.to_string()).is_some_and(|task| task["revision"] == wanted);
        peer.until("the newest revision", told).await;
    }
}

#[tokio::test]
async fn k1_an_end_that_came_while_nobody_was_connected_is_there_after_the_reconnect() {
    let world = World::open().await;
    let (id, token) = world.start("alice").await;
    let (peer, snap) = world.watch("alice").await;
    drop(peer);
    world.finish(id, token, true).await;
    let mut back = world.enter(user("alice"), json!({"epoch": snap["epoch"], "head": snap["head"]})).await;
    let snap = back.frame("snap").await;
    assert_eq!(item(&snap, &id.to_string()).unwrap()["state"], "succeeded");
    assert_eq!(snap["counts"]["unseen"], 1);
}

#[tokio::test]
async fn k1_a_hidden_page_that_missed_progress_is_not_answered_same() {
    let world = World::open().await;
    let (id, token) = world.start("alice").await;
    let (mut peer, _) = world.watch("alice").await;
    peer.send(json!({"t": "view", "visible": false}));
    // The answer to a sync proves that the view before it was taken.
    peer.send(json!({"t": "sync"}));
    peer.until("the answer", |frame| frame["t"] == "snap").await;
    world.report(id, token, 1, true).await;
    world.report(id, token, 700, true).await;
    let other = world.submit("alice").await.to_string();
    let delta = peer.until("the new task", |frame| item(frame, &other).is_some()).await;
    let have = json!({"epoch": "", "head": delta["head"]});
    let epoch = world.store.epoch();
    let mut back = world.enter(user("alice"), json!({"epoch": epoch, "head": have["head"]})).await;
    let snap = back.frame("snap").await;
    assert_eq!(item(&snap, &id.to_string()).unwrap()["progress"]["current"], 700);
}

#[tokio::test]
async fn p4_a_lost_signal_is_healed_by_the_next_one() {
    let world = World::open().await;
    let (mut peer, _) = world.watch("alice").await;
    let lost = world.submit_silently("alice").await.to_string();
    world.submit("alice").await;
    peer.until("the task whose signal was lost", |frame| item(frame, &lost).is_some()).await;
}

/// Proves: G8.
#[tokio::test]
async fn p4_a_lost_signal_is_healed_by_the_next_ping() {
    let limits = taskbell::push::Limits { ping_ms: 100, ..Default::default() };
    let world = World::with(limits).await;
    let (mut peer, _) = world.watch("alice").await;
    let lost = world.submit_silently("alice").await.to_string();
    let head = world.head("alice").await;
    peer.until("a ping with the head of the database", |frame| frame["t"] == "ping" && frame["head"] == head).await;
    peer.send(json!({"t": "pong"}));
    peer.until("the task, without being asked", |frame| item(frame, &lost).is_some()).await;
}

#[tokio::test]
async fn p4_what_another_node_commits_is_told_without_a_bus_between_them() {
    let world = World::on(Ground::postgres().await, taskbell::push::Limits::default()).await;
    let (mut peer, _) = world.watch("alice").await;
    // As the other node would: committed, and nobody here is told.
    let other = world.submit_silently("alice").await.to_string();
    peer.until("the task of the other node, before any ping", |frame| item(frame, &other).is_some()).await;
}

#[tokio::test]
async fn p4_a_bus_that_lost_signals_makes_everybody_look_again() {
    let world = World::open().await;
    let (mut peer, _) = world.watch("alice").await;
    let lost = world.submit_silently("alice").await.to_string();
    world.bus.publish(Signal::Missed);
    let snap = peer.frame("snap").await;
    assert!(item(&snap, &lost).is_some());
}

#[tokio::test]
async fn p5_counts_come_from_the_database_and_only_with_a_change_of_state() {
    let world = World::open().await;
    let (id, token) = world.start("alice").await;
    let (mut peer, _) = world.watch("alice").await;
    let name = id.to_string();
    // The first announcement after the start of the hub may count as a change; from the second on progress is known.
    world.report(id, token, 10, true).await;
    peer.until("progress", |frame| item(frame, &name).is_some_and(|t| t["progress"]["current"] == 10)).await;
    world.report(id, token, 20, true).await;
    let delta = peer.frame("delta").await;
    assert!(delta.get("counts").is_none(), "{delta}");
    world.finish(id, token, true).await;
    let delta = peer.frame("delta").await;
    assert_eq!((&delta["counts"]["running"], &delta["counts"]["unseen"]), (&json!(0), &json!(1)));
    world.mark_seen("alice", id).await;
    let delta = peer.until("the mark", |frame| item(frame, &name).is_some_and(|t| t["seen"] == true)).await;
    assert_eq!(delta["counts"]["unseen"], 0);
}

#[tokio::test]
async fn p5_a_hidden_page_gets_ends_and_counts_but_no_progress() {
    let world = World::open().await;
    let (id, token) = world.start("alice").await;
    let (mut seen, _) = world.watch("alice").await;
    let (mut hidden, _) = world.watch("alice").await;
    hidden.send(json!({"t": "view", "visible": false}));
    hidden.send(json!({"t": "sync"}));
    hidden.until("the answer", |frame| frame["t"] == "snap").await;
    let current = |frame: &Value| item(frame, &id.to_string()).map(|task| task["progress"]["current"].clone());
    world.report(id, token, 1, true).await;
    hidden.until("the first announcement", |frame| current(frame) == Some(json!(1))).await;
    world.report(id, token, 2, true).await;
    seen.until("progress", |frame| current(frame) == Some(json!(2))).await;
    world.finish(id, token, true).await;
    let delta = hidden.frame("delta").await;
    assert_eq!(item(&delta, &id.to_string()).unwrap()["state"], "succeeded", "what came between is not told");
    assert_eq!(delta["counts"]["unseen"], 1);

    let (other, token) = world.start("alice").await;
    world.report(other, token, 5, true).await;
    hidden.until("the start", |frame| item(frame, &other.to_string()).is_some_and(|t| t["state"] == "running")).await;
    world.report(other, token, 6, true).await;
    hidden.send(json!({"t": "view", "visible": true}));
    let progress = |frame: &Value| item(frame, &other.to_string()).is_some_and(|t| t["progress"]["current"] == 6);
    hidden.until("what was held back", progress).await;
}

#[tokio::test]
async fn p5_a_frame_is_small_and_many_changes_come_in_several() {
    // What the bus brings at once, and not what is read off the change log meanwhile.
    let world = World::with(taskbell::push::Limits { heads_ms: 3_600_000, ..Default::default() }).await;
    let (mut peer, _) = world.watch("alice").await;
    let mut all = std::collections::BTreeSet::new();
    for _ in 0..90 {
        all.insert(world.submit_silently("alice").await);
    }
    let tasks = world.store.tasks(&Default::default(), &all.iter().copied().collect::<Vec<_>>()).await.unwrap();
    let changes: Vec<_> = tasks.into_iter().map(|t| Change::Task(Box::new(t))).collect();
    world.bus.publish(Signal::Changes(changes.into()));
    let mut heads = Vec::new();
    while !all.is_empty() {
        let delta = peer.frame("delta").await;
        let items = delta["items"].as_array().unwrap();
        assert!(items.len() <= 64 && delta["items"].to_string().len() <= 33 * 1024, "{} items", items.len());
        for item in items {
            assert!(all.remove(&item["id"].as_str().unwrap().parse().unwrap()), "each task once");
        }
        heads.push(delta["head"].as_i64().unwrap());
    }
    assert!(heads.len() > 1 && heads[0] == 0, "a part is not told as the whole: {heads:?}");
    assert_eq!(heads.last(), Some(&world.head("alice").await));
}

#[tokio::test]
async fn a_deleted_task_is_gone_with_a_higher_revision() {
    let world = World::open().await;
    let (mut peer, _) = world.watch("alice").await;
    let id = world.submit("alice").await;
    world.cancel("alice", id).await;
    let ended = |frame: &Value| item(frame, &id.to_string()).is_some_and(|task| task["state"] == "cancelled");
    let revision = peer.until("the end", ended).await["items"][0]["revision"].as_i64().unwrap();
    world.delete("alice", id).await;
    let gone = peer.frame("gone").await;
    assert_eq!((gone["id"].as_str().unwrap(), gone["revision"].as_i64().unwrap()), (&*id.to_string(), revision + 1));
    assert_eq!(peer.frame("delta").await["head"], world.head("alice").await);
}

#[tokio::test]
async fn p8_connections_of_one_user_share_one_reading_of_the_center() {
    let world = World::open().await;
    world.submit("alice").await;
    let mut snaps = Vec::new();
    for _ in 0..5 {
        snaps.push(world.watch("alice").await.1);
    }
    assert!(snaps.iter().all(|snap| snap["asOf"] == snaps[0]["asOf"]), "read once");
    world.submit("alice").await;
    let (_, snap) = world.watch("alice").await;
    assert_eq!(snap["items"].as_array().unwrap().len(), 2, "and anew once the head has moved");
}

#[tokio::test]
async fn p7_a_ping_asks_for_a_sign_of_life_and_an_answered_one_keeps_the_connection() {
    let limits = taskbell::push::Limits { ping_ms: 50, pong_ms: 20_000, ..Default::default() };
    let world = World::with(limits).await;
    let (mut peer, _) = world.watch("alice").await;
    for _ in 0..5 {
        peer.frame("ping").await;
        peer.send(json!({"t": "pong"}));
    }
    let limits = taskbell::push::Limits { ping_ms: 50, pong_ms: 100, ..Default::default() };
    let world = World::with(limits).await;
    let (mut silent, _) = world.watch("alice").await;
    silent.frame("ping").await;
    assert_eq!(silent.next().await, Seen::Closed(4010));
    tokio::time::timeout(Duration::from_secs(30), silent.gone()).await.unwrap();
}

#[tokio::test]
async fn an_estimate_that_nothing_moves_any_more_is_withdrawn_without_a_change() {
    let world = World::open().await;
    let (id, token) = world.start("alice").await;
    for n in 1..=6 {
        world.pass(2_000);
        world.report(id, token, n * 10, true).await;
    }
    let topic = format!("task:{id}");
    let eta = |frame: &Value| item(frame, &id.to_string()).map(|task| task["progress"]["eta"]["state"].clone());
    let (mut peer, snap) = world.watch("alice").await;
    assert_eq!(eta(&snap), Some(json!("estimated")));
    peer.send(json!({"t": "sub", "topic": topic}));
    peer.until("the task", |frame| frame["topic"] == topic).await;
    let revision = world.task(id).await.revision;
    world.pass(600_000);
    for topic in ["me", &topic] {
        let stalled = |frame: &Value| frame["topic"] == topic && eta(frame) == Some(json!("stalled"));
        let frame = peer.until("the withdrawn estimate", stalled).await;
        assert_eq!(frame["t"], "snap", "a delta of a known revision would be dropped by the client");
        assert_eq!(frame["items"][0]["revision"], revision.0);
    }
}

#[tokio::test]
async fn silence_past_a_lease_is_told_without_a_change_and_taken_back_when_the_worker_is_heard() {
    let world = World::open().await;
    let (id, token) = world.start("alice").await;
    let (mut peer, snap) = world.watch("alice").await;
    let since = |frame: &Value| item(frame, &id.to_string()).map(|task| task["silentSince"].clone());
    assert_eq!(since(&snap), Some(Value::Null));
    let until = world.task(id).await.lease_until.unwrap();
    world.pass(600_000);
    let frame = peer.until("the silence", |frame| since(frame).is_some_and(|at| at.is_string())).await;
    assert_eq!((frame["t"].as_str(), since(&frame)), (Some("snap"), Some(json!(until.to_string()))));
    // Whose lease it was is told to operators alone, and a user sees that nobody is heard all the same.
    assert!(item(&frame, &id.to_string()).unwrap().get("leaseUntil").is_none());
    world.finish(id, token, true).await;
    peer.until("the end", |frame| item(frame, &id.to_string()).is_some_and(|task| task["state"] == "succeeded")).await;
}

#[tokio::test]
async fn p10_a_database_that_does_not_answer_is_told_and_what_was_missed_comes_after() {
    let world = World::open().await;
    let (id, token) = world.start("alice").await;
    let (mut peer, _) = world.watch("alice").await;
    world.finish(id, token, false).await;
    let ended = world.task(id).await;
    world.hide_tasks(true).await;
    world.bus.publish(Signal::Changes(vec![Change::Task(Box::new(ended))].into()));
    assert_eq!(peer.frame("status").await["live"], "degraded");
    world.hide_tasks(false).await;
    let snap = peer.frame("snap").await;
    assert_eq!(item(&snap, &id.to_string()).unwrap()["state"], "succeeded");
    assert_eq!(snap["counts"]["unseen"], 1);
    assert_eq!(peer.frame("status").await["live"], "ok");
}

#[tokio::test]
async fn p6_an_idle_connection_holds_little() {
    let world = World::open().await;
    let (_peer, end) = super::peer::Peer::pair();
    let future = world.hub.serve(end, super::world::opening(None));
    let bytes = std::mem::size_of_val(&*future);
    assert!(bytes <= 2 * 1024, "the future of a connection has {bytes} bytes");
}
