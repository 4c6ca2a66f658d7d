//! Many tasks in one request: batches of clicks, and one act on all that a filter names.

use crate::support::api::{Api, principal, send};
use reqwest::Method;
use serde_json::{Value, json};
use taskbell::core::principal::Role;

const BATCH: &str = "/api/v1/tasks/batch";
const BULK: &str = "/api/v1/tasks/bulk";

fn statuses(answer: &Value) -> Vec<i64> {
    answer["items"].as_array().unwrap().iter().map(|i| i["status"].as_i64().unwrap()).collect()
}

/// Row: C8.
#[tokio::test]
async fn each_click_of_a_batch_is_judged_by_itself_and_answered_in_order() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let click = json!({"action": "rest", "idempotencyKey": "k"});
    let items = json!([click, {"action": "nope"}, null, [null], 7, {"action": "rest", "colour": 1}, click,
        {"action": "rest", "idempotencyKey": "k", "params": {"n": 1}}, {"action": "named", "concurrencyKey": 42},
        {"action": "named", "concurrencyKey": "42"}]);
    let answer = alice.post(BATCH, json!({"items": items})).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(statuses(&answer.json), [201, 404, 422, 422, 422, 422, 200, 422, 422, 201]);
    let at = |i: usize| &answer.json["items"][i];
    assert_eq!((&at(6)["task"]["id"], &at(6)["task"]["replayed"]), (&at(0)["task"]["id"], &json!(true)));
    assert_eq!(at(1)["problem"]["code"], "unknown-action");
    assert_eq!(at(5)["problem"]["errors"][0]["path"], "colour");
    assert_eq!(at(7)["problem"]["paths"], json!(["params.n"]));
    assert_eq!(at(8)["problem"]["errors"][0]["path"], "concurrencyKey");
    assert_eq!(at(1)["problem"]["requestId"], answer.header("x-request-id"));
}

#[tokio::test]
async fn a_batch_is_taken_at_its_cap_and_refused_above_it() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let items = |n: usize| json!({"items": vec![json!({"action": "ok"}); n]});
    let full = alice.post(BATCH, items(500)).await;
    assert_eq!(statuses(&full.json), vec![201; 500]);
    assert_eq!(alice.post(BATCH, items(501)).await.paths(), ["items"]);
    assert_eq!(alice.post(BATCH, items(0)).await.json, json!({"items": []}));
    for wrong in [json!({}), json!({"items": null}), json!({"items": {}}), json!({"items": "x"})] {
        let answer = alice.post(BATCH, wrong.clone()).await;
        assert_eq!((answer.status, answer.paths()[0]), (422, "items"), "{wrong}");
    }
    let with_header = alice.request(Method::POST, BATCH).header("idempotency-key", "k").json(&items(1));
    let answer = send(with_header).await;
    assert_eq!((answer.status, answer.paths()), (422, vec!["idempotencyKey"]));
    let nested = (1..64).fold(json!({}), |v, _| json!({"a": v}));
    let deep = |params: &Value| json!({"items": [{"action": "ok", "params": params}]});
    assert_eq!(statuses(&alice.post(BATCH, deep(&nested)).await.json), [201]);
    assert_eq!(alice.post(BATCH, deep(&json!({"a": nested}))).await.status, 422);
}

#[tokio::test]
async fn one_act_on_many_tasks_counts_first_and_does_as_it_counted() {
    let api = Api::start().await;
    let (alice, olga) = (api.alice().await, api.olga().await);
    for n in 0..3 {
        let rests = alice.new_task(json!({"action": "rest", "title": format!("r{n}")})).await;
        let failed = alice.new_task(json!({"action": "fail"})).await;
        alice.until(&rests, "running").await;
        alice.until(&failed, "failed").await;
    }
    let bulk = async |word: &str, dry: bool, filter: Value| {
        let answer = olga.post(BULK, json!({"do": word, "dryRun": dry, "filter": filter})).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json
    };
    assert_eq!(bulk("cancel", true, json!({"state": ["running"], "owner": "alice"})).await, json!({"count": 3}));
    assert_eq!(bulk("cancel", true, json!({"state": "running", "q": "r1"})).await, json!({"count": 1}));
    assert_eq!(bulk("cancel", false, json!({"action": "rest"})).await, json!({"count": 3, "done": 3}));
    assert_eq!(bulk("cancel", false, json!({})).await, json!({"count": 0, "done": 0}), "nothing is left to cancel");
    assert_eq!(bulk("retry", false, json!({"state": "cancelled"})).await, json!({"count": 3, "done": 3}));
    assert_eq!(bulk("resume", false, json!({"action": "fail"})).await["done"], 3);
    let counts = alice.get("/api/v1/tasks").await.json["counts"].clone();
    assert_eq!(counts["cancelled"], 3);
    assert_eq!(bulk("delete", false, json!({"state": "cancelled"})).await, json!({"count": 3, "done": 3}));
    assert_eq!(alice.get("/api/v1/tasks?state=cancelled").await.json["items"], json!([]));
}

#[tokio::test]
async fn one_act_on_many_is_for_operators_and_stays_in_their_tenant() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let id = alice.new_task(json!({"action": "rest"})).await;
    let all = json!({"do": "cancel", "filter": {}});
    assert_eq!(alice.post(BULK, all.clone()).await.code(), "forbidden");
    let eve = api.with(principal("other", "eve", Role::Admin)).await;
    assert_eq!(eve.post(BULK, all).await.json, json!({"count": 0, "done": 0}));
    alice.until(&id, "running").await;
    for (body, path) in [
        (json!({"filter": {}}), "do"),
        (json!({"do": "run", "filter": {}}), "do"),
        (json!({"do": "cancel"}), "filter"),
        (json!({"do": "cancel", "filter": {"state": "done"}}), "filter.state"),
        (json!({"do": "cancel", "filter": {"colour": 1}}), "filter.colour"),
    ] {
        assert_eq!(eve.post(BULK, body.clone()).await.paths(), [path], "{body}");
    }
}
