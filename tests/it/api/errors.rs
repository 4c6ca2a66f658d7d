//! Problems: one shape for all, and a case for every code.

use crate::support::api::{Answer, Api, LISTED, principal, send};
use reqwest::Method;
use serde_json::json;
use std::collections::BTreeSet;
use taskbell::core::principal::Role;
use taskbell::web::error::Code;

/// Codes whose causes cannot be brought about over HTTP here, and where they are proven.
const ELSEWHERE: &[(Code, &str)] = &[
    (Code::BadRequest, "page_rules: a handshake that is none"),
    (Code::TooSlow, "a body takes 30 s to be too slow"),
    (Code::TooManyPolls, "worker: a hundred polls that wait"),
    (Code::ParentStopped, "store::above: a child of a stopped parent"),
    (Code::FormExpired, "the tests of the pages"),
    (Code::HostRefused, "page_rules: the demo"),
    (Code::Internal, "unit tests of web::error"),
    (Code::Busy, "unit tests of web::error"),
    (Code::Unavailable, "unit tests of web::error"),
];

fn shape(answer: &Answer) -> Code {
    let code = *Code::ALL.iter().find(|c| c.as_str() == answer.code()).unwrap_or_else(|| panic!("{}", answer.text));
    assert_eq!(answer.header("content-type"), "application/problem+json");
    assert_eq!(answer.json["status"], answer.status);
    assert_eq!(answer.status, code.status().as_u16());
    assert_eq!(answer.json["title"], code.sentence());
    assert_eq!(answer.json["type"], format!("urn:taskbell:problem:{}", code.as_str()));
    assert!(answer.json["detail"].is_string());
    assert_eq!(answer.json["requestId"], answer.header("x-request-id"));
    assert_eq!(answer.json["errors"].is_array(), code == Code::Invalid);
    code
}

#[tokio::test]
async fn every_code_has_the_one_shape() {
    let api = Api::start().await;
    let (alice, bob, olga) = (api.alice().await, api.caller("bob", Role::User).await, api.olga().await);
    let path = |id: &str, act: &str| format!("/api/v1/tasks/{id}/{act}");
    let ok = alice.new_task(json!({"action": "ok"})).await;
    let failed = alice.new_task(json!({"action": "fail", "idempotencyKey": "f"})).await;
    alice.until(&ok, "succeeded").await;
    alice.until(&failed, "failed").await;
    let rests = alice.new_task(json!({"action": "rest", "idempotencyKey": "k"})).await;
    alice.new_task(json!({"action": "fail", "idempotencyKey": "f"})).await;
    alice.new_task(json!({"action": "rejects"})).await;
    for _ in 0..3 {
        alice.new_task(json!({"action": "named", "concurrencyKey": "c"})).await;
    }
    let raw = |body: &'static str, content_type: &str| {
        let request = alice.request(Method::POST, "/api/v1/tasks").header("content-type", content_type);
        send(request.body(body))
    };
    let answers = [
        raw("{", "application/json").await,
        alice.get("/api/v1/tasks?cursor=x").await,
        api.nobody().get("/api/v1/tasks").await,
        alice.get("/api/v1/tasks?scope=tenant").await,
        send(alice.request(Method::GET, "/healthz").header("origin", "https://evil.test")).await,
        bob.get(&format!("/api/v1/tasks/{ok}")).await,
        alice.get("/nowhere").await,
        alice.get("/api/v1/nowhere").await,
        alice.submit(json!({"action": "nope"})).await,
        alice.delete("/api/v1/tasks").await,
        bob.submit(json!({"action": "rest", "idempotencyKey": "k"})).await,
        alice.submit(json!({"action": "rejects"})).await,
        alice.ask(&path(&ok, "cancel")).await,
        alice.ask(&path(&ok, "pause")).await,
        alice.ask(&path(&ok, "resume")).await,
        alice.ask(&path(&failed, "resume")).await,
        alice.ask(&path(&ok, "retry")).await,
        alice.delete(&format!("/api/v1/tasks/{rests}")).await,
        send(alice.request(Method::POST, "/api/v1/tasks").json(&json!({"title": "x".repeat(2 << 20)}))).await,
        raw("{}", "text/plain").await,
        alice.submit(json!({})).await,
        alice.submit(json!({"action": "rest", "idempotencyKey": "k", "params": {"n": 1}})).await,
        alice.submit(json!({"action": "named", "concurrencyKey": "c"})).await,
    ];
    let met: BTreeSet<&str> = answers.iter().map(|a| shape(a).as_str()).collect();
    let elsewhere: BTreeSet<&str> = ELSEWHERE.iter().map(|(c, _)| c.as_str()).collect();
    let all: BTreeSet<&str> = Code::ALL.iter().map(|c| c.as_str()).collect();
    assert_eq!(&met | &elsewhere, all);
    assert!(met.is_disjoint(&elsewhere));
    // Said once, for whoever reads the answer of another caller's page.
    assert!(send(olga.request(Method::GET, "/nowhere").header("origin", LISTED)).await.status == 404);
    assert_eq!(api.with(principal("*", "root", Role::Platform)).await.get("/nowhere").await.status, 404);
}

#[tokio::test]
async fn a_request_id_is_made_here_and_taken_from_nobody() {
    let api = Api::start().await;
    let request = api.nobody().request(Method::GET, "/healthz").header("x-request-id", "mine");
    let (one, two) = (send(request).await, api.nobody().get("/healthz").await);
    for answer in [&one, &two] {
        assert_eq!(uuid::Uuid::parse_str(answer.header("x-request-id")).unwrap().get_version_num(), 7);
    }
    assert_ne!(one.header("x-request-id"), two.header("x-request-id"));
}
