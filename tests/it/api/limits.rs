//! Sizes and shapes: at the cap taken, one above refused, and nothing is ever a 500.

use crate::support::api::{Answer, Api, Client, send};
use reqwest::Method;
use serde_json::json;

const JSON: &str = "application/json";

async fn raw(client: &Client, content_type: Option<&str>, body: impl Into<reqwest::Body>) -> Answer {
    let request = client.request(Method::POST, "/api/v1/tasks").body(body);
    send(match content_type {
        Some(content_type) => request.header("content-type", content_type),
        None => request,
    })
    .await
}

/// A submit whose body has exactly so many bytes.
fn of_size(size: usize) -> String {
    let rest = json!({"action": "ok"}).to_string();
    format!("{}{rest}", " ".repeat(size - rest.len()))
}

#[tokio::test]
async fn a_body_is_taken_at_its_cap_and_refused_above_it() {
    let api = Api::start().await;
    let alice = api.alice().await;
    const CAP: usize = 1024 * 1024;
    for (size, status) in [(CAP, 201), (CAP + 1, 413), (CAP * 40, 413)] {
        let declared = raw(&alice, Some(JSON), of_size(size)).await;
        assert_eq!(declared.status, status, "{size} bytes, declared: {}", declared.text);
        let parts =
            of_size(size).into_bytes().chunks(64 * 1024).map(|c| Ok::<_, String>(c.to_vec())).collect::<Vec<_>>();
        let body = reqwest::Body::wrap_stream(futures_util::stream::iter(parts));
        let streamed = raw(&alice, Some(JSON), body).await;
        assert_eq!(streamed.status, status, "{size} bytes, in parts: {}", streamed.text);
    }
}

#[tokio::test]
async fn params_title_and_ids_are_taken_at_their_caps_and_refused_above_them() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let nested = |levels: usize| (1..levels).fold(json!({}), |v, _| json!({"a": v}));
    // {"a":"…"} costs eight bytes around the text.
    for (field, at_cap, above) in [
        ("params", json!({"a": "x".repeat(256 * 1024 - 8)}), json!({"a": "x".repeat(256 * 1024 - 7)})),
        ("params", nested(64), nested(65)),
        ("params", nested(64), nested(100)),
        ("title", json!("字".repeat(200)), json!("字".repeat(201))),
        ("idempotencyKey", json!("k".repeat(255)), json!("k".repeat(256))),
        ("priority", json!(-100), json!(-101)),
    ] {
        let taken = alice.submit(json!({"action": "ok", field: at_cap})).await;
        assert_eq!(taken.status, 201, "{field} at its cap: {}", taken.text);
        let refused = alice.submit(json!({"action": "ok", field: above})).await;
        assert_eq!(refused.status, 422, "{field} above its cap: {}", refused.text);
        assert!(refused.paths()[0].starts_with(field), "{field}: {:?}", refused.paths());
    }
    let record = |id: String| json!({"action": "ok", "record": {"type": "invoice", "id": id}});
    assert_eq!(alice.submit(record("r".repeat(255))).await.status, 201);
    assert_eq!(alice.submit(record("r".repeat(256))).await.paths(), ["record.id"]);
}

#[tokio::test]
async fn the_character_nul_is_refused_by_its_place() {
    let api = Api::start().await;
    let alice = api.alice().await;
    for (body, path) in [
        (r#"{"action":"ok","title":"a\u0000b"}"#, "title"),
        (r#"{"action":"ok","params":{"k\u0000":"v"}}"#, "params"),
        (r#"{"action":"ok","params":{"k":["v\u0000"]}}"#, "params.k[0]"),
        (r#"{"action":"ok","idempotencyKey":"\u0000"}"#, "idempotencyKey"),
        (r#"{"action":"ok","record":{"type":"invoice","id":"1\u0000"}}"#, "record.id"),
    ] {
        let answer = raw(&alice, Some(JSON), body).await;
        assert_eq!((answer.status, answer.paths()), (422, vec![path]), "{body}");
    }
    for path in ["/api/v1/tasks?q=a%00b", "/api/v1/tasks?action=%00", "/api/v1/tasks?record=a:%00"] {
        assert_eq!(alice.get(path).await.status, 422, "{path}");
    }
    assert_eq!(alice.get("/api/v1/records/a%00/b/tasks").await.status, 404);
    assert_eq!(alice.get("/api/v1/artifacts/%00").await.status, 404);
    assert_eq!(alice.get("/api/v1/artifacts/%FF").await.status, 404);
}

#[tokio::test]
async fn whatever_is_no_json_object_is_refused_and_the_service_goes_on() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    let deep_params = format!("{{\"action\":\"ok\",\"params\":{deep}}}");
    for (body, status) in [
        ("null", 422),
        ("[null]", 422),
        ("[]", 422),
        ("{}", 422),
        ("\"x\"", 422),
        ("1e999", 422),
        (r#"{"action":"ok","params":{"n":1e400}}"#, 422),
        (r#"{"action":"ok","action":"fail"}"#, 422),
        (r#"{"action":"ok","params":{"a":1,"a":2}}"#, 422),
        (r#"{"action":"ok","params":{"s":"\ud800"}}"#, 400),
        (r#"{"action":"ok""#, 400),
        ("", 400),
        ("NaN", 400),
        (r#"{"action":"ok","params":{"n":-0}}"#, 201),
        (&deep, 422),
        (&deep_params, 422),
    ] {
        let answer = raw(&alice, Some(JSON), body.to_owned()).await;
        let shown: String = body.chars().take(50).collect();
        assert_eq!(answer.status, status, "{shown}: {}", answer.text);
    }
    let not_utf8 = raw(&alice, Some(JSON), b"{\"action\":\"\xff\"}".to_vec()).await;
    assert_eq!((not_utf8.status, not_utf8.code()), (400, "malformed-json"));
    assert_eq!(alice.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn only_plain_json_is_taken() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let body = json!({"action": "ok"}).to_string();
    for (content_type, status) in [
        (Some(JSON), 201),
        (Some("Application/JSON; charset=utf-8"), 201),
        (None, 415),
        (Some("text/plain"), 415),
        (Some("application/x-www-form-urlencoded"), 415),
        (Some("multipart/form-data"), 415),
        (Some("application/problem+json"), 415),
        (Some("application/jsonp"), 415),
    ] {
        assert_eq!(raw(&alice, content_type, body.clone()).await.status, status, "{content_type:?}");
    }
    let request = alice.request(Method::POST, "/api/v1/tasks").header("content-encoding", "gzip");
    assert_eq!(send(request.header("content-type", JSON).body(body)).await.code(), "unsupported-media-type");
    // Also where the body may be left out.
    let id = alice.new_task(json!({"action": "rest"})).await;
    let cancel = alice.request(Method::POST, &format!("/api/v1/tasks/{id}/cancel"));
    assert_eq!(send(cancel.header("content-type", "text/plain").body("x")).await.status, 415);
}
