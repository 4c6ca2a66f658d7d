//! What other nodes commit, which no bus tells of: read off the change log of a database that many nodes share.

use super::peer::{Peer, item};
use super::world::{World, user};
use crate::support::ground::Ground;
use serde_json::{Value, json};
use taskbell::bus::Signal;
use taskbell::core::ids::TaskId;
use taskbell::core::principal::{Principal, Role, Scope};
use taskbell::push::Limits;

/// A node that hears nothing of what is committed on its database.
async fn deaf(limits: Limits) -> World {
    World::on(Ground::postgres().await, limits).await
}

/// Steps of a gap are far away, so that whatever comes was read off the change log.
fn patient() -> Limits {
    Limits { gap_ms: 3_600_000, heads_ms: 50, ..Limits::default() }
}

fn shows(id: TaskId, state: &str) -> impl Fn(&Value) -> bool {
    let (id, state) = (id.to_string(), state.to_owned());
    move |frame| frame["t"] == "delta" && item(frame, &id).is_some_and(|t| t["state"] == state.as_str())
}

async fn watcher(world: &World, id: TaskId) -> Peer {
    let scopes = Scope::default_for(Role::Operator);
    let mut peer = world.enter(Principal { role: Role::Operator, scopes, ..user("olga") }, Value::Null).await;
    peer.frame("snap").await;
    peer.send(json!({"t": "sub", "topic": format!("task:{id}")}));
    peer.frame("snap").await;
    peer
}

#[tokio::test]
async fn what_another_node_commits_comes_as_deltas_that_tell_their_heads() {
    let world = deaf(patient()).await;
    let (mut peer, _) = world.watch("alice").await;
    let id = world.submit_silently("alice").await;
    peer.until("the new task", shows(id, "queued")).await;
    let token = world.claim(id).await;
    for current in 1..=5 {
        world.report(id, token, current, false).await;
    }
    world.finish(id, token, false).await;
    let last = peer.until("its end", shows(id, "succeeded")).await;
    assert_eq!(last["counts"]["unseen"], 1);
    assert_eq!(last["head"], world.head("alice").await, "a page that comes back with it has everything");
}

#[tokio::test]
async fn commits_of_two_nodes_in_turn_reach_a_page_in_full() {
    let world = deaf(patient()).await;
    let (mut peer, _) = world.watch("alice").await;
    let mut last = None;
    for n in 0..20 {
        let aloud = n % 2 == 0;
        last = Some(world.submit_titled("alice", "a task", aloud).await);
    }
    let head = world.head("alice").await;
    peer.until("the last head", |frame| frame["head"] == head).await;
    peer.send(json!({"t": "sync", "have": {"epoch": world.store.epoch(), "head": head}}));
    peer.until("that all was told", |frame| frame["t"] == "same").await;
    assert!(last.is_some());
}

#[tokio::test]
async fn a_task_that_another_node_deletes_goes_from_the_page() {
    let world = deaf(Limits { jitter_ms: 10, ..patient() }).await;
    let (mut peer, _) = world.watch("alice").await;
    let id = world.submit("alice").await;
    world.cancel("alice", id).await;
    peer.until("its end", shows(id, "cancelled")).await;
    world.store.delete(&user("alice"), vec![id]).await.unwrap();
    let gone = |frame: &Value| frame["t"] == "snap" && item(frame, &id.to_string()).is_none();
    peer.until("a snapshot without it", gone).await;
}

#[tokio::test]
async fn more_changes_than_a_snapshot_holds_come_as_a_snapshot() {
    let world = deaf(Limits { jitter_ms: 10, ..patient() }).await;
    let (mut peer, _) = world.watch("alice").await;
    let clicks = (0..150).map(|_| world.submit_silently("alice"));
    futures_util::future::join_all(clicks).await;
    let whole = |frame: &Value| frame["counts"]["queued"] == 150;
    peer.until("all of them", whole).await;
}

#[tokio::test]
async fn a_watched_task_of_somebody_else_is_followed_across_nodes_with_its_log() {
    let world = deaf(patient()).await;
    let id = world.submit_silently("alice").await;
    let mut peer = watcher(&world, id).await;
    let token = world.claim(id).await;
    world.report(id, token, 7, false).await;
    let moved = |frame: &Value| item(frame, &id.to_string()).is_some_and(|t| t["progress"]["current"] == 7);
    peer.until("its progress", moved).await;
    world.log_silently(id, 1..=3).await;
    let lines = peer.until("its log", |frame| frame["t"] == "log").await;
    assert_eq!((&lines["from"], &lines["to"]), (&json!(1), &json!(3)));
    world.finish(id, token, false).await;
    peer.until("its end", shows(id, "succeeded")).await;
    world.store.delete(&user("alice"), vec![id]).await.unwrap();
    let gone = peer.until("that it is gone", |frame| frame["t"] == "gone").await;
    assert_eq!(gone["id"], id.to_string());
}

#[tokio::test]
async fn a_word_from_another_node_makes_the_hub_look_at_once() {
    let world = deaf(Limits { heads_ms: 3_600_000, ..patient() }).await;
    let (mut peer, _) = world.watch("alice").await;
    let id = world.submit_silently("alice").await;
    world.bus.pass_on(Signal::Elsewhere);
    peer.until("the new task", shows(id, "queued")).await;
}
