//! What pages elsewhere may do, what cookies prove, which headers every answer has, and how the server stops.

use crate::support::api::{Answer, Api, LISTED, principal, send};
use crate::support::eventually;
use reqwest::Method;
use serde_json::json;
use std::time::Duration;
use taskbell::core::principal::Role;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn every_answer_has_the_security_headers() {
    let api = Api::start().await;
    for path in ["/healthz", "/nowhere", "/api/v1/tasks"] {
        let answer = api.nobody().get(path).await;
        let policy = answer.header("content-security-policy");
        for rule in [
            "default-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "connect-src 'self'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(rule), "{path}: {rule}");
        }
        assert!(policy.contains("require-trusted-types-for 'script'") && !policy.contains("unsafe"));
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("referrer-policy"), "same-origin");
    }
}

#[tokio::test]
async fn a_foreign_origin_is_refused_whatever_else_it_carries() {
    let api = Api::start().await;
    let alice = api.alice().await;
    let own = api.base.clone();
    let other_port = "http://127.0.0.1:1".to_owned();
    for (origin, status) in [
        (own.as_str(), 200),
        (LISTED, 200),
        ("null", 403),
        ("https://evil.test", 403),
        ("https://erp.example.com.evil.test", 403),
        ("http://erp.example.com", 403),
        (&other_port, 403),
    ] {
        let answer = send(alice.request(Method::GET, "/api/v1/tasks").header("origin", origin)).await;
        assert_eq!(answer.status, status, "{origin}");
        let allowed = answer.header("access-control-allow-origin");
        assert_eq!(allowed, if origin == LISTED { LISTED } else { "" }, "{origin}");
        assert_eq!(answer.header("access-control-allow-credentials"), "");
    }
}

#[tokio::test]
async fn a_listed_page_may_ask_first_and_read_the_headers_it_needs() {
    let api = Api::start().await;
    let preflight = api
        .nobody()
        .request(Method::OPTIONS, "/api/v1/tasks")
        .header("origin", LISTED)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,content-type,idempotency-key");
    let answer = send(preflight).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, LISTED));
    for word in ["GET", "POST", "DELETE"] {
        assert!(answer.header("access-control-allow-methods").contains(word));
    }
    for word in ["authorization", "content-type", "idempotency-key"] {
        assert!(answer.header("access-control-allow-headers").contains(word));
    }
    let alice = api.alice().await;
    let answer = send(alice.request(Method::GET, "/api/v1/tasks").header("origin", LISTED)).await;
    let exposed = answer.header("access-control-expose-headers").to_lowercase();
    for word in ["location", "etag", "retry-after"] {
        assert!(exposed.contains(word), "{exposed}");
    }
}

#[tokio::test]
async fn a_session_counts_for_our_own_pages_only() {
    let api = Api::start().await;
    let secret = api.session(principal("default", "alice", Role::User)).await;
    let nobody = api.nobody();
    let with = |cookie: String, origin: &str| {
        let request = nobody.request(Method::GET, "/api/v1/tasks").header("cookie", cookie);
        send(if origin.is_empty() { request } else { request.header("origin", origin) })
    };
    let cookie = || format!("a=b; __Host-taskbell={secret}");
    assert_eq!(with(cookie(), "").await.status, 200);
    assert_eq!(with(cookie(), &api.base).await.status, 200);
    assert_eq!(with(cookie(), LISTED).await.status, 401, "other pages call with a key");
    assert_eq!(with(format!("__Host-taskbell={secret}x"), "").await.status, 401);
    assert_eq!(with(format!("taskbell={secret}"), "").await.status, 401, "the plain name is for insecure_http");
    taskbell::web::auth::sign_out(api.node.store.as_ref(), &secret).await.unwrap();
    assert_eq!(with(cookie(), "").await.status, 401);
}

#[tokio::test]
async fn the_demo_answers_only_under_names_of_this_machine() {
    let api = Api::start_demo().await;
    let port = api.base.rsplit(':').next().unwrap();
    for (host, status) in [
        (format!("127.0.0.1:{port}"), 200),
        (format!("localhost:{port}"), 200),
        (format!("evil.test:{port}"), 403),
        ("127.0.0.1.evil.test".to_owned(), 403),
    ] {
        let answer = send(api.nobody().request(Method::GET, "/healthz").header("host", &host)).await;
        assert_eq!(answer.status, status, "{host}");
        assert_eq!(answer.code(), if status == 403 { "host-refused" } else { "" }, "{host}");
    }
}

