//! Lists: filters, pages there and back, cursors, search, counts.

use crate::support::api::{Api, Client, principal};
use serde_json::{Value, json};
use taskbell::core::principal::Role;

fn ids(page: &Value) -> Vec<String> {
    page["items"].as_array().unwrap().iter().map(|t| t["id"].as_str().unwrap().to_owned()).collect()
}

/// All pages of a list, one after the other.
async fn walk(client: &Client, path: &str) -> Vec<Vec<String>> {
    let (mut pages, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("{path}&cursor={cursor}")).await;
        assert_eq!(page.status, 200, "{}", page.text);
        pages.push(ids(&page.json));
        match page.json["next"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => return pages,
        }
    }
}

#[tokio::test]
async fn pages_hold_every_task_once_and_the_way_back_is_the_mirror_image() {
    let api = Api::start().await;
    let alice = api.alice().await;
    for n in 0..7 {
        let priority = -(n % 3);
        alice.new_task(json!({"action": "rest", "runAt": "2199-01-01T00:00:00Z", "priority": priority})).await;
    }
    for sort in ["createdAt", "updatedAt", "finishedAt", "priority"] {
        let there = walk(&alice, &format!("/api/v1/tasks?limit=3&sort={sort}")).await;
        let back = walk(&alice, &format!("/api/v1/tasks?limit=3&sort=-{sort}")).await;
        assert_eq!(there.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 1], "{sort}");
        let (there, mut back): (Vec<_>, Vec<_>) = (there.concat(), back.concat());
        back.reverse();
        assert_eq!(there, back, "{sort}");
    }
}

#[tokio::test]
async fn a_cursor_that_is_not_of_this_list_is_a_400() {
    let api = Api::start().await;
    let (alice, bob) = (api.alice().await, api.caller("bob", Role::User).await);
    for client in [&alice, &bob] {
        for _ in 0..3 {
            client.new_task(json!({"action": "rest", "runAt": "2199-01-01T00:00:00Z"})).await;
        }
    }
    let eve = api.with(principal("other", "alice", Role::User)).await;
    let page = alice.get("/api/v1/tasks?limit=1").await;
    let cursor = page.json["next"].as_str().unwrap();
    assert_eq!(alice.get(&format!("/api/v1/tasks?limit=2&cursor={cursor}")).await.status, 200, "another limit is fine");
    for (client, query) in [
        (&bob, format!("cursor={cursor}")),
        (&eve, format!("cursor={cursor}")),
        (&alice, format!("cursor={cursor}&sort=createdAt")),
        (&alice, format!("cursor={cursor}&sort=-priority")),
        (&alice, format!("cursor={cursor}&state=queued")),
        (&alice, format!("cursor={cursor}&q=x")),
        (&alice, format!("cursor={}x", &cursor[..cursor.len() - 1])),
        (&alice, "cursor=0".into()),
        (&alice, "cursor=-1".into()),
        (&alice, "cursor=9223372036854775807".into()),
        (&alice, "cursor=eyJ2IjowfQ".into()),
        (&alice, "cursor=%F0%9F%98%80".into()),
        (&alice, format!("cursor={}", "A".repeat(5_000))),
    ] {
        let answer = client.get(&format!("/api/v1/tasks?{query}")).await;
        assert_eq!((answer.status, answer.code()), (400, "bad-cursor"), "{query}");
    }
    let id = alice.new_task(json!({"action": "ok"})).await;
    for path in [format!("/api/v1/tasks/{id}/logs"), format!("/api/v1/tasks/{id}/events")] {
        for after in ["-1", "x", "1.5", "9223372036854775808"] {
            assert_eq!(alice.get(&format!("{path}?after={after}")).await.code(), "bad-cursor", "{path} {after}");
        }
        assert_eq!(alice.get(&format!("{path}?after=9223372036854775807")).await.json["items"], json!([]));
    }
}

