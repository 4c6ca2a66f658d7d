//! Workers outside over the API: what each call promises, to whom, and what it never tells.

use crate::support::api::{Answer, Api, Client, principal};
use crate::support::eventually;
use crate::support::node::SOON;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use taskbell::core::principal::{Principal, Role, Scope};
use tokio::task::JoinSet;

const CLAIM: &str = "/api/v1/worker/claim";
const COMMIT: &str = "/api/v1/worker/commit";
const RENEW: &str = "/api/v1/worker/renew";
const PROGRESS: &str = "/api/v1/worker/progress";
const LOG: &str = "/api/v1/worker/log";

/// Asks for chunks; those that came.
async fn claim(worker: &Client, body: Value) -> Vec<Value> {
    let answer = worker.post(CLAIM, body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json["chunks"].as_array().unwrap().clone()
}

/// The chunk of a task that is due.
async fn one(worker: &Client) -> Value {
    let mut chunks = claim(worker, json!({"actions": ["pulled"], "worker": "w1", "waitMs": 10_000})).await;
    assert_eq!(chunks.len(), 1, "{chunks:?}");
    chunks.pop().unwrap()
}

/// What a worker says of a chunk it holds, with more.
fn about(chunk: &Value, more: Value) -> Value {
    let mut item = json!({"task": chunk["task"]["id"], "fencingToken": chunk["fencingToken"], "chunk": chunk["chunk"]});
    item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"items": [item]})
}

async fn commit(worker: &Client, chunk: &Value, outcome: Value) -> Value {
    answered(worker.post(COMMIT, about(chunk, json!({"outcome": outcome}))).await)
}

/// The one item of an answer.
fn answered(answer: Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json["items"].as_array().unwrap().len(), 1);
    answer.json["items"][0].clone()
}

async fn result(worker: &Client, path: &str, body: Value) -> String {
    answered(worker.post(path, body).await)["result"].as_str().unwrap().to_owned()
}

async fn task(client: &Client, id: &str) -> Value {
    client.get(&format!("/api/v1/tasks/{id}")).await.json
}

#[tokio::test]
async fn a_worker_runs_a_task_from_chunk_to_chunk() {
    let api = Api::start().await;
    let (alice, worker, olga) = (api.alice().await, api.worker("default").await, api.olga().await);
    let id = alice.new_task(json!({"action": "pulled", "params": {"n": 2}, "title": "Two"})).await;
    let first = one(&worker).await;
    assert_eq!((&first["chunk"], &first["attempt"], &first["checkpoint"]), (&json!(1), &json!(1), &Value::Null));
    assert_eq!((&first["leaseMs"], &first["timeoutMs"]), (&json!(3_000), &json!(5_000)));
    let told = &first["task"];
    assert_eq!((&told["id"], &told["params"], &told["title"]), (&json!(id), &json!({"n": 2}), &json!("Two")));
    let seen = task(&olga, &id).await;
    assert_eq!(
        (&seen["state"], &seen["waiting"], &seen["leaseOwner"]),
        (&json!("running"), &Value::Null, &json!("worker:w1"))
    );
    assert_eq!(result(&worker, PROGRESS, about(&first, json!({"progress": {"current": 1, "total": 4}}))).await, "ok");
    assert_eq!(
        result(&worker, LOG, about(&first, json!({"lines": ["half-way", {"message": "odd", "level": "warn"}]}))).await,
        "ok"
    );
    let outcome = json!({"hasMore": true, "checkpoint": {"at": 1}, "current": 2, "total": 4, "unit": "rows",
        "log": ["the first"], "rows": {"ok": 2}});
    assert_eq!(commit(&worker, &first, outcome).await, json!({"task": id, "result": "ok"}));
    let second = one(&worker).await;
    assert_eq!((&second["chunk"], &second["checkpoint"]), (&json!(2), &json!({"at": 1})));
    assert_eq!(second["progress"], json!({"current": 2, "total": 4}));
    assert!(second["fencingToken"].as_i64() > first["fencingToken"].as_i64());
    commit(&worker, &second, json!({"hasMore": false, "result": {"sum": 4}, "current": 4, "total": 4})).await;
    let ended = alice.until(&id, "succeeded").await;
    assert_eq!((&ended["result"], &ended["chunks"], &ended["rows"]["ok"]), (&json!({"sum": 4}), &json!(2), &json!(2)));
    assert_eq!(ended["progress"]["percent"], 100);
    let lines = eventually("the lines are there", SOON, async || {
        let lines = alice.get(&format!("/api/v1/tasks/{id}/logs")).await.json["items"].clone();
        Some(lines).filter(|lines| lines.as_array().is_some_and(|l| l.len() == 3))
    })
    .await;
    let told: Vec<_> = lines
        .as_array()
        .unwrap()
        .iter()
        .map(|l| (l["message"].as_str().unwrap(), l["level"].as_str().unwrap(), l["chunk"].as_i64().unwrap()))
        .collect();
    assert_eq!(told, [("half-way", "info", 1), ("odd", "warn", 1), ("the first", "info", 1)]);
}

