//! Submitting: what becomes of a click, and what a request may hold.

use crate::support::api::{Api, principal, send};
use reqwest::Method;
use serde_json::{Value, json};
use taskbell::core::principal::{Role, Scope};

#[tokio::test]
async fn a_click_becomes_a_task_with_a_location_and_an_etag() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let answer = alice
        .submit(
            json!({"action": "rest", "params": {"n": 1}, "title": "My own", "record": {"type": "invoice", "id": "7"},
            "priority": -5, "idempotencyKey": null}),
        )
        .await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let task = &answer.json;
    assert_eq!(answer.header("location"), format!("/api/v1/tasks/{}", answer.id()));
    assert_eq!(answer.header("etag"), format!("\"{}\"", task["revision"]));
    for (field, value) in [
        ("tenant", json!("default")),
        ("action", json!("rest")),
        ("title", json!("My own")),
        ("owner", json!("alice")),
        ("startedBy", json!("alice")),
        ("state", json!("queued")),
        ("params", json!({"n": 1})),
        ("priority", json!(-5)),
        ("idempotencyKey", Value::Null),
        ("record", json!({"type": "invoice", "id": "7", "url": null})),
        ("can", json!(["cancel", "pause"])),
        ("result", Value::Null),
    ] {
        assert_eq!(task[field], value, "{field}");
    }
    assert!(task.get("checkpoint").is_none() && task.get("leaseOwner").is_none(), "those are for operators");
    let read = alice.get(answer.header("location")).await;
    assert_eq!((read.status, &read.json["id"]), (200, &task["id"]));
}

/// Row: C4.
#[tokio::test]
async fn the_same_key_answers_with_the_same_task_and_another_request_is_told_by_its_paths() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let click = |params: Value| json!({"action": "rest", "idempotencyKey": "k", "params": params});
    let first = alice.submit(click(json!({"a": 1, "b": 2}))).await;
    assert_eq!((first.status, first.json.get("replayed")), (201, None));
    // Order of keys and the way of writing a number do not make another request.
    let again = alice.submit(click(json!({"b": 2.0, "a": 1}))).await;
    assert_eq!((again.status, &again.json["replayed"], again.id()), (200, &json!(true), first.id()));
    assert_eq!(again.json["replay"]["startedBy"], "alice");
    assert_eq!(again.json["replay"]["createdAt"], first.json["createdAt"]);
    assert_eq!(again.json["replay"]["suppressed"], 1);
    let other = alice.submit(click(json!({"a": 1, "b": "secret"}))).await;
    assert_eq!((other.status, other.code()), (422, "idempotency-mismatch"));
    assert_eq!((&other.json["paths"], &other.json["task"]), (&json!(["params.b"]), &first.json["id"]));
    assert!(!other.text.contains("secret"), "values are never told");
    // The header is the same key.
    let request = alice.request(Method::POST, "/api/v1/tasks").header("Idempotency-Key", "k");
    let by_header = send(request.json(&json!({"action": "rest", "params": {"a": 1, "b": 2}}))).await;
    assert_eq!((by_header.status, by_header.id()), (200, first.id()));
    // A holder that the caller may not see is no answer.
    let bob = api.caller("bob", Role::User).await;
    let hidden = bob.submit(click(json!({"a": 1, "b": 2}))).await;
    assert_eq!((hidden.status, hidden.code()), (409, "idempotency-conflict"));
    assert!(!hidden.text.contains(&first.id()));
}

/// Row: C2.
/// Proves: G5.
#[tokio::test]
async fn racing_clicks_of_one_key_make_one_task() {
    let api = Api::start().await;
    let alice = api.alice().await;
    for round in 0..5 {
        let click = json!({"action": "rest", "idempotencyKey": format!("k{round}")});
        let all = (0..50).map(|_| alice.submit(click.clone()));
        let answers = futures_util::future::join_all(all).await;
        assert_eq!(answers.iter().filter(|a| a.status == 201).count(), 1);
        assert_eq!(answers.iter().filter(|a| a.status == 200 && a.json["replayed"] == true).count(), 49);
        assert!(answers.iter().all(|a| a.id() == answers[0].id()));
    }
}

