//! The topic of one task: who may watch it, what comes, and the tail of its log.

use super::peer::{Peer, item};
use super::world::{World, user};
use serde_json::{Value, json};
use taskbell::core::ids::TaskId;
use taskbell::core::principal::{Principal, Role, Scope};

fn operator() -> Principal {
    let scopes = Scope::default_for(Role::Operator);
    Principal { role: Role::Operator, scopes, ..user("olga") }
}

async fn quiet(world: &World, who: Principal) -> Peer {
    let mut peer = world.enter(who, Value::Null).await;
    peer.frame("snap").await;
    peer
}

#[tokio::test]
async fn a_subscribed_task_comes_as_a_snapshot_and_then_as_deltas() {
    let world = World::open().await;
    let (id, token) = world.start("alice").await;
    let topic = format!("task:{id}");
    let mut peer = quiet(&world, operator()).await;
    peer.send(json!({"t": "sub", "topic": topic}));
    let snap = peer.frame("snap").await;
    assert_eq!((&snap["topic"], snap["items"].as_array().unwrap().len()), (&json!(topic), 1));
    assert!(snap["items"][0]["leaseOwner"] == "n", "an operator sees who runs it");
    world.report(id, token, 5, true).await;
    let delta = peer.frame("delta").await;
    assert_eq!((&delta["topic"], &delta["items"][0]["progress"]["current"]), (&json!(topic), &json!(5)));
    assert_eq!(delta["head"], snap["head"], "the head is that of `me`, which did not move");
    world.finish(id, token, true).await;
    peer.until("the end", |frame| item(frame, &id.to_string()).is_some_and(|t| t["state"] == "succeeded")).await;

    peer.send(json!({"t": "unsub", "topic": topic}));
    peer.send(json!({"t": "sync"}));
    peer.until("the answer to the sync", |frame| frame["t"] == "snap").await;
    world.mark_seen("alice", id).await;
    world.submit("olga").await;
    let delta = peer.frame("delta").await;
    assert_eq!(delta["topic"], "me", "nothing more of a topic that was left");
}

/// Proves: G21.
#[tokio::test]
async fn p11_unknown_and_forbidden_tasks_are_answered_alike() {
    let world = World::open().await;
    let hers = world.submit("alice").await;
    let mut bob = quiet(&world, user("bob")).await;
    let mut answers = Vec::new();
    for topic in [format!("task:{hers}"), format!("task:{}", TaskId::new()), "task:nonsense".into()] {
        bob.send(json!({"t": "sub", "topic": topic}));
        let mut answer = bob.frame("err").await;
        assert_eq!(answer["topic"], topic);
        answer["topic"].take();
        answers.push(answer);
    }
    assert_eq!(answers[0]["code"], "not-found");
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    world.cancel("alice", hers).await;
    world.submit("bob").await;
    assert_eq!(bob.frame("delta").await["topic"], "me", "a refused topic brings nothing");

    let mut stranger = quiet(&world, Principal { tenant: "other".into(), ..operator() }).await;
    stranger.send(json!({"t": "sub", "topic": format!("task:{hers}")}));
    assert_eq!(stranger.frame("err").await["code"], "not-found", "an operator of another tenant is nobody here");
}

#[tokio::test]
async fn p7_a_connection_has_at_most_32_topics() {
    let limits = taskbell::push::Limits { commands_per_second: 1_000, ..Default::default() };
    let world = World::with(limits).await;
    let mut peer = quiet(&world, user("alice")).await;
    let mut ids = Vec::new();
    for _ in 0..33 {
        ids.push(world.submit_silently("alice").await);
    }
    for id in &ids[..32] {
        peer.send(json!({"t": "sub", "topic": format!("task:{id}"), "log": false}));
        peer.until("its snapshot", |frame| frame["t"] == "snap" && frame["topic"] == format!("task:{id}")).await;
    }
    peer.send(json!({"t": "sub", "topic": format!("task:{}", ids[32])}));
    let refused = peer.until("the refusal", |frame| frame["t"] == "err").await;
    assert_eq!((&refused["code"], &refused["retryable"]), (&json!("too-many-topics"), &json!(true)));
    peer.send(json!({"t": "unsub", "topic": format!("task:{}", ids[0])}));
    peer.send(json!({"t": "sub", "topic": format!("task:{}", ids[32])}));
    peer.until("room again", |frame| frame["topic"] == format!("task:{}", ids[32]) && frame["t"] == "snap").await;
}

#[tokio::test]
async fn a_log_tail_begins_with_the_last_lines_and_follows_without_gaps() {
    let world = World::open().await;
    let (id, _) = world.start("alice").await;
    world.log(id, 1..=500).await;
    let mut peer = quiet(&world, user("alice")).await;
    peer.send(json!({"t": "sub", "topic": format!("task:{id}")}));
    peer.until("the task", |frame| frame["t"] == "snap").await;
    let mut seen = Vec::new();
    while seen.last() != Some(&500) {
        seen.extend(seqs(&peer.until("the last lines", |frame| frame["t"] == "log").await));
    }
    assert_eq!(seen, (301..=500).collect::<Vec<_>>());
    for from in [501, 511, 521] {
        world.log(id, from..=from + 9).await;
    }
    while seen.last() != Some(&530) {
        seen.extend(seqs(&peer.until("what has grown", |frame| frame["t"] == "log").await));
    }
    assert_eq!(seen, (301..=530).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_log_tail_goes_on_where_the_client_is_and_stays_away_when_not_wanted() {
    let world = World::open().await;
    let (id, _) = world.start("alice").await;
    world.log(id, 1..=50).await;
    let topic = format!("task:{id}");
    let mut peer = quiet(&world, user("alice")).await;
    peer.send(json!({"t": "sub", "topic": topic, "after": 47}));
    let log = peer.until("the log", |frame| frame["t"] == "log").await;
    assert_eq!((&log["from"], &log["to"], seqs(&log)), (&json!(48), &json!(50), vec![48, 49, 50]));

    let mut deaf = quiet(&world, user("alice")).await;
    deaf.send(json!({"t": "sub", "topic": topic, "log": false}));
    deaf.until("the task", |frame| frame["topic"] == topic).await;
    world.log(id, 51..=51).await;
    peer.until("the line for who wants it", |frame| frame["t"] == "log" && frame["to"] == 51).await;
    world.submit("alice").await;
    assert_eq!(deaf.frame("delta").await["topic"], "me", "no log before it");
}

fn seqs(log: &Value) -> Vec<i64> {
    log["lines"].as_array().unwrap().iter().map(|line| line["seq"].as_i64().unwrap()).collect()
}
