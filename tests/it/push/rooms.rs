//! The topics that many may watch: the tasks of a business record, and all that goes on in a tenant. Who may watch what, what
//! comes, and what heals it where no bus tells.

use super::peer::{LIMIT, Peer, item};
use super::world::{World, identity, opening, user};
use crate::support::eventually;
use crate::support::ground::Ground;
use serde_json::{Value, json};
use taskbell::bus::Signal;
use taskbell::core::principal::{Principal, Role, Scope};
use taskbell::push::{Identity, Limits};
use taskbell::store::accounts::{PasswordHash, Session, User, UserChange};

fn of_role(name: &str, role: Role) -> Principal {
    let tenant = if role == Role::Platform { "*" } else { "t" };
    Principal { tenant: tenant.into(), role, scopes: Scope::default_for(role), ..user(name) }
}

fn operator() -> Principal {
    of_role("olga", Role::Operator)
}

/// A connection that has the snapshot of `me`, and the answer to its subscription.
async fn subscribed(world: &World, who: Principal, topic: &str) -> (Peer, Value) {
    let mut peer = world.enter(who, Value::Null).await;
    peer.frame("snap").await;
    let answer = subscribe(&mut peer, topic).await;
    (peer, answer)
}

async fn subscribe(peer: &mut Peer, topic: &str) -> Value {
    peer.send(json!({"t": "sub", "topic": topic}));
    peer.until("the answer", |frame| frame["topic"] == topic && (frame["t"] == "snap" || frame["t"] == "err")).await
}

