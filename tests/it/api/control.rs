//! Cancel, pause, resume, retry, delete: in every state, by whoever may.

use crate::support::api::{Api, Client};
use serde_json::json;
use taskbell::core::principal::Role;

async fn in_state(alice: &Client, state: &str) -> String {
    let action = match state {
        "succeeded" => "ok",
        "failed" => "fail",
        _ => "rest",
    };
    let id = match state {
        "blocked" => {
            let click = json!({"action": "named", "concurrencyKey": alice.key});
            alice.new_task(click.clone()).await;
            alice.new_task(click).await
        }
        "queued" => alice.new_task(json!({"action": "rest", "runAt": "2199-01-01T00:00:00Z"})).await,
        _ => alice.new_task(json!({"action": action, "params": {"n": 1}, "idempotencyKey": alice.key})).await,
    };
    match state {
        "cancelled" | "paused" => {
            alice.until(&id, "running").await;
            let word = if state == "paused" { "pause" } else { "cancel" };
            assert_eq!(alice.ask(&format!("/api/v1/tasks/{id}/{word}")).await.status, 202);
        }
        _ => {}
    }
    alice.until(&id, state).await;
    id
}

#[tokio::test]
async fn every_act_in_every_state_agrees_with_what_the_task_says_it_can() {
    let api = Api::start().await;
    for state in ["queued", "blocked", "running", "paused", "succeeded", "failed", "cancelled"] {
        for (act, status, code) in [
            ("cancel", 202, "not-cancellable"),
            ("pause", 202, "not-pausable"),
            ("resume", 202, "not-resumable"),
            ("retry", 201, "not-retryable"),
            ("delete", 204, "not-ended"),
        ] {
            // A fresh user each time, so that no key is shared.
            let alice = api.caller(&format!("{state}-{act}"), Role::User).await;
            let id = in_state(&alice, state).await;
            let path = format!("/api/v1/tasks/{id}");
            let can = alice.get(&path).await.json["can"].as_array().unwrap().iter().any(|c| c == act);
            let answer = match act {
                "delete" => alice.delete(&path).await,
                _ => alice.ask(&format!("{path}/{act}")).await,
            };
            // Asking for what is so already is a 202 without effect.
            let already = matches!(
                (state, act),
                ("cancelled", "cancel") | ("paused", "pause") | ("queued" | "blocked", "resume")
            );
            if can || already {
                assert_eq!(answer.status, status, "{act} while {state}: {}", answer.text);
            } else {
                assert_eq!((answer.status, answer.code()), (409, code), "{act} while {state}");
            }
        }
    }
}

#[tokio::test]
async fn a_cancel_keeps_its_reason_and_asking_again_changes_nothing() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let id = in_state(&alice, "running").await;
    let path = format!("/api/v1/tasks/{id}/cancel");
    let first = alice.post(&path, json!({"reason": "wrong file", "force": false})).await;
    assert_eq!((first.status, &first.json["state"]), (202, &json!("cancelled")), "{}", first.text);
    let again = alice.ask(&path).await;
    assert_eq!((again.status, &again.json["revision"]), (202, &first.json["revision"]));
    assert_eq!(first.json["progress"]["current"], 1, "committed work stays as it was");
    assert_eq!(first.json["progress"]["percent"], 25, "frozen, not complete");
    let wrong = alice.post(&path, json!({"reason": "x".repeat(501), "why": 1})).await;
    assert_eq!((wrong.status, wrong.paths()), (422, vec!["reason", "why"]));
}

#[tokio::test]
async fn force_and_protected_actions_are_for_operators() {
    let api = Api::start().await;
    let (alice, olga) = (api.alice().await, api.olga().await);
    let id = alice.new_task(json!({"action": "operators-cancel"})).await;
    alice.until(&id, "running").await;
    let path = format!("/api/v1/tasks/{id}/cancel");
    assert_eq!(alice.post(&path, json!({"force": true})).await.code(), "forbidden");
    assert_eq!(alice.ask(&path).await.code(), "forbidden");
    let by_operator = olga.ask(&path).await;
    assert_eq!((by_operator.status, &by_operator.json["state"]), (202, &json!("cancelled")));
}

#[tokio::test]
async fn a_retry_is_a_new_task_from_the_start_and_a_double_click_on_it_makes_one() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let id = in_state(&alice, "failed").await;
    let first = alice.ask(&format!("/api/v1/tasks/{id}/retry")).await;
    assert_eq!((first.status, &first.json["retryOf"]), (201, &json!(id)), "{}", first.text);
    assert_ne!(first.id(), id);
    assert_eq!(first.json["params"], json!({"n": 1}));
    assert_eq!(first.json["idempotencyKey"], json!(null), "the old key stays with the old task");
    let cancelled = in_state(&alice, "cancelled").await;
    let retry = format!("/api/v1/tasks/{cancelled}/retry");
    let (one, two) = tokio::join!(alice.ask(&retry), alice.ask(&retry));
    assert_eq!(one.id(), two.id());
    assert_eq!(one.status + two.status, 401);
}

#[tokio::test]
async fn a_resume_is_refused_when_a_newer_task_has_the_key() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let old = in_state(&alice, "failed").await;
    let new = alice.new_task(json!({"action": "fail", "params": {"n": 1}, "idempotencyKey": alice.key})).await;
    assert_ne!(old, new);
    let answer = alice.ask(&format!("/api/v1/tasks/{old}/resume")).await;
    assert_eq!((answer.status, answer.code()), (409, "superseded"));
}

#[tokio::test]
async fn a_deleted_task_is_gone_with_its_log() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let id = in_state(&alice, "succeeded").await;
    let path = format!("/api/v1/tasks/{id}");
    assert_eq!(alice.delete(&path).await.status, 204);
    for path in [path.clone(), format!("{path}/logs"), format!("{path}/events"), format!("{path}/progress")] {
        assert_eq!(alice.get(&path).await.status, 404, "{path}");
    }
    assert_eq!(alice.delete(&path).await.status, 404);
}
