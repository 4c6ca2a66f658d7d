//! Clients that do not keep to the protocol: an answer or a close, and the node goes on.

use super::peer::{LIMIT, Seen};
use super::world::{World, identity, opening, user};
use serde_json::{Value, json};
use taskbell::core::principal::Principal;
use taskbell::push::{Identity, Incoming, Limits};

/// What a hostile client may send.
fn nonsense() -> Vec<Incoming> {
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let texts = ["null", "[null]", "[]", "{}", "\"x\"", "1e999", "", "{\"t\":null}", "{\"t\":\"teleport\"}", &deep];
    let mut all: Vec<Incoming> = texts.iter().map(|text| Incoming::Text((*text).into())).collect();
    all.push(Incoming::Binary);
    all
}

#[tokio::test]
async fn k10_nonsense_after_the_hello_is_an_error_and_the_connection_goes_on() {
    let world = World::open().await;
    for frame in nonsense() {
        let (mut peer, _) = world.watch("alice").await;
        peer.send_raw(frame.clone());
        let code = peer.frame("err").await["code"].clone();
        assert!(code == "bad-frame" || code == "unknown-frame", "{code}");
        peer.send(json!({"t": "sync"}));
        peer.frame("snap").await;
    }
}

#[tokio::test]
async fn k10_nonsense_before_the_hello_is_a_protocol_error() {
    let world = World::open().await;
    let mut all = nonsense();
    all.push(Incoming::Text("{\"t\":\"sync\"}".into()));
    all.push(Incoming::Faulty);
    all.push(Incoming::Text(format!("{{\"t\":\"hello\",\"x\":\"{}\"}}", "x".repeat(32 * 1024))));
    for frame in all {
        let mut peer = world.connect(opening(Some(identity(user("alice")))));
        peer.send_raw(frame);
        assert_eq!(peer.frame("err").await["code"], "hello-expected");
        assert_eq!(peer.close_code().await, 4409);
    }
}

#[tokio::test]
async fn k10_repeated_nonsense_and_what_is_no_frame_end_the_connection() {
    let world = World::open().await;
    let (mut peer, _) = world.watch("alice").await;
    for _ in 0..100 {
        peer.send_raw(Incoming::Text("null".into()));
    }
    assert_eq!(peer.close_code().await, 4409);
    for frame in [Incoming::Faulty, Incoming::Text("x".repeat(32 * 1024 + 1))] {
        let (mut peer, _) = world.watch("alice").await;
        peer.send_raw(frame);
        assert_eq!(peer.close_code().await, 4409);
    }
    let (mut peer, _) = world.watch("alice").await;
    peer.send_raw(Incoming::Text(format!("{{\"t\":\"sync\",\"x\":\"{}\"}}", "x".repeat(32 * 1024 - 20))));
    peer.frame("snap").await;
}

#[tokio::test]
async fn p7_twenty_commands_a_second_are_followed_and_more_are_refused() {
    let world = World::open().await;
    let (mut peer, _) = world.watch("alice").await;
    for _ in 0..25 {
        peer.send(json!({"t": "view", "visible": true}));
    }
    let refused = peer.frame("err").await;
    assert_eq!((&refused["code"], &refused["retryable"]), (&json!("too-many-commands"), &json!(true)));
    for _ in 0..200 {
        peer.send(json!({"t": "view", "visible": true}));
    }
    assert_eq!(peer.close_code().await, 4409);
}

#[tokio::test]
async fn p7_a_connection_that_does_not_say_hello_in_time_is_closed() {
    let world = World::with(Limits { hello_ms: 50, ..Default::default() }).await;
    let mut peer = world.connect(opening(Some(identity(user("alice")))));
    assert_eq!(peer.next().await, Seen::Closed(4409));
}

#[tokio::test]
async fn a_token_in_the_hello_proves_who_it_is_and_a_bad_one_proves_nothing() {
    let world = World::open().await;
    let id = world.submit("alice").await.to_string();
    let hello = |token: Value| json!({"t": "hello", "token": token});
    let mut peer = world.connect(opening(None));
    peer.send(hello(json!("tb_alice")));
    peer.frame("welcome").await;
    assert_eq!(peer.frame("snap").await["items"][0]["id"], id);
    for token in [json!(null), json!("tb"), json!("")] {
        let mut peer = world.connect(opening(None));
        peer.send(hello(token));
        assert_eq!(peer.frame("err").await["code"], "unauthorized");
        assert_eq!(peer.close_code().await, 4001);
    }
    let mut peer = world.connect(opening(Some(identity(Principal { scopes: Vec::new(), ..user("alice") }))));
    peer.send(hello(json!(null)));
    assert_eq!(peer.frame("err").await["code"], "forbidden");
    assert_eq!(peer.close_code().await, 4403);
}