/// Row: C8.
#[tokio::test]
async fn keys_follow_one_rule_of_types_and_are_kept_byte_by_byte() {
    let api = Api::start().await;
    let alice = api.alice().await;
    for name in ["idempotencyKey", "concurrencyKey"] {
        let with = |key: Value| json!({"action": "named", "concurrencyKey": "c", name: key});
        for wrong in [json!(42), json!(true), json!({}), json!([]), json!(1.5), json!(""), json!("k".repeat(256))] {
            let answer = alice.submit(with(wrong.clone())).await;
            assert_eq!((answer.status, answer.paths()), (422, vec![name]), "{wrong}: {}", answer.text);
        }
        for right in ["42", " 42 ", "é", &"k".repeat(255)] {
            let mut body = with(json!(right));
            if name == "idempotencyKey" {
                body["concurrencyKey"] = json!(format!("slot {}", right.len()));
            }
            let answer = alice.submit(body).await;
            assert_eq!((answer.status, &answer.json[name]), (201, &json!(right)), "{}", answer.text);
        }
    }
    let absent = alice.submit(json!({"action": "rest", "idempotencyKey": null, "concurrencyKey": null})).await;
    assert_eq!(absent.status, 201);
    let not_taken = alice.submit(json!({"action": "rest", "concurrencyKey": "c"})).await;
    assert_eq!((not_taken.status, not_taken.paths()), (422, vec!["concurrencyKey"]));
    assert!(not_taken.text.contains("this action does not take one"));
    let request = alice.request(Method::POST, "/api/v1/tasks").header("Idempotency-Key", "a");
    let differ = send(request.json(&json!({"action": "rest", "idempotencyKey": "b"}))).await;
    assert_eq!((differ.status, differ.paths()), (422, vec!["idempotencyKey"]));
}

#[tokio::test]
async fn a_full_concurrency_key_is_answered_by_the_actions_policy() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let holder = alice.new_task(json!({"action": "named", "concurrencyKey": "c"})).await;
    for _ in 0..2 {
        let waits = alice.submit(json!({"action": "named", "concurrencyKey": "c"})).await;
        assert_eq!((waits.status, &waits.json["state"]), (201, &json!("blocked")));
        assert_eq!(waits.json["waiting"]["reason"], "concurrency");
        assert_eq!(waits.json["waiting"]["blockedBy"], holder.as_str());
    }
    let full = alice.submit(json!({"action": "named", "concurrencyKey": "c"})).await;
    assert_eq!((full.status, full.code()), (429, "key-queue-full"));
    assert!(full.header("retry-after").parse::<u32>().unwrap() > 0);
    alice.new_task(json!({"action": "rejects"})).await;
    let rejected = alice.submit(json!({"action": "rejects"})).await;
    assert_eq!((rejected.status, rejected.code()), (409, "concurrency-conflict"));
    let first = alice.new_task(json!({"action": "skips"})).await;
    let skipped = alice.submit(json!({"action": "skips"})).await;
    assert_eq!((skipped.status, &skipped.json["skipped"], skipped.id()), (200, &json!(true), first));
    let bob = api.caller("bob", Role::User).await;
    let hidden = bob.submit(json!({"action": "skips"})).await;
    assert_eq!((hidden.status, hidden.code(), hidden.json.get("task")), (409, "concurrency-conflict", None));
}

#[tokio::test]
async fn every_wrong_field_is_named_at_once() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let body = json!({"action": "with-file", "params": {"file": 7, "x": 1}, "titel": "a", "priority": "high",
        "record": {"type": "invoice", "ID": 7}, "runAt": "tomorrow", "owner": 3});
    let answer = alice.submit(body).await;
    assert_eq!((answer.status, answer.code()), (422, "invalid"));
    let mut paths = answer.paths();
    paths.sort_unstable();
    assert_eq!(paths, ["owner", "priority", "record.ID", "record.id", "runAt", "titel"]);
    let rules = json!({"action": "with-file", "params": {"file": 7, "x": 1}, "title": "", "priority": 1,
        "record": {"type": "", "id": "1"}});
    let answer = alice.submit(rules).await;
    let mut paths = answer.paths();
    paths.sort_unstable();
    assert_eq!(paths, ["params.file", "params.x", "priority", "record.type", "title"]);
    assert!(answer.json["errors"].as_array().unwrap().iter().all(|e| e["message"].is_string()));
}

