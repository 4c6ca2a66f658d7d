//! Reading one task, its log, its timeline; the buttons; the notification center; health.

use crate::support::api::{Api, send};
use reqwest::Method;
use serde_json::json;
use std::sync::atomic::Ordering;
use taskbell::core::effect::Effect;
use taskbell::core::ids::FencingToken;
use taskbell::core::principal::Role;
use taskbell::store::logs::{Append, Level, LogStore, NewLine};

#[tokio::test]
async fn a_known_revision_is_answered_without_a_body() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let id = alice.new_task(json!({"action": "ok"})).await;
    alice.until(&id, "succeeded").await;
    let path = format!("/api/v1/tasks/{id}");
    let full = alice.get(&path).await;
    assert_eq!((full.status, &full.json["result"]), (200, &json!({"done": true})));
    let tag = full.header("etag").to_owned();
    assert_eq!(tag, format!("\"{}\"", full.json["revision"]));
    let ask = |tag: &str| send(alice.request(Method::GET, &path).header("if-none-match", tag));
    assert_eq!(ask(&tag).await.status, 304);
    assert_eq!(ask(&format!("\"0\", W/{tag}")).await.status, 304);
    assert_eq!(ask("\"0\"").await.status, 200);
}

#[tokio::test]
async fn the_timeline_tells_what_happened_page_by_page() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let id = alice.new_task(json!({"action": "ok"})).await;
    alice.until(&id, "succeeded").await;
    let path = format!("/api/v1/tasks/{id}/events");
    let all = alice.get(&path).await.json;
    let first = &all["items"][0];
    assert_eq!((&first["seq"], &first["from"], &first["to"]), (&json!(1), &json!(null), &json!("queued")));
    assert_eq!((&first["reason"], &first["actor"]), (&json!("submitted"), &json!("alice")));
    assert_eq!((all["items"].as_array().unwrap().len(), &all["next"]), (3, &json!(null)));
    let one = alice.get(&format!("{path}?limit=1")).await.json;
    assert_eq!(one["next"], 1);
    assert_eq!(
        alice.get(&format!("{path}?after=1&limit=2")).await.json["items"],
        json!([all["items"][1], all["items"][2]])
    );
}

#[tokio::test]
async fn a_log_is_read_in_pages_both_ways_and_whole_as_a_file() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let id = alice.new_task(json!({"action": "rest"})).await;
    alice.until(&id, "running").await;
    let lines = (1..=5).map(|n| NewLine {
        at: api.state.clock.now(),
        level: if n == 3 { Level::Error } else { Level::Info },
        source: "handler",
        chunk: 1,
        message: format!("line {n} <b>100%</b>\nand more"),
    });
    let (tenant, task) = ("default".to_owned(), id.parse().unwrap());
    let append = Append { tenant, task, token: FencingToken(1_000), lines: lines.collect() };
    api.node.logs.append(vec![append]).await.unwrap();
    let path = format!("/api/v1/tasks/{id}/logs");
    let seqs = |page: &serde_json::Value| -> Vec<i64> {
        page["items"].as_array().unwrap().iter().map(|l| l["seq"].as_i64().unwrap()).collect()
    };
    let base = alice.get(&path).await.json["items"][0]["seq"].as_i64().unwrap();
    let all = seqs(&alice.get(&path).await.json);
    let n = all.len();
    assert!(n >= 5 && all[0] == base);
    let page = alice.get(&format!("{path}?after=0&limit=2")).await.json;
    assert_eq!((seqs(&page), page["next"].as_i64()), (all[..2].to_vec(), Some(all[1])));
    let back = alice.get(&format!("{path}?before={}&limit=2", all[n - 1])).await.json;
    assert_eq!((seqs(&back), back["next"].as_i64()), (all[n - 3..n - 1].to_vec(), Some(all[n - 3])));
    assert_eq!(seqs(&alice.get(&format!("{path}?level=error")).await.json).len(), 1);
    assert_eq!(seqs(&alice.get(&format!("{path}?q=line%203")).await.json).len(), 1);
    assert_eq!(seqs(&alice.get(&format!("{path}?q=%25%25")).await.json).len(), 0);
    assert_eq!(alice.get(&format!("{path}?level=loud")).await.paths(), ["level"]);
    let file = alice.get(&format!("{path}/download")).await;
    assert_eq!(file.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(file.header("content-disposition"), format!("attachment; filename=\"task-{id}.log\""));
    assert!(file.text.contains("error handler #1 line 3 <b>100%</b>\nand more\n"), "{}", file.text);
    api.node.logs.note_dropped(task, 3).await.unwrap();
    let file = alice.get(&format!("{path}/download")).await;
    assert!(file.text.ends_with("line 5 <b>100%</b>\nand more\n… 3 lines are missing here …\n"), "{}", file.text);
}

