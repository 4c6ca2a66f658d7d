//! What is sent: the chunk word for word, its headers, its signatures, the same bytes for the same attempt.

use super::{AMPLE, NEWER, SECRET, chunk, handler, run, run_by};
use crate::support::played::{Played, Seen, Target};
use serde_json::{Value, json};
use taskbell::core::signing::SigningKeys;

async fn target() -> Target {
    Target::start(|_, _| Played::json(&json!({"hasMore": false}))).await
}

fn proven_by(seen: &Seen, secret: &str) -> bool {
    let at: i64 = seen.header("webhook-timestamp").parse().unwrap();
    let now = jiff::Timestamp::now().as_second();
    let keys = SigningKeys::parse([secret]).unwrap();
    keys.verify(&seen.header("webhook-id"), at, &seen.body, &seen.header("webhook-signature"), now).is_ok()
}

#[tokio::test]
async fn a_chunk_is_posted_with_its_callback_signed_and_named() {
    let target = target().await;
    run(&target, chunk(2, json!({"row": 9}))).await.0.unwrap();
    let seen = &target.seen()[0];
    assert!(seen.head.starts_with("POST /run HTTP/1.1\r\n"), "{}", seen.head);
    let id = "01932b6e-7a00-7000-8000-000000000001";
    for (name, value) in [
        ("content-type", "application/json".to_owned()),
        ("webhook-id", format!("{id}:13:2")),
        ("idempotency-key", format!("{id}:13")),
        ("taskbell-fencing-token", "3".to_owned()),
    ] {
        assert_eq!(seen.header(name), value, "{name}");
    }
    assert!(proven_by(seen, SECRET) && !proven_by(seen, NEWER));
    let mut body = seen.json();
    let callback = body.as_object_mut().unwrap().remove("callback").unwrap();
    assert_eq!(callback["url"], "http://127.0.0.1:9/api/v1/callback");
    assert!(callback["token"].as_str().unwrap().starts_with("tbc_"));
    assert_eq!(body, serde_json::to_value(chunk(2, json!({"row": 9}))).unwrap());
    assert!(!seen.head.contains("whsec") && !String::from_utf8_lossy(&seen.body).contains("whsec"));
}

#[tokio::test]
async fn while_the_secret_is_changed_a_call_carries_a_signature_of_each() {
    let target = target().await;
    run_by(&handler(&target.url("/run"), &[NEWER, SECRET], AMPLE), chunk(1, Value::Null)).await.0.unwrap();
    let seen = &target.seen()[0];
    assert!(proven_by(seen, SECRET) && proven_by(seen, NEWER));
}

#[tokio::test]
async fn a_further_attempt_has_the_same_idempotency_key_and_differs_in_nothing_but_what_names_it() {
    let target = target().await;
    for attempt in [1, 2] {
        run(&target, chunk(attempt, json!({"z": 1, "a": [2.50, "é"]}))).await.0.unwrap();
    }
    let seen = target.seen();
    assert_eq!(seen[0].header("idempotency-key"), seen[1].header("idempotency-key"));
    assert_ne!(seen[0].header("webhook-id"), seen[1].header("webhook-id"));
    let plain = |seen: &Seen| {
        let mut body = seen.json();
        body["callback"] = Value::Null;
        body["attempt"] = Value::Null;
        body.to_string()
    };
    assert_eq!(plain(&seen[0]), plain(&seen[1]));
}