#[tokio::test]
async fn only_a_key_with_the_scope_submits_for_others() {
    let api = Api::start().await;
    let for_bob = json!({"action": "rest", "owner": "bob"});
    let refused = api.olga().await.submit(for_bob.clone()).await;
    assert_eq!((refused.status, refused.code()), (403, "forbidden"));
    let mut erp = principal("default", "erp", Role::Operator);
    erp.scopes.push(Scope::SubmitAs);
    let erp = api.with(erp).await;
    let made = erp.submit(for_bob).await;
    assert_eq!((made.status, &made.json["owner"], &made.json["startedBy"]), (201, &json!("bob"), &json!("erp")));
    let bob = api.caller("bob", Role::User).await;
    assert_eq!(bob.get(made.header("location")).await.status, 200);
}

#[tokio::test]
async fn a_key_that_submits_for_others_may_repeat_its_own_click() {
    let api = Api::start().await;
    let with = |user: &str| {
        let mut who = principal("default", user, Role::User);
        who.scopes.push(Scope::SubmitAs);
        api.with(who)
    };
    let (erp, crm) = (with("erp").await, with("crm").await);
    let click = json!({"action": "rest", "owner": "bob", "idempotencyKey": "k"});
    let first = erp.submit(click.clone()).await;
    let again = erp.submit(click.clone()).await;
    assert_eq!((first.status, again.status, again.id()), (201, 200, first.id()));
    assert_eq!(crm.submit(click).await.code(), "idempotency-conflict", "another key's click stays hidden");
}

#[tokio::test]
async fn an_action_that_is_unknown_or_not_the_callers_is_the_same_404() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let unknown = alice.submit(json!({"action": "nope"})).await;
    let forbidden = alice.submit(json!({"action": "for-admins"})).await;
    for answer in [&unknown, &forbidden] {
        assert_eq!((answer.status, answer.code()), (404, "unknown-action"));
    }
    assert_eq!(unknown.json["detail"], forbidden.json["detail"]);
    assert_eq!(api.caller("ada", Role::Admin).await.submit(json!({"action": "for-admins"})).await.status, 201);
}

#[tokio::test]
async fn run_at_keeps_a_task_back() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let later = alice.submit(json!({"action": "ok", "runAt": "2199-01-01T00:00:00.000Z"})).await;
    assert_eq!((later.status, &later.json["waiting"]["reason"]), (201, &json!("scheduled")), "{}", later.text);
    assert_eq!(later.json["runAt"], "2199-01-01T00:00:00.000Z");
    let past = alice.new_task(json!({"action": "ok", "runAt": "1999-01-01T00:00:00Z"})).await;
    alice.until(&past, "succeeded").await;
}

#[tokio::test]
async fn a_double_click_on_a_field_key_makes_one_task() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let click = json!({"action": "by-record", "record": {"type": "invoice", "id": "42"}});
    let first = alice.new_task(click.clone()).await;
    let again = alice.submit(click).await;
    assert_eq!((again.status, again.id()), (200, first));
    let missing = alice.submit(json!({"action": "by-record"})).await;
    assert_eq!((missing.status, missing.paths()), (422, vec!["record.id"]));
    let key = json!({"action": "key-rejects", "idempotencyKey": "k"});
    alice.new_task(key.clone()).await;
    assert_eq!(alice.submit(key).await.code(), "idempotency-conflict");
}

#[tokio::test]
async fn c3_a_key_whose_task_has_succeeded_is_replayed_and_says_so() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let click = json!({"action": "ok", "idempotencyKey": "k"});
    let first = alice.new_task(click.clone()).await;
    alice.until(&first, "succeeded").await;
    let again = alice.submit(click.clone()).await;
    assert_eq!((again.status, &again.json["replayed"], again.id()), (200, &json!(true), first.clone()));
    assert_eq!((&again.json["state"], &again.json["replay"]["suppressed"]), (&json!("succeeded"), &json!(1)));
    // A batch says it too.
    let batch = alice.post("/api/v1/tasks/batch", json!({"items": [click.clone()]})).await;
    let item = &batch.json["items"][0];
    assert_eq!((&item["status"], &item["task"]["replayed"]), (&json!(200), &json!(true)), "{}", batch.text);
    // A holder that is deleted holds nothing, and neither does one that failed.
    assert_eq!(alice.delete(&format!("/api/v1/tasks/{first}")).await.status, 204);
    assert_ne!(alice.new_task(click).await, first);
    let fails = json!({"action": "fail", "idempotencyKey": "f"});
    let failed = alice.new_task(fails.clone()).await;
    alice.until(&failed, "failed").await;
    assert_ne!(alice.new_task(fails).await, failed);
}