#[tokio::test]
async fn buttons_are_those_of_the_caller_in_the_callers_language() {
    let api = Api::start().await;
    let (alice, ada) = (api.alice().await, api.caller("ada", Role::Admin).await);
    let keys = |answer: &crate::support::api::Answer| -> Vec<String> {
        answer.json["items"].as_array().unwrap().iter().map(|a| a["key"].as_str().unwrap().to_owned()).collect()
    };
    let own = alice.get("/api/v1/actions").await;
    assert!(keys(&own).contains(&"ok".to_owned()) && !keys(&own).contains(&"for-admins".to_owned()));
    assert!(keys(&ada.get("/api/v1/actions").await).contains(&"for-admins".to_owned()));
    let label = |answer: &crate::support::api::Answer| {
        let items = answer.json["items"].as_array().unwrap().clone();
        let action = items.into_iter().find(|a| a["key"] == "with-file").unwrap();
        action["params"]["properties"]["file"]["title"].clone()
    };
    assert_eq!(label(&own), "File");
    assert_eq!(label(&alice.get("/api/v1/actions?lang=zh-CN").await), "文件");
    let accept = alice.request(Method::GET, "/api/v1/actions").header("accept-language", "fr, zh;q=0.5");
    assert_eq!(label(&send(accept).await), "文件");
}

#[tokio::test]
async fn the_center_is_the_snapshot_of_the_push_and_marks_move_its_counts() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let (ok, failed) = (alice.new_task(json!({"action": "ok"})).await, alice.new_task(json!({"action": "fail"})).await);
    let rests = alice.new_task(json!({"action": "rest"})).await;
    alice.until(&ok, "succeeded").await;
    alice.until(&failed, "failed").await;
    alice.until(&rests, "running").await;
    let center = alice.get("/api/v1/notifications").await.json;
    assert_eq!((&center["t"], &center["topic"], &center["more"]), (&json!("snap"), &json!("me"), &json!(false)));
    assert_eq!(center["items"][0]["id"], rests.as_str(), "the unfinished first");
    let counts = &center["counts"];
    assert_eq!((&counts["running"], &counts["unseen"], &counts["attention"]), (&json!(1), &json!(2), &json!(1)));
    let filtered = alice.get("/api/v1/notifications?filter=failed").await.json;
    assert_eq!((filtered["items"].as_array().unwrap().len(), &filtered["items"][0]["id"]), (1, &json!(failed)));
    assert_eq!(alice.get("/api/v1/notifications?filter=odd").await.paths(), ["filter"]);
    let seen = alice.post("/api/v1/notifications/seen", json!({"ids": [ok]})).await.json;
    assert_eq!((&seen["changed"], &seen["counts"]["unseen"]), (&json!(1), &json!(1)));
    let head = center["head"].as_i64().unwrap() + 10;
    let body = json!({"upTo": head, "filter": {"state": ["failed"]}});
    let read = alice.post("/api/v1/notifications/read", body).await.json;
    assert_eq!((&read["changed"], &read["counts"]["attention"]), (&json!(1), &json!(0)));
    let archived = alice.post("/api/v1/notifications/archive", json!({"ids": [ok, failed]})).await.json;
    assert_eq!(archived["changed"], 2);
    assert_eq!(alice.get("/api/v1/notifications").await.json["items"].as_array().unwrap().len(), 1);
    assert_eq!(alice.get("/api/v1/tasks").await.json["items"].as_array().unwrap().len(), 3, "lists keep them");
    let nothing = alice.post("/api/v1/notifications/seen", json!({"ids": []})).await;
    assert_eq!((nothing.status, &nothing.json["changed"]), (200, &json!(0)));
    for (body, path) in [
        (json!({}), "ids"),
        (json!({"ids": ["x"]}), "ids"),
        (json!({"ids": [], "upTo": 1}), "ids"),
        (json!({"ids": [null]}), "ids"),
        (json!({"upTo": 1.5}), "upTo"),
        (json!({"upTo": 1, "filter": {"colour": 1}}), "filter.colour"),
    ] {
        assert_eq!(alice.post("/api/v1/notifications/seen", body.clone()).await.paths(), [path], "{body}");
    }
    let bob = api.caller("bob", Role::User).await;
    assert_eq!(bob.post("/api/v1/notifications/seen", json!({"ids": [rests]})).await.json["changed"], 0);
}

#[tokio::test]
async fn readiness_goes_off_while_the_tables_cannot_be_used() {
    let api = Api::start().await;
    let ready = async || api.nobody().get("/readyz").await;
    for (sql, status) in [
        ("ALTER TABLE taskbell_tasks RENAME TO hidden_tasks", 503),
        ("ALTER TABLE hidden_tasks RENAME TO taskbell_tasks", 200),
    ] {
        api.node.store.execute(vec![Effect { sql, rows: vec![Vec::new()] }]).await.unwrap();
        assert_eq!(ready().await.status, status, "after {sql}");
    }
}

#[tokio::test]
async fn readiness_goes_off_while_the_node_drains_and_life_goes_on() {
    let api = Api::start().await;
    let nobody = api.nobody();
    let ready = nobody.get("/readyz").await;
    assert_eq!(ready.status, 200, "{}", ready.json);
    for (part, word) in [("database", "ok"), ("logs", "ok"), ("node", "ok"), ("redis", "off")] {
        assert_eq!(ready.json["parts"][part], word, "{}", ready.json);
    }
    api.state.draining.store(true, Ordering::Relaxed);
    let ready = nobody.get("/readyz").await;
    assert_eq!((ready.status, &ready.json["parts"]["node"]), (503, &json!("draining")));
    assert_eq!(nobody.get("/healthz").await.status, 200);
}