#[tokio::test]
async fn filters_cut_the_list_and_counts_stay_whole() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let ok = alice.new_task(json!({"action": "ok", "record": {"type": "invoice", "id": "a:b"}})).await;
    let failed = alice.new_task(json!({"action": "fail"})).await;
    alice.until(&ok, "succeeded").await;
    alice.until(&failed, "failed").await;
    let rests = alice.new_task(json!({"action": "rest"})).await;
    alice.until(&rests, "running").await;
    for (query, want) in [
        ("state=succeeded", vec![&ok]),
        ("state=succeeded,failed&sort=createdAt", vec![&ok, &failed]),
        ("state=succeeded&state=failed&sort=createdAt", vec![&ok, &failed]),
        ("action=rest", vec![&rests]),
        ("record=invoice:a:b", vec![&ok]),
        ("record=invoice:a", vec![]),
        ("from=2199-01-01T00:00:00Z", vec![]),
        ("to=2199-01-01T00:00:00%2B08:00&action=ok", vec![&ok]),
        ("owner=bob", vec![]),
        ("pack=none", vec![]),
        ("schedule=none", vec![]),
        ("parent=00000000-0000-7000-8000-000000000000", vec![]),
        ("state=&action=&pack=&owner=&record=&parent=&schedule=&q=&from=&to=&cursor=&limit=&action=", vec![]),
    ] {
        let page = alice.get(&format!("/api/v1/tasks?{query}")).await;
        if query.ends_with("action=") {
            assert_eq!(page.status, 422, "a key twice is a fault, an empty one is not: {}", page.text);
            assert_eq!(page.paths(), ["action"]);
            continue;
        }
        assert_eq!((page.status, ids(&page.json)), (200, want.into_iter().cloned().collect()), "{query}");
        let counts = &page.json["counts"];
        assert_eq!((&counts["succeeded"], &counts["failed"], &counts["running"]), (&json!(1), &json!(1), &json!(1)));
        assert_eq!(counts["queued"], 0);
    }
    let summary = &alice.get("/api/v1/tasks?action=ok").await.json["items"][0];
    assert!(summary.get("params").is_none() && summary.get("result").is_none());
    assert_eq!((&summary["hasResult"], &summary["progress"]["percent"]), (&json!(true), &json!(100)));
}

#[tokio::test]
async fn what_a_query_may_hold_is_told_by_key() {
    let api = Api::start().await;
    let alice = api.alice().await;
    for (query, path) in [
        ("colour=red", "colour"),
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=x", "limit"),
        ("state=done", "state"),
        ("parent=mine", "parent"),
        ("sort=title", "sort"),
        ("sort=createdAt;drop", "sort"),
        ("from=yesterday", "from"),
        ("record=invoice", "record"),
        ("scope=all", "scope"),
        ("q=%ff", "q"),
    ] {
        let answer = alice.get(&format!("/api/v1/tasks?{query}")).await;
        assert_eq!((answer.status, answer.paths()), (422, vec![path]), "{query}");
    }
    assert_eq!(alice.get("/api/v1/tasks?limit=200&lang=zh").await.status, 200);
}

#[tokio::test]
async fn a_search_is_literal() {
    let api = Api::start().await;
    let alice = api.alice().await;
    for title in ["100% sure", "a_b", "axb", r"back\slash", "plain"] {
        alice.new_task(json!({"action": "ok", "title": title})).await;
    }
    for (text, found) in [
        ("%25", vec!["100% sure"]),
        ("_", vec!["a_b"]),
        ("a_b", vec!["a_b"]),
        ("%5C", vec![r"back\slash"]),
        ("0%25", vec!["100% sure"]),
        ("%25_%25", vec![]),
        ("%27%20OR%201=1--", vec![]),
    ] {
        let page = alice.get(&format!("/api/v1/tasks?q={text}&sort=createdAt")).await;
        let titles: Vec<_> = page.json["items"].as_array().unwrap().iter().map(|t| t["title"].clone()).collect();
        assert_eq!(titles, found, "{text}");
    }
    assert_eq!(alice.get(&format!("/api/v1/tasks?q={}", "x".repeat(100))).await.status, 200);
    assert_eq!(alice.get(&format!("/api/v1/tasks?q={}", "%25_".repeat(2_500))).await.paths(), ["q"]);
}