#[tokio::test]
async fn p11_a_token_is_refreshed_in_place_and_not_by_somebody_elses() {
    let world = World::open().await;
    let mut alice = identity(user("alice"));
    alice.expires_at = Some(world.store.now().await.unwrap().plus(60_500));
    let mut peer = world.connect(opening(Some(alice)));
    peer.send(json!({"t": "hello"}));
    let warning = peer.until("the warning", |frame| frame["t"] == "auth").await;
    assert!(warning["expiresInMs"].as_i64().unwrap() <= 60_000);
    for (token, code) in [("tb_bob", "forbidden"), ("nothing", "unauthorized")] {
        peer.send(json!({"t": "refresh", "token": token}));
        assert_eq!(peer.frame("err").await["code"], code);
    }
    peer.send(json!({"t": "refresh", "token": "tb_alice"}));
    peer.send(json!({"t": "sync"}));
    peer.frame("snap").await;
}

#[tokio::test]
async fn p11_an_identity_that_ends_ends_its_connection() {
    let world = World::open().await;
    let mut alice = identity(user("alice"));
    alice.expires_at = Some(world.store.now().await.unwrap().plus(300));
    let mut peer = world.connect(opening(Some(alice)));
    peer.send(json!({"t": "hello"}));
    assert_eq!(peer.close_code().await, 4001);

    let mut alice = identity(user("alice"));
    alice.credential = Some("session-1".into());
    world.key("session-1").await;
    let mut peer = world.connect(opening(Some(alice)));
    peer.send(json!({"t": "hello"}));
    peer.until("the snapshot", |frame| frame["t"] == "snap").await;
    let (mut other, _) = world.watch("alice").await;
    world.hub.revoke("session-1");
    assert_eq!(peer.close_code().await, 4001);
    other.send(json!({"t": "sync"}));
    other.frame("snap").await;
    tokio::time::timeout(LIMIT, peer.gone()).await.unwrap();
}

#[tokio::test]
async fn p11_what_is_taken_back_elsewhere_ends_its_connections_soon_and_no_others() {
    let world = World::with(Limits { credential_ms: 50, ..Default::default() }).await;
    for hash in ["revoked", "kept"] {
        world.key(hash).await;
    }
    let enter = async |credential: Option<&str>| {
        let who = Identity { credential: credential.map(str::to_owned), ..identity(user("alice")) };
        let mut peer = world.connect(opening(Some(who)));
        peer.send(json!({"t": "hello"}));
        peer.until("the snapshot", |frame| frame["t"] == "snap").await;
        peer
    };
    let (mut revoked, mut kept, mut by_token) =
        (enter(Some("revoked")).await, enter(Some("kept")).await, enter(None).await);
    // Nobody tells the hub: another node, or the command line, has done it.
    assert!(world.store.delete_api_key("revoked").await.unwrap());
    assert_eq!(revoked.close_code().await, 4001);
    for peer in [&mut kept, &mut by_token] {
        peer.send(json!({"t": "sync"}));
        peer.frame("snap").await;
    }
}

#[tokio::test]
async fn p7_a_user_has_at_most_so_many_connections_and_a_closed_one_makes_room() {
    let world = World::with(Limits { user_connections: 2, ..Default::default() }).await;
    let (first, _) = world.watch("alice").await;
    let (_second, _) = world.watch("alice").await;
    let mut third = world.connect(opening(Some(identity(user("alice")))));
    third.send(json!({"t": "hello"}));
    assert_eq!(third.frame("err").await["code"], "too-many-connections");
    assert_eq!(third.close_code().await, 4429);
    world.watch("bob").await;
    drop(first);
    let room = async || {
        let mut again = world.connect(opening(Some(identity(user("alice")))));
        again.send(json!({"t": "hello"}));
        matches!(again.next().await, Seen::Frame(frame) if frame["t"] == "welcome").then_some(())
    };
    crate::support::eventually("room for another one", LIMIT, room).await;
}
