//! Cancel, pause, resume, retry, delete: in every state, by whoever may.

use crate::support::api::{Api, Client, principal, send};
use reqwest::Method;
use serde_json::{Value, json};
use taskbell::core::principal::Role;

/// What a person may do with an own task in each state; the words that the API, the pages and the widgets share.
const MAY: [(&str, &[&str]); 10] = [
    ("queued", &["cancel", "pause"]),
    ("blocked", &["cancel", "pause"]),
    ("running", &["cancel", "pause"]),
    ("pausing", &["cancel", "resume"]),
    ("paused", &["cancel", "resume"]),
    ("cancelling", &[]),
    ("succeeded", &["delete"]),
    ("failed", &["delete", "resume", "retry"]),
    ("cancelled", &["delete", "resume", "retry"]),
    ("unknown", &[]),
];
/// Each act with the answers to one that is allowed and to one that is not.
const ACTS: [(&str, u16, &str); 5] = [
    ("cancel", 202, "not-cancellable"),
    ("pause", 202, "not-pausable"),
    ("resume", 202, "not-resumable"),
    ("retry", 201, "not-retryable"),
    ("delete", 204, "not-ended"),
];

async fn in_state(api: &Api, alice: &Client, state: &str) -> String {
    let click = json!({"params": {"n": 1}, "idempotencyKey": alice.key});
    let of = |action: &str| {
        let mut click = click.clone();
        click["action"] = json!(action);
        click
    };
    let later = json!({"action": "rest", "runAt": "2199-01-01T00:00:00Z"});
    let id = match state {
        "blocked" => {
            let click = json!({"action": "named", "concurrencyKey": alice.key});
            alice.new_task(click.clone()).await;
            alice.new_task(click).await
        }
        "queued" | "unknown" => alice.new_task(later).await,
        "succeeded" => alice.new_task(of("ok")).await,
        "failed" => alice.new_task(of("fail")).await,
        "pausing" | "cancelling" => alice.new_task(of("hold")).await,
        _ => alice.new_task(of("rest")).await,
    };
    let ask = async |word: &str| assert_eq!(alice.ask(&format!("/api/v1/tasks/{id}/{word}")).await.status, 202);
    match state {
        "cancelled" | "paused" => {
            alice.until(&id, "running").await;
            ask(if state == "paused" { "pause" } else { "cancel" }).await;
        }
        "cancelling" | "pausing" => {
            alice.until(&id, "held").await;
            ask(if state == "pausing" { "pause" } else { "cancel" }).await;
        }
        "unknown" => super::newer::as_newer(api, &id).await,
        _ => {}
    }
    alice.until(&id, state).await;
    id
}

/// Lets a task that holds a place of the node go, so that others have one.
async fn let_go(api: &Api, id: &str, state: &str) {
    if matches!(state, "pausing" | "cancelling") {
        let answer = api.olga().await.post(&format!("/api/v1/tasks/{id}/cancel"), json!({"force": true})).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
    }
}

fn sorted(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut words: Vec<String> = words.collect();
    words.sort();
    words
}

fn can(task: &Value) -> Vec<String> {
    sorted(task["can"].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()))
}