#[tokio::test]
async fn a_poll_that_waits_has_a_chunk_as_soon_as_one_is_due_and_ends_empty_at_its_time() {
    let api = Api::start().await;
    let (alice, worker) = (api.alice().await, api.worker("default").await);
    let waiting = {
        let worker = worker.clone();
        tokio::spawn(async move { one(&worker).await })
    };
    eventually("the poll waits", SOON, async || waits(&api, 1).await).await;
    let id = alice.new_task(json!({"action": "pulled"})).await;
    let chunk = waiting.await.unwrap();
    assert_eq!(chunk["task"]["id"], id);
    // A delay, a retry and a start that lies ahead come due by the clock and not by a commit.
    commit(&worker, &chunk, json!({"hasMore": true, "checkpoint": 1, "nextDelaySeconds": 0.3})).await;
    let second = one(&worker).await;
    commit(&worker, &second, json!({"fail": {"code": "x", "message": "no", "retryable": true}})).await;
    let third = one(&worker).await;
    assert_eq!((&third["attempt"], &third["lastError"]), (&json!(2), &json!("x")));
    commit(&worker, &third, json!({"hasMore": false})).await;
    let began = Instant::now();
    assert_eq!(claim(&worker, json!({"actions": ["pulled"], "waitMs": 400})).await, Vec::<Value>::new());
    assert!(began.elapsed() >= Duration::from_millis(400), "it waited its time");
    assert_eq!(claim(&worker, json!({"actions": ["pulled"], "waitMs": 0})).await, Vec::<Value>::new());
}

/// Whether so many polls wait at the desk.
async fn waits(api: &Api, polls: usize) -> Option<()> {
    let name = taskbell::core::metric::WORKER_POLLS;
    let told = api.nobody().get("/metrics").await.text;
    // Other tests of this process count into the same number, so it is a lower bound.
    let count = told.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<usize>().ok())?;
    (count >= polls).then_some(())
}

#[tokio::test]
async fn what_is_due_is_dealt_among_those_who_wait_and_never_twice() {
    let api = Api::start().await;
    let (alice, worker) = (api.alice().await, api.worker("default").await);
    let mut polls = JoinSet::new();
    for n in 0..50 {
        let worker = worker.clone();
        let body = json!({"actions": ["pulled"], "max": 3, "waitMs": 15_000, "worker": format!("w{n}")});
        polls.spawn(async move { claim(&worker, body).await });
    }
    eventually("all wait", SOON, async || waits(&api, 50).await).await;
    let items: Vec<Value> = (0..50).map(|n| json!({"action": "pulled", "params": {"n": n}})).collect();
    assert_eq!(alice.post("/api/v1/tasks/batch", json!({"items": items})).await.status, 200);
    let mut seen = std::collections::BTreeSet::new();
    let mut hands = 0;
    // Some may have got more than one, and others nothing: then they would wait their time.
    while seen.len() < 50 {
        let chunks = polls.join_next().await.expect("somebody waits").unwrap();
        hands += usize::from(!chunks.is_empty());
        for chunk in chunks {
            assert!(seen.insert(chunk["task"]["id"].as_str().unwrap().to_owned()), "dealt twice");
        }
    }
    assert!(hands >= 17, "{hands} polls shared 50 chunks of at most 3");
    polls.abort_all();
}

