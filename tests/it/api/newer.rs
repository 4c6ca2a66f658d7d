//! Tasks in a state that only a newer version knows, as the API, the pages and the push of this one tell them.

use crate::support::api::{Api, principal, send};
use crate::support::socket::Socket;
use reqwest::Method;
use serde_json::{Value, json};
use taskbell::core::effect::{Effect, SqlValue};
use taskbell::core::principal::Role;

/// Changes the row of a task as a newer version might.
pub async fn as_newer(api: &Api, id: &str) {
    let sql = "UPDATE taskbell_tasks SET state = 'zz_new' WHERE id = $1";
    let rows = vec![vec![SqlValue::Text(id.to_owned())]];
    api.state.store.execute(vec![Effect { sql, rows }]).await.unwrap();
}

async fn row_of(api: &Api, id: &str) -> Vec<Vec<SqlValue>> {
    let sql =
        "SELECT state, revision, head, updated_at, seen_at, read_at, archived_at FROM taskbell_tasks WHERE id = $1";
    api.state.store.query(sql, vec![SqlValue::Text(id.to_owned())]).await.unwrap()
}

fn states(list: &Value) -> Vec<(&str, &str)> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|task| (task["id"].as_str().unwrap(), task["state"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn m20_a_task_that_is_not_understood_is_told_as_unknown_and_nothing_is_done_to_it() {
    let api = Api::start().await;
    let (alice, olga) = (api.alice().await, api.olga().await);
    let later = json!({"action": "rest", "runAt": "2199-01-01T00:00:00Z"});
    let (strange, known) = (alice.new_task(later.clone()).await, alice.new_task(later).await);
    as_newer(&api, &strange).await;
    let before = row_of(&api, &strange).await;
    let path = format!("/api/v1/tasks/{strange}");
    let task = alice.get(&path).await.json;
    assert_eq!(
        (&task["state"], &task["can"], &task["waiting"]),
        (&json!("unknown"), &json!([]), &json!(null)),
        "{task}"
    );
    let all = alice.get("/api/v1/tasks").await.json;
    assert_eq!(states(&all), [(known.as_str(), "queued"), (&strange, "unknown")]);
    assert_eq!((&all["counts"]["queued"], &all["counts"]["unknown"]), (&json!(1), &json!(1)));
    assert_eq!(states(&alice.get("/api/v1/tasks?state=queued").await.json), [(known.as_str(), "queued")]);
    assert_eq!(states(&alice.get("/api/v1/tasks?state=unknown,failed").await.json), [(strange.as_str(), "unknown")]);
    assert_eq!(alice.get("/api/v1/tasks?state=zz_new").await.paths(), ["state"]);
    let center = alice.get("/api/v1/notifications").await.json;
    assert_eq!(states(&center), [(known.as_str(), "queued"), (&strange, "unknown")]);
    assert_eq!((&center["counts"]["queued"], &center["counts"]["unknown"]), (&json!(1), &json!(1)));
    for (act, code) in [
        ("cancel", "not-cancellable"),
        ("pause", "not-pausable"),
        ("resume", "not-resumable"),
        ("retry", "not-retryable"),
    ] {
        let answer = alice.ask(&format!("{path}/{act}")).await;
        assert_eq!((answer.status, answer.code(), &answer.json["state"]), (409, code, &json!("unknown")), "{act}");
    }
    let forced = olga.post(&format!("{path}/cancel"), json!({"force": true})).await;
    assert_eq!((forced.status, forced.code()), (409, "not-cancellable"));
    let deleted = alice.delete(&path).await;
    assert_eq!((deleted.status, deleted.code()), (409, "not-ended"));
    for act in ["cancel", "resume", "retry", "delete"] {
        let many = olga.post("/api/v1/tasks/bulk", json!({"do": act, "filter": {"state": "unknown"}})).await;
        assert_eq!((many.status, &many.json["done"]), (200, &json!(0)), "{act}: {}", many.text);
    }
    for mark in ["seen", "read", "archive"] {
        let answer = alice.post(&format!("/api/v1/notifications/{mark}"), json!({"ids": [strange]})).await;
        assert!(answer.status == 200 && answer.json["changed"] == 0 || answer.status == 404, "{mark}: {}", answer.text);
    }
    assert_eq!(row_of(&api, &strange).await, before, "nobody changed it");
    let described = alice.get("/api/openapi.json").await.json;
    let words = described["components"]["schemas"]["State"]["enum"].as_array().expect("states are listed").clone();
    assert!(words.contains(&json!("unknown")) && words.contains(&json!("queued")), "{words:?}");
}

#[tokio::test]
async fn m20_an_unknown_task_is_pushed_as_such_beside_the_others() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let later = json!({"action": "rest", "runAt": "2199-01-01T00:00:00Z"});
    let strange = alice.new_task(later.clone()).await;
    as_newer(&api, &strange).await;
    let mut socket = Socket::open(&api.base, &[]).await;
    socket.say(json!({"t": "hello", "token": alice.key})).await;
    let snap = socket.frame("snap").await;
    assert_eq!((states(&snap), &snap["counts"]["unknown"]), (vec![(strange.as_str(), "unknown")], &json!(1)));
    let known = alice.new_task(later).await;
    let delta = socket.frame("delta").await;
    assert_eq!(states(&delta), [(known.as_str(), "queued")]);
}

#[tokio::test]
async fn m20_the_pages_say_in_words_that_a_task_is_unknown_and_offer_no_button() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let strange = alice.new_task(json!({"action": "rest", "runAt": "2199-01-01T00:00:00Z"})).await;
    as_newer(&api, &strange).await;
    let cookie = format!("__Host-taskbell={}", api.session(principal("default", "alice", Role::User)).await);
    for (language, word, why) in [
        ("en", "Unknown state", "only a newer version of this service knows it"),
        ("zh-CN", "未知状态", "仅新版本的服务能识别"),
    ] {
        for path in
            [format!("/tasks/{strange}"), "/notifications".to_owned(), "/notifications?state=unknown".to_owned()]
        {
            let request = api.nobody().request(Method::GET, &path);
            let page = send(request.header("cookie", &cookie).header("accept-language", language)).await;
            assert_eq!(page.status, 200, "{path}: {}", page.text);
            let row = page.text.split("<main").nth(1).unwrap();
            assert!(row.contains(&format!("data-part=\"word\">{word}</span>")), "{path}: {row}");
            assert!(row.contains(why) && row.contains("#unknown\""), "{path}: {row}");
            assert!(!row.contains("data-do=") && !row.contains("zz_new"), "{path}: {row}");
        }
    }
}