async fn handshake(api: &Api, headers: &[(&str, &str)]) -> Answer {
    let mut request = api
        .nobody()
        .request(Method::GET, "/api/v1/ws")
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("sec-websocket-protocol", "taskbell.v1");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let text = if status == 101 { String::new() } else { answer.text().await.unwrap() };
    let json = serde_json::from_str(&text).unwrap_or_default();
    Answer { status, headers, text, json }
}

#[tokio::test]
async fn a_socket_opens_for_own_and_listed_pages_and_for_keys_without_one() {
    let api = Api::start().await;
    let secret = api.session(principal("default", "alice", Role::User)).await;
    let cookie = format!("__Host-taskbell={secret}");
    let key = format!("Bearer {}", api.alice().await.key.unwrap());
    let other_port = "http://127.0.0.1:1".to_owned();
    for (origin, cookie, key, status) in [
        (Some(api.base.as_str()), Some(&cookie), None, 101),
        (Some(LISTED), Some(&cookie), None, 101),
        (None, Some(&cookie), None, 403),
        (None, None, Some(&key), 101),
        (None, None, Some(&"Bearer tb_wrong".to_owned()), 401),
        // Nobody yet: the first frame has to prove it.
        (None, None, None, 101),
        (Some(LISTED), None, None, 101),
        (Some("https://evil.test"), Some(&cookie), None, 403),
        (Some("null"), Some(&cookie), Some(&key), 403),
        (Some("https://erp.example.com.evil.test"), Some(&cookie), None, 403),
        (Some("https://evilerp.example.com"), Some(&cookie), None, 403),
        (Some(other_port.as_str()), Some(&cookie), None, 403),
        (Some("https://erp.example.com:8443"), Some(&cookie), None, 403),
    ] {
        let mut headers = Vec::new();
        headers.extend(origin.map(|o| ("origin", o)));
        headers.extend(cookie.map(|c| ("cookie", c.as_str())));
        headers.extend(key.map(|k| ("authorization", k.as_str())));
        let answer = handshake(&api, &headers).await;
        assert_eq!(answer.status, status, "{headers:?}: {}", answer.text);
        if status == 101 {
            assert_eq!(answer.header("sec-websocket-protocol"), "taskbell.v1");
        }
    }
    let plain = api.alice().await.get("/api/v1/ws").await;
    assert_eq!((plain.status, plain.code()), (400, "bad-request"));
}

#[tokio::test]
async fn a_head_that_does_not_come_to_its_end_is_cut_and_holds_up_nobody() {
    let api = Api::start().await;
    let mut slow = TcpStream::connect(api.base.trim_start_matches("http://")).await.unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ").await.unwrap();
    assert_eq!(api.nobody().get("/healthz").await.status, 200);
    let mut rest = Vec::new();
    let cut = tokio::time::timeout(Duration::from_secs(30), slow.read_to_end(&mut rest)).await;
    assert!(cut.is_ok(), "it is closed from our side");
}

/// Proves: G10.
#[tokio::test]
async fn a_stop_answers_what_is_under_way_and_waits_for_no_idle_or_half_sent_connection() {
    let api = Api::start().await;
    let address = api.base.trim_start_matches("http://").to_owned();
    let mut open = Vec::new();
    for n in 0..20 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        if n % 2 == 0 {
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n").await.unwrap();
        }
        open.push(stream);
    }
    let alice = api.alice().await;
    assert_eq!(alice.submit(json!({"action": "ok"})).await.status, 201);
    api.stop.cancel();
    tokio::time::timeout(Duration::from_secs(10), api.served).await.expect("it ends within its grace").unwrap();
    eventually("no new connection is taken", Duration::from_secs(30), async || {
        TcpStream::connect(&address).await.is_err().then_some(())
    })
    .await;
    for stream in &mut open {
        let mut rest = Vec::new();
        // Closed or reset, but not left open.
        let _ = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut rest)).await.expect("closed");
    }
}