#[tokio::test]
async fn an_answer_that_nobody_took_is_given_back_and_no_attempt_is_used() {
    let api = Api::start().await;
    let (alice, worker) = (api.alice().await, api.worker("default").await);
    for round in 0..5 {
        let gone = {
            let worker = worker.clone();
            tokio::spawn(async move { one(&worker).await })
        };
        eventually("the poll waits", SOON, async || waits(&api, 1).await).await;
        // The client goes away, and in the same moment a task comes.
        gone.abort();
        let id = alice.new_task(json!({"action": "pulled"})).await;
        let chunk = one(&worker).await;
        assert_eq!((&chunk["task"]["id"], &chunk["attempt"]), (&json!(id), &json!(1)), "round {round}");
        let seen = task(&alice, &id).await;
        assert_eq!((&seen["reclaims"], &seen["takeovers"]), (&json!(0), &json!(0)), "it was no lost lease");
        commit(&worker, &chunk, json!({"hasMore": false})).await;
    }
}

#[tokio::test]
async fn an_outcome_that_comes_again_is_answered_again_and_counts_once() {
    let api = Api::start().await;
    let (alice, worker) = (api.alice().await, api.worker("default").await);
    let id = alice.new_task(json!({"action": "pulled"})).await;
    let first = one(&worker).await;
    let outcome = json!({"hasMore": true, "checkpoint": 1, "current": 5, "rows": {"ok": 5}, "log": ["once"]});
    assert_eq!(commit(&worker, &first, outcome.clone()).await, json!({"task": id, "result": "ok"}));
    for _ in 0..3 {
        let again = commit(&worker, &first, outcome.clone()).await;
        assert_eq!(again, json!({"task": id, "result": "ok", "repeated": true}));
    }
    let second = one(&worker).await;
    assert_eq!(commit(&worker, &first, outcome).await["result"], "stale", "somebody has taken the next one");
    let twice = json!({"items": [about(&second, json!({"outcome": {"hasMore": false}}))["items"][0],
        about(&second, json!({"outcome": {"hasMore": false}}))["items"][0]]});
    let answer = worker.post(COMMIT, twice).await;
    assert_eq!(answer.json["items"][0], json!({"task": id, "result": "ok"}));
    assert_eq!(answer.json["items"][1], json!({"task": id, "result": "ok", "repeated": true}));
    let ended = alice.until(&id, "succeeded").await;
    assert_eq!((&ended["chunks"], &ended["rows"]["ok"]), (&json!(2), &json!(5)));
    eventually("the line is there, once", SOON, async || {
        let logs = alice.get(&format!("/api/v1/tasks/{id}/logs")).await.json["items"].clone();
        let lines = logs.as_array().unwrap().iter().filter(|l| l["message"] == "once").count();
        assert!(lines <= 1, "{logs}");
        Some(()).filter(|()| lines == 1)
    })
    .await;
}