/// The buttons of a piece of a page.
fn buttons(html: &str) -> Vec<String> {
    sorted(html.split("data-do=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()))
}

#[tokio::test]
async fn f5_what_may_be_done_in_each_state_is_the_same_wherever_it_is_offered_and_done() {
    let api = Api::start().await;
    for (state, may) in MAY {
        let name = format!("{state}-looks");
        let alice = api.caller(&name, Role::User).await;
        let id = in_state(&api, &alice, state).await;
        let cookie = format!("__Host-taskbell={}", api.session(principal("default", &name, Role::User)).await);
        let page =
            async |path: &str| send(api.nobody().request(Method::GET, path).header("cookie", &cookie)).await.text;
        let item = |list: &Value| list["items"].as_array().unwrap().iter().find(|t| t["id"] == json!(id)).cloned();
        let row = |page: &str| {
            let row = page.split(&format!("<article class=\"tb-row\" data-task=\"{id}\"")).nth(1);
            row.and_then(|rest| rest.split("</article>").next()).expect("the list has it").to_owned()
        };
        let detail = alice.get(&format!("/api/v1/tasks/{id}")).await.json;
        assert_eq!(
            (detail["state"].as_str().unwrap(), can(&detail)),
            (state, may.iter().map(|w| (*w).to_owned()).collect())
        );
        for list in
            ["/api/v1/tasks".to_owned(), format!("/api/v1/tasks?state={state}"), "/api/v1/notifications".to_owned()]
        {
            let found = item(&alice.get(&list).await.json);
            assert_eq!(found.as_ref().map(can).as_deref(), Some(&can(&detail)[..]), "{list}: {state}");
        }
        assert_eq!(buttons(&page(&format!("/tasks/{id}")).await), can(&detail), "the page of a {state} task");
        for list in ["/notifications".to_owned(), format!("/notifications?state={state}")] {
            assert_eq!(buttons(&row(&page(&list).await)), can(&detail), "{list}: {state}");
        }
        let_go(&api, &id, state).await;
        for (act, status, code) in ACTS {
            // A fresh user each time, so that no key is shared.
            let alice = api.caller(&format!("{state}-{act}"), Role::User).await;
            let id = in_state(&api, &alice, state).await;
            let path = format!("/api/v1/tasks/{id}");
            let answer = match act {
                "delete" => alice.delete(&path).await,
                _ => alice.ask(&format!("{path}/{act}")).await,
            };
            // Asking for what is so already is a 202 without effect.
            let already = matches!(
                (state, act),
                ("cancelled" | "cancelling", "cancel")
                    | ("paused" | "pausing", "pause")
                    | ("queued" | "blocked", "resume")
            );
            if may.contains(&act) || already {
                assert_eq!(answer.status, status, "{act} while {state}: {}", answer.text);
            } else {
                assert_eq!((answer.status, answer.code()), (409, code), "{act} while {state}");
            }
            let_go(&api, &id, state).await;
        }
    }
}

/// The widgets draw a button for each word of `can` that they know, and for nothing else.
#[test]
fn f5_the_widgets_know_the_acts_of_the_api_and_no_others() {
    let (script, types) = (include_str!("../../../static/acts.js"), include_str!("../../../static/taskbell.d.ts"));
    let words = |text: &str, before: &str, after: &str| {
        let list = text.split(before).nth(1).and_then(|rest| rest.split(after).next()).unwrap().to_owned();
        sorted(list.split('\'').skip(1).step_by(2).map(str::to_owned))
    };
    let acts = sorted(ACTS.iter().map(|(act, ..)| (*act).to_owned()));
    assert_eq!(words(script, "const KNOWN = [", "];"), acts);
    assert_eq!(words(types, "export type TaskAct = ", ";"), acts);
    let states = sorted(MAY.iter().map(|(state, _)| (*state).to_owned()));
    assert_eq!(words(types, "export type TaskState =", ";"), states);
}

#[tokio::test]
async fn a_cancel_keeps_its_reason_and_asking_again_changes_nothing() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let id = in_state(&api, &alice, "running").await;
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
    let id = in_state(&api, &alice, "failed").await;
    let first = alice.ask(&format!("/api/v1/tasks/{id}/retry")).await;
    assert_eq!((first.status, &first.json["retryOf"]), (201, &json!(id)), "{}", first.text);
    assert_ne!(first.id(), id);
    assert_eq!(first.json["params"], json!({"n": 1}));
    assert_eq!(first.json["idempotencyKey"], json!(null), "the old key stays with the old task");
    let cancelled = in_state(&api, &alice, "cancelled").await;
    let retry = format!("/api/v1/tasks/{cancelled}/retry");
    let (one, two) = tokio::join!(alice.ask(&retry), alice.ask(&retry));
    assert_eq!(one.id(), two.id());
    assert_eq!(one.status + two.status, 401);
}

#[tokio::test]
async fn a_resume_is_refused_when_a_newer_task_has_the_key() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let old = in_state(&api, &alice, "failed").await;
    let new = alice.new_task(json!({"action": "fail", "params": {"n": 1}, "idempotencyKey": alice.key})).await;
    assert_ne!(old, new);
    let answer = alice.ask(&format!("/api/v1/tasks/{old}/resume")).await;
    assert_eq!((answer.status, answer.code()), (409, "superseded"));
}

#[tokio::test]
async fn a_deleted_task_is_gone_with_its_log() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let id = in_state(&api, &alice, "succeeded").await;
    let path = format!("/api/v1/tasks/{id}");
    assert_eq!(alice.delete(&path).await.status, 204);
    for path in [path.clone(), format!("{path}/logs"), format!("{path}/events"), format!("{path}/progress")] {
        assert_eq!(alice.get(&path).await.status, 404, "{path}");
    }
    assert_eq!(alice.delete(&path).await.status, 404);
}