fn ids(frame: &Value) -> Vec<&str> {
    frame["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

fn is_of(topic: &str) -> impl Fn(&Value) -> bool {
    move |frame| frame["topic"] == topic
}

#[tokio::test]
async fn a_record_comes_with_its_tasks_newest_first_and_then_with_what_changes() {
    let world = World::open().await;
    let (first, token) = world.start_on_record("alice", "invoice", "2026:7").await;
    let second = world.submit_on_record("alice", "invoice", "2026:7").await;
    world.submit_on_record("alice", "invoice", "2026").await;
    let topic = "record:invoice:2026:7";
    let (mut peer, snap) = subscribed(&world, user("alice"), topic).await;
    assert_eq!(ids(&snap), [second.to_string(), first.to_string()]);
    assert_eq!((&snap["more"], &snap["counts"]), (&json!(false), &Value::Null));
    assert!(snap["epoch"].is_string() && snap["asOf"].is_string() && snap["head"].is_i64());

    let third = world.submit_on_record("alice", "invoice", "2026:7").await;
    let delta = peer.until("a new task of the record", is_of(topic)).await;
    assert_eq!((&delta["t"], ids(&delta)), (&json!("delta"), vec![third.to_string().as_str()]));
    world.finish(first, token, true).await;
    let delta = peer.until("the end", is_of(topic)).await;
    assert_eq!(item(&delta, &first.to_string()).unwrap()["state"], "succeeded");
    world.delete("alice", first).await;
    let gone = peer.until("the deletion", |frame| frame["t"] == "gone").await;
    assert_eq!(gone["id"], first.to_string());

    peer.send(json!({"t": "unsub", "topic": topic}));
    peer.send(json!({"t": "sync"}));
    peer.until("the answer", |frame| frame["t"] == "snap").await;
    world.submit_on_record("alice", "invoice", "2026:7").await;
    assert_eq!(peer.frame("delta").await["topic"], "me", "nothing more of a record that was left");
}

#[tokio::test]
async fn a_record_with_many_tasks_shows_the_newest_and_says_that_there_are_more() {
    let world = World::with(Limits { room_items: 3, ..Limits::default() }).await;
    let mut all = Vec::new();
    for _ in 0..4 {
        all.insert(0, world.submit_on_record("alice", "invoice", "1").await.to_string());
    }
    let (_peer, snap) = subscribed(&world, user("alice"), "record:invoice:1").await;
    assert_eq!((ids(&snap), &snap["more"]), (all[..3].iter().map(String::as_str).collect(), &json!(true)));
}

/// Proves: G24.
#[tokio::test]
async fn p11_tasks_of_others_on_a_record_do_not_exist_unless_its_type_is_open_and_are_cut_then() {
    let world = World::open().await;
    let mut answers = Vec::new();
    for (kind, id) in [("invoice", "1"), ("invoice", "2")] {
        let topic = format!("record:{kind}:{id}");
        if id == "1" {
            world.submit_on_record("alice", kind, id).await;
        }
        let (mut bob, mut snap) = subscribed(&world, user("bob"), &topic).await;
        world.submit_on_record("alice", kind, id).await;
        world.submit("bob").await;
        assert_eq!(bob.frame("delta").await["topic"], "me", "a new task of somebody else is not told");
        (snap["topic"], snap["asOf"], snap["head"]) = (Value::Null, Value::Null, Value::Null);
        answers.push(snap);
    }
    assert_eq!(answers[0], answers[1], "a record of others and one without tasks look the same");

    let topic = "record:shared:1";
    let (hers, token) = world.start_on_record("alice", "shared", "1").await;
    world.report(hers, token, 5, true).await;
    let hers = hers.to_string();
    let (mut bob, snap) = subscribed(&world, user("bob"), topic).await;
    let cut = |task: &Value| {
        assert_eq!((&task["title"], &task["can"], &task["owner"]), (&json!("work"), &json!([]), &json!("alice")));
        assert_eq!(task["progress"]["message"], Value::Null);
        task["progress"]["current"].clone()
    };
    assert_eq!(cut(item(&snap, &hers).unwrap()), 5);
    world.report(hers.parse().unwrap(), token, 6, true).await;
    let delta = bob.until("progress", is_of(topic)).await;
    assert_eq!(cut(item(&delta, &hers).unwrap()), 6);
    let (_alice, snap) = subscribed(&world, user("alice"), topic).await;
    assert_eq!(item(&snap, &hers).unwrap()["title"], "a task", "the owner sees all of it, whoever looked before");
    let (_olga, snap) = subscribed(&world, operator(), topic).await;
    assert_eq!(item(&snap, &hers).unwrap()["title"], "a task");

    let stranger = Principal { tenant: "other".into(), ..operator() };
    let (_stranger, snap) = subscribed(&world, stranger, topic).await;
    assert_eq!(snap["items"], json!([]), "an operator of another tenant is nobody here");
}

/// Proves: G24.
#[tokio::test]
async fn p11_topics_that_nobody_could_watch_and_those_of_others_are_answered_alike() {
    let world = World::open().await;
    let (mut alice, mut refused) = subscribed(&world, user("alice"), "ops").await;
    refused["topic"].take();
    assert_eq!((&refused["t"], &refused["code"]), (&json!("err"), &json!("not-found")));
    let long = format!("record:x:{}", "1".repeat(256));
    for topic in [
        "",
        "task",
        "me:1",
        "ops:t",
        "OPS",
        "record",
        "record:",
        "record:x",
        "record::1",
        "record:x:",
        &long,
        "record:x:a\0",
    ] {
        let mut answer = subscribe(&mut alice, topic).await;
        answer["topic"].take();
        assert_eq!(answer, refused, "{topic:?}");
    }
}

#[tokio::test]
async fn operators_watch_the_unfinished_tasks_and_the_counts_of_their_tenant() {
    let world = World::open().await;
    let (done, token) = world.start("alice").await;
    world.finish(done, token, true).await;
    let (id, token) = world.start("bob").await;
    let (mut olga, snap) = subscribed(&world, operator(), "ops").await;
    assert_eq!(ids(&snap), [id.to_string()], "what has ended is in the counts alone");
    assert_eq!((&snap["counts"]["running"], &snap["counts"]["succeeded"]), (&json!(1), &json!(1)));
    let (mut root, all) = subscribed(&world, of_role("root", Role::Platform), "ops").await;
    assert_eq!(ids(&all), [id.to_string()], "platform sees every tenant");
    let stranger = Principal { tenant: "other".into(), ..operator() };
    let (_stranger, none) = subscribed(&world, stranger, "ops").await;
    assert_eq!((&none["items"], &none["counts"]["running"]), (&json!([]), &json!(0)));

    world.finish(id, token, true).await;
    for peer in [&mut olga, &mut root] {
        let ended = |frame: &Value| item(frame, &id.to_string()).is_some_and(|task| task["state"] == "succeeded");
        peer.until("the end of somebody's task", |frame| frame["topic"] == "ops" && ended(frame)).await;
        peer.until("the counts", |frame| frame["topic"] == "ops" && frame["counts"]["succeeded"] == 2).await;
    }
}

#[tokio::test]
async fn p5_a_busy_tenant_is_told_to_its_operators_at_the_pace_of_progress() {
    let world = World::with(Limits { progress_ms: 60_000, ..Limits::default() }).await;
    let (mut olga, _) = subscribed(&world, operator(), "ops").await;
    world.submit("alice").await;
    olga.until("the first change at once", is_of("ops")).await;
    for _ in 0..5 {
        world.submit("alice").await;
    }
    world.submit("olga").await;
    let delta = olga.until("her own task", |frame| frame["topic"] == "me").await;
    assert_eq!(ids(&delta).len(), 1);
    let together = olga.until("the others, merged", is_of("ops")).await;
    assert!(ids(&together).len() >= 5, "{together}");
}

/// Proves: G24.
#[tokio::test]
async fn p11_rights_are_looked_at_again_at_each_refresh() {
    let world = World::open().await;
    let alice = of_role("alice", Role::Operator);
    let (mut peer, _) = subscribed(&world, alice, "ops").await;
    let record = "record:invoice:1";
    world.submit_on_record("bob", "invoice", "1").await;
    let snap = subscribe(&mut peer, record).await;
    assert_eq!(ids(&snap).len(), 1, "an operator sees what bob did");
    // The new token says that she is a user now.
    peer.send(json!({"t": "refresh", "token": "tb_alice"}));
    let refused = peer.until("the end of what she may not watch", |frame| frame["t"] == "err").await;
    assert_eq!((&refused["topic"], &refused["code"]), (&json!("ops"), &json!("not-found")));
    let snap = peer.until("the record as she sees it now", |f| f["topic"] == record && f["t"] == "snap").await;
    assert_eq!(snap["items"], json!([]));
    world.submit_on_record("bob", "invoice", "1").await;
    let hers = world.submit_on_record("alice", "invoice", "1").await.to_string();
    let delta = peer.until("her own task on it", is_of(record)).await;
    assert_eq!(ids(&delta), [hers], "and nothing of bob's");
}

#[tokio::test]
async fn p11_a_user_whose_role_changes_loses_the_connection_soon() {
    let world = World::with(Limits { credential_ms: 50, ..Limits::default() }).await;
    let now = world.store.now().await.unwrap();
    let password = PasswordHash("none".into());
    let olga = User {
        name: "olga".into(),
        tenant: "t".into(),
        role: Role::Operator,
        password,
        created_at: now,
        updated_at: now,
    };
    let who = olga.principal();
    assert!(world.store.add_user(olga).await.unwrap());
    let session = Session {
        hash: "session".into(),
        principal: who.clone(),
        created_at: now,
        used_at: now,
        expires_at: now.plus(60_000),
        rests_on: Some(now),
    };
    world.store.put_session(session).await.unwrap();
    let mut peer = world.connect(opening(Some(Identity { credential: Some("session".into()), ..identity(who) })));
    peer.send(json!({"t": "hello"}));
    peer.until("the snapshot", |frame| frame["t"] == "snap").await;
    assert_eq!(subscribe(&mut peer, "ops").await["t"], "snap");
    let change = UserChange { role: Some(Role::User), password: None };
    assert!(world.store.change_user("olga", change, now.plus(1)).await.unwrap());
    assert_eq!(peer.close_code().await, 4001);
}

/// Proves: G24.
#[tokio::test]
async fn p4_what_another_node_commits_reaches_records_and_operators_without_a_bus() {
    let world = World::on(Ground::postgres().await, Limits { room_ms: 100, ..Limits::default() }).await;
    let (old, token) = world.start_on_record("bob", "invoice", "1").await;
    let record = "record:invoice:1";
    let (mut olga, snap) = subscribed(&world, operator(), record).await;
    assert_eq!(ids(&snap), [old.to_string()]);
    assert_eq!(ids(&subscribe(&mut olga, "ops").await), [old.to_string()]);
    // As the other node would: committed, and nobody here is told.
    let new = world.submit_on_record_silently("bob", "invoice", "1").await.to_string();
    // Each room looks by itself, so that either may be the first to tell.
    let mut rooms = vec![record, "ops"];
    let told = |frame: &Value| {
        rooms.retain(|topic| frame["topic"] != *topic || item(frame, &new).is_none());
        rooms.is_empty()
    };
    olga.until("the new task, in both", told).await;
    world.finish(old, token, false).await;
    let ended = |frame: &Value| item(frame, &old.to_string()).is_some_and(|task| task["state"] == "succeeded");
    let (mut shown, mut counted) = (false, false);
    let told = |frame: &Value| {
        shown |= frame["topic"] == record && ended(frame);
        counted |= frame["topic"] == "ops" && frame["counts"]["succeeded"] == 1;
        shown && counted
    };
    olga.until("the end, where the record is shown, and the counts", told).await;
    world.store.delete(&user("bob"), vec![old]).await.unwrap();
    olga.until("the deletion", |frame| frame["t"] == "gone" && frame["id"] == old.to_string()).await;
    // A look that finds nothing new tells nothing: what comes next is what happens next.
    world.submit("olga").await;
    let delta = olga.until("her own task", |frame| frame["topic"] == "me").await;
    assert_eq!(delta["t"], "delta");
}

/// Proves: G24.
#[tokio::test]
async fn p4_a_bus_that_lost_signals_makes_the_rooms_look_again() {
    let world = World::open().await;
    let topic = "record:invoice:1";
    let (mut peer, _) = subscribed(&world, user("alice"), topic).await;
    let lost = world.submit_on_record_silently("alice", "invoice", "1").await.to_string();
    world.bus.publish(Signal::Missed);
    let snap = peer.until("the record again", |frame| frame["topic"] == topic && frame["t"] == "snap").await;
    assert!(item(&snap, &lost).is_some());
}

#[tokio::test]
async fn p7_records_count_among_the_topics_of_a_connection() {
    let world = World::with(Limits { topic_count: 2, ..Limits::default() }).await;
    let (mut peer, _) = subscribed(&world, user("alice"), "record:invoice:1").await;
    assert_eq!(subscribe(&mut peer, "record:invoice:2").await["t"], "snap");
    assert_eq!(
        subscribe(&mut peer, "record:invoice:1").await["t"],
        "snap",
        "one that is watched already is told again"
    );
    let refused = subscribe(&mut peer, "record:invoice:3").await;
    assert_eq!(refused["code"], "too-many-topics");
    peer.send(json!({"t": "unsub", "topic": "record:invoice:1"}));
    assert_eq!(subscribe(&mut peer, "record:invoice:3").await["t"], "snap");
}

#[tokio::test]
async fn p5_everybody_who_watches_a_record_hears_of_each_change_once() {
    let world = World::with(Limits { user_connections: 100, ..Limits::default() }).await;
    world.submit_on_record("alice", "invoice", "1").await;
    let mut peers = Vec::new();
    for _ in 0..40 {
        peers.push(subscribed(&world, user("alice"), "record:invoice:1").await.0);
    }
    let id = world.submit_on_record("alice", "invoice", "1").await.to_string();
    for peer in &mut peers {
        let delta = peer.until("the change", is_of("record:invoice:1")).await;
        assert_eq!(ids(&delta), [id.as_str()]);
    }
    drop(peers);
    let empty = async || (world.hub.connection_count() == 0).then_some(());
    eventually("all have left", LIMIT, empty).await;
}