#[tokio::test]
async fn every_shape_of_an_outcome_is_read_and_what_is_none_fails_its_own_task_alone() {
    let api = Api::start().await;
    let (alice, worker) = (api.alice().await, api.worker("default").await);
    let kinds: Vec<(String, &str, &str)> = vec![
        (r#"{"hasMore":false,"result":1}"#.into(), "succeeded", ""),
        (r#"{"Code":1,"Data":{"BackgroundTask":{"HasMore":false,"Current":3,"Total":3}}}"#.into(), "succeeded", ""),
        (r#"{"done":true,"result":{"a":1}}"#.into(), "succeeded", ""),
        (r#"{"fail":{"code":"closed","message":"The period is closed."}}"#.into(), "failed", "closed"),
        (r#"{"hasMore":"yes"}"#.into(), "failed", "bad-outcome"),
        ("null".into(), "failed", "bad-outcome"),
        ("[]".into(), "failed", "bad-outcome"),
        (r#"{"hasMore":true,"nextDelaySeconds":1e400}"#.into(), "failed", "bad-outcome"),
        (r#"{"hasMore":true,"checkpoint":"a\u0000b"}"#.into(), "failed", "bad-outcome"),
        (format!(r#"{{"hasMore":true,"checkpoint":"{}"}}"#, "x".repeat(256 * 1024)), "failed", "bad-outcome"),
        (
            format!(r#"{{"hasMore":true,"checkpoint":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000)),
            "failed",
            "bad-outcome",
        ),
    ];
    let items: Vec<Value> = kinds.iter().map(|_| json!({"action": "pulled"})).collect();
    alice.post("/api/v1/tasks/batch", json!({"items": items})).await;
    let mut chunks = Vec::new();
    while chunks.len() < kinds.len() {
        chunks.extend(claim(&worker, json!({"actions": ["pulled"], "max": 100, "waitMs": 5_000})).await);
    }
    let item = |(chunk, (outcome, _, _)): (&Value, &(String, &str, &str))| {
        format!(
            r#"{{"task":{},"fencingToken":{},"chunk":1,"outcome":{outcome}}}"#,
            chunk["task"]["id"], chunk["fencingToken"]
        )
    };
    let body = format!(r#"{{"items":[{}]}}"#, chunks.iter().zip(&kinds).map(item).collect::<Vec<_>>().join(","));
    let request = worker.request(reqwest::Method::POST, COMMIT).header("content-type", "application/json");
    let answer = crate::support::api::send(request.body(body)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    for (chunk, (outcome, state, code)) in chunks.iter().zip(&kinds) {
        let ended = alice.until(chunk["task"]["id"].as_str().unwrap(), state).await;
        assert_eq!(ended["error"]["code"].as_str().unwrap_or_default(), *code, "{outcome:.100}");
    }
}

#[tokio::test]
async fn stops_come_back_with_renewals_and_reports() {
    let api = Api::start().await;
    let (alice, worker) = (api.alice().await, api.worker("default").await);
    for (act, state) in [("cancel", "cancelled"), ("pause", "paused")] {
        let id = alice.new_task(json!({"action": "pulled"})).await;
        let chunk = one(&worker).await;
        for path in [RENEW, PROGRESS, LOG] {
            assert_eq!(result(&worker, path, said(&chunk, path)).await, "ok");
        }
        alice.post(&format!("/api/v1/tasks/{id}/{act}"), json!({})).await;
        for path in [RENEW, PROGRESS, LOG] {
            assert_eq!(result(&worker, path, said(&chunk, path)).await, "stop", "{act} {path}");
        }
        assert_eq!(commit(&worker, &chunk, json!({"hasMore": true, "checkpoint": {"n": 1}})).await["result"], "ok");
        alice.until(&id, state).await;
        for path in [RENEW, PROGRESS, LOG] {
            assert_eq!(result(&worker, path, said(&chunk, path)).await, "stale");
        }
    }
    let id = alice.new_task(json!({"action": "pulled"})).await;
    let chunk = one(&worker).await;
    api.olga().await.post(&format!("/api/v1/tasks/{id}/cancel"), json!({"force": true})).await;
    assert_eq!(commit(&worker, &chunk, json!({"hasMore": false})).await["result"], "stale");
    assert_eq!(task(&alice, &id).await["state"], "cancelled", "an end that was forced is never taken back");
}

/// A body for a call about a chunk under way.
fn said(chunk: &Value, path: &str) -> Value {
    about(
        chunk,
        match path {
            PROGRESS => json!({"progress": {"message": "on it"}}),
            LOG => json!({"lines": ["on it"]}),
            _ => json!({}),
        },
    )
}

#[tokio::test]
async fn a_chunk_that_is_not_the_callers_is_stale_whatever_the_reason() {
    let api = Api::start().await;
    let (alice, worker) = (api.alice().await, api.worker("default").await);
    let own = alice.new_task(json!({"action": "pulled"})).await;
    let chunk = one(&worker).await;
    let native = alice.new_task(json!({"action": "rest"})).await;
    alice.until(&native, "running").await;
    let waiting = alice.new_task(json!({"action": "pulled-soon"})).await;
    let nothing = "0193c0de-0000-7000-8000-000000000000";
    let token = chunk["fencingToken"].as_i64().unwrap();
    let stranger = api.worker("other").await;
    for (caller, id, token) in [
        (&worker, nothing, 1),
        (&worker, native.as_str(), 1),
        (&worker, waiting.as_str(), 0),
        (&worker, own.as_str(), token - 1),
        (&worker, own.as_str(), token + 1),
        (&stranger, own.as_str(), token),
    ] {
        for (path, more) in [
            (COMMIT, json!({"outcome": {"hasMore": false}})),
            (PROGRESS, json!({"progress": {"current": 1}})),
            (LOG, json!({"lines": ["x"]})),
            (RENEW, json!({})),
        ] {
            let mut body = json!({"items": [{"task": id, "fencingToken": token, "chunk": 1}]});
            body["items"][0].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let answer = caller.post(path, body).await;
            assert_eq!(answer.json, json!({"items": [{"task": id, "result": "stale"}]}), "{path}");
        }
    }
    assert_eq!(task(&alice, &native).await["state"], "running");
    assert_eq!(claim(&stranger, json!({"actions": ["pulled-soon"], "waitMs": 0})).await, Vec::<Value>::new());
    let all = Principal { scopes: vec![Scope::Worker], ..principal("*", "fleet", Role::Platform) };
    let all = api.with(all).await;
    assert_eq!(claim(&all, json!({"actions": ["pulled-soon"]})).await[0]["task"]["id"], waiting);
    assert_eq!(commit(&all, &chunk, json!({"hasMore": false})).await["result"], "ok");
}

#[tokio::test]
async fn a_worker_that_is_too_slow_has_its_chunk_taken_and_one_that_vanished_is_swept() {
    let api = Api::start().await;
    let (alice, worker) = (api.alice().await, api.worker("default").await);
    let id = alice.new_task(json!({"action": "pulled-soon"})).await;
    let slow = claim(&worker, json!({"actions": ["pulled-soon"]})).await.remove(0);
    assert_eq!((&slow["leaseMs"], &slow["timeoutMs"]), (&json!(1_500), &json!(1_500)));
    // It lives and renews, and its time ends all the same.
    let mut result_of_renewal = String::from("ok");
    while result_of_renewal == "ok" {
        result_of_renewal = result(&worker, RENEW, about(&slow, json!({}))).await;
    }
    assert_eq!(result_of_renewal, "stale");
    let again = claim(&worker, json!({"actions": ["pulled-soon"]})).await.remove(0);
    assert_eq!((&again["attempt"], &again["lastError"]), (&json!(2), &json!("timeout")));
    assert_eq!(commit(&worker, &slow, json!({"hasMore": false})).await["result"], "stale");
    assert_eq!(commit(&worker, &again, json!({"hasMore": false})).await["result"], "ok");
    alice.until(&id, "succeeded").await;

    let id = alice.new_task(json!({"action": "pulled"})).await;
    let vanished = one(&worker).await;
    let taken_over = one(&worker).await;
    assert_eq!((&taken_over["task"]["id"], &taken_over["attempt"]), (&json!(id), &json!(1)), "no attempt is used");
    assert_eq!(commit(&worker, &vanished, json!({"hasMore": false})).await["result"], "stale");
    assert_eq!(task(&alice, &id).await["takeovers"], 1);
}

#[tokio::test]
async fn only_the_scope_opens_the_door_and_every_fault_of_a_body_is_named() {
    let api = Api::start().await;
    let (olga, worker) = (api.olga().await, api.worker("default").await);
    for path in [CLAIM, COMMIT, PROGRESS, LOG, RENEW] {
        assert_eq!(api.nobody().post(path, json!({})).await.code(), "unauthenticated");
        let refused = olga.post(path, json!({})).await;
        assert!(refused.code() == "forbidden" && refused.text.contains("worker"), "{}", refused.text);
        assert_eq!(worker.post(path, json!([])).await.code(), "invalid");
    }
    let bad = json!({"actions": ["pulled", "ok", "none"], "max": 101, "waitMs": -1, "worker": "", "color": 1});
    let answer = worker.post(CLAIM, bad).await;
    assert_eq!(answer.paths(), ["actions[1]", "actions[2]", "worker", "max", "waitMs", "color"], "{}", answer.text);
    assert_eq!(worker.post(CLAIM, json!({"actions": []})).await.paths(), ["actions"]);
    let id = "0193c0de-0000-7000-8000-000000000000";
    let items =
        json!({"items": [{"task": "x", "fencingToken": "1", "chunk": 1.5, "odd": 1}, 7, {"task": id}], "more": 1});
    let answer = worker.post(COMMIT, items).await;
    let mut paths = answer.paths();
    paths.sort_unstable();
    let expected = [
        "items[0].chunk",
        "items[0].fencingToken",
        "items[0].odd",
        "items[0].outcome",
        "items[0].task",
        "items[1]",
        "items[2].chunk",
        "items[2].fencingToken",
        "items[2].outcome",
        "more",
    ];
    assert_eq!(paths, expected, "{}", answer.text);
    let many = vec![json!({"task": id, "fencingToken": 1}); 501];
    assert_eq!(worker.post(RENEW, json!({"items": many})).await.paths(), ["items"]);
    let full = vec![json!({"task": id, "fencingToken": 1}); 500];
    assert_eq!(worker.post(RENEW, json!({"items": full})).await.json["items"].as_array().unwrap().len(), 500);
    assert_eq!(worker.post(RENEW, json!({"items": []})).await.json, json!({"items": []}));
}

#[tokio::test]
async fn so_many_polls_of_a_key_wait_and_the_next_one_is_told_to_come_later() {
    let api = Api::start().await;
    let (worker, other) = (api.worker("default").await, api.worker("default").await);
    let mut polls = JoinSet::new();
    for _ in 0..101 {
        let worker = worker.clone();
        polls.spawn(async move { worker.post(CLAIM, json!({"actions": ["pulled"], "waitMs": 60_000})).await });
    }
    let refused = polls.join_next().await.unwrap().unwrap();
    assert_eq!(refused.status, 429, "{}", refused.text);
    assert!(refused.code() == "too-many-polls" && refused.header("retry-after") == "1", "{}", refused.text);
    assert_eq!(claim(&other, json!({"actions": ["pulled"], "waitMs": 0})).await, Vec::<Value>::new(), "another key");
    polls.shutdown().await;
    eventually("places are free again", SOON, async || {
        let answer = worker.post(CLAIM, json!({"actions": ["pulled"], "waitMs": 0})).await;
        Some(()).filter(|()| answer.status == 200)
    })
    .await;
}

#[tokio::test]
async fn a_number_that_is_none_is_dropped_with_a_line_and_fails_nothing() {
    let api = Api::start().await;
    let (alice, worker) = (api.alice().await, api.worker("default").await);
    let id = alice.new_task(json!({"action": "pulled"})).await;
    let chunk = one(&worker).await;
    for progress in [json!({"current": -1}), json!({"current": "7"}), json!({"current": 3.9, "total": 10})] {
        assert_eq!(result(&worker, PROGRESS, about(&chunk, json!({"progress": progress}))).await, "ok");
    }
    eventually("the last one shows", SOON, async || {
        Some(task(&alice, &id).await).filter(|t| t["progress"]["current"] == 3)
    })
    .await;
    commit(&worker, &chunk, json!({"hasMore": false, "current": -5})).await;
    alice.until(&id, "succeeded").await;
    eventually("each is told", SOON, async || {
        let logs = alice.get(&format!("/api/v1/tasks/{id}/logs?level=warn")).await.json["items"].clone();
        Some(()).filter(|()| logs.as_array().is_some_and(|lines| lines.len() == 3))
    })
    .await;
}

#[tokio::test]
async fn a_task_that_no_worker_has_asked_for_lately_says_so() {
    let api = Api::start().await;
    let (alice, worker) = (api.alice().await, api.worker("default").await);
    let first = alice.new_task(json!({"action": "pulled"})).await;
    let reason = async |id: &str| task(&alice, id).await["waiting"]["reason"].as_str().unwrap_or_default().to_owned();
    assert_eq!(reason(&first).await, "no-handler", "nobody ever asked");
    api.worker("other").await.post(CLAIM, json!({"actions": ["pulled"], "waitMs": 0})).await;
    let chunk = one(&worker).await;
    assert_eq!(task(&alice, &first).await["waiting"], Value::Null, "a chunk runs");
    let second = alice.new_task(json!({"action": "pulled"})).await;
    let third = alice.new_task(json!({"action": "pulled-soon"})).await;
    eventually("a worker is there", SOON, async || (reason(&second).await == "capacity").then_some(())).await;
    assert_eq!(reason(&third).await, "no-handler", "for this action nobody is");
    let later = alice.new_task(json!({"action": "pulled", "runAt": "2999-01-01T00:00:00.000Z"})).await;
    assert_eq!(reason(&later).await, "scheduled");
    api.pass(61_000);
    assert_eq!(reason(&second).await, "no-handler", "nobody has asked for a minute");
    assert_eq!(reason(&later).await, "scheduled", "what is not due waits for its time");
    commit(&worker, &chunk, json!({"hasMore": false})).await;
}
