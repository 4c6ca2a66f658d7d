//! A real server under attack over its WebSocket: foreign pages, too many connections, frames that no client sends, peers that
//! vanish. Each time the attacker is turned away, and others go on.

use super::raw::{BINARY, CONTINUED, Got, PING, Raw, TEXT};
use crate::support::eventually;
use crate::support::server::{Client, Server, Spec};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

const LIMIT: Duration = Duration::from_secs(30);
const FRAME_BYTES: usize = 32 * 1024;
const HELLO: &str = r#"{"t":"hello"}"#;

async fn alice(server: &Server) -> Client {
    server.client("alice", "user").await
}

/// A connection that has its snapshot.
async fn entered(server: &Server, key: &str) -> Raw {
    let mut raw = Raw::open(server, key).await;
    raw.say(HELLO).await;
    raw.frame("snap").await;
    raw
}

/// The answer to a hello from an address that a proxy tells.
async fn hello_from(server: &Server, key: &str, from: &str) -> (Raw, Got) {
    let mut raw = Raw::open_from(server, key, Some(from)).await;
    raw.say(HELLO).await;
    let got = raw.next().await;
    (raw, got)
}

fn is_welcome(got: &Got) -> bool {
    matches!(got, Got::Frame(frame) if frame["t"] == "welcome")
}

/// Proves: G23.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_only_our_own_and_listed_pages_open_a_socket_whoever_is_signed_in() {
    let listed = r#"["https://erp.example.com"]"#;
    let server = Spec::demo().env("TASKBELL__SERVER__ALLOWED_ORIGINS", listed).start().await;
    let own = server.url();
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let form = http.post(format!("{own}/login")).header("origin", &own);
    let form = form.header("content-type", "application/x-www-form-urlencoded").body("user=user&password=");
    let set = form.send().await.unwrap().headers()["set-cookie"].to_str().unwrap().to_owned();
    let cookie = set.split(';').next().unwrap().to_owned();
    let bearer = format!("Bearer {}", alice(&server).await.key);
    let no_origin: [&str; 0] = [];
    let port = server.port();
    let (other_port, upper) = (format!("http://127.0.0.1:{}", port ^ 1), own.to_uppercase());
    let foreign = [
        "null",
        "",
        "https://evil.test",
        "https://erp.example.com.evil.test",
        "https://evilerp.example.com",
        "https://erp.example.com@evil.test",
        "https://erp.example.com:8443",
        "https://erp.example.com/",
        "https://erp.example.com.",
        "http://erp.example.com",
        "https://еrp.example.com",
        "https://xn--rp-hlc.example.com",
        "file://",
        &other_port,
        &upper,
    ];
    let mut table: Vec<(Vec<&str>, [u16; 3])> = vec![
        (no_origin.into(), [403, 101, 101]),
        (vec![&own], [101, 101, 101]),
        (vec!["https://erp.example.com"], [101, 101, 101]),
        (vec![&own, "https://evil.test"], [403, 403, 403]),
        (vec!["https://erp.example.com", &own], [403, 403, 403]),
    ];
    table.extend(foreign.iter().map(|origin| (vec![*origin], [403, 403, 403])));
    for (origins, statuses) in table {
        let ways: [&[(&str, &[u8])]; 3] =
            [&[("cookie", cookie.as_bytes())], &[("authorization", bearer.as_bytes())], &[]];
        for (way, status) in ways.iter().zip(statuses) {
            let mut headers = way.to_vec();
            headers.extend(origins.iter().map(|origin| ("origin", origin.as_bytes())));
            let (answered, mut raw) = Raw::ask(&server, &headers).await;
            let by = way.first().map_or("nothing", |(name, _)| name);
            assert_eq!(answered, status, "{origins:?} by {by}");
            if status == 101 {
                raw.say(HELLO).await;
                let proven = is_welcome(&raw.next().await);
                assert_eq!(proven, by != "nothing", "{origins:?} by {by}");
            }
        }
    }
}

/// Proves: G23.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s14_an_address_and_a_node_have_so_many_connections_and_no_header_moves_the_count() {
    let server = Spec::demo()
        .env("TASKBELL__PUSH__CONNECTIONS_PER_ADDRESS", "2")
        .env("TASKBELL__PUSH__CONNECTIONS_PER_NODE", "6")
        .env("TASKBELL__SERVER__TRUSTED_PROXIES", r#"["127.0.0.1"]"#)
        .start()
        .await;
    let key = alice(&server).await.key;
    let mut inside = Vec::new();
    for from in ["198.51.100.1", "198.51.100.1:5000", "2001:db8:0:1::1", "[2001:db8:0:1::2]:443"] {
        let (raw, got) = hello_from(&server, &key, from).await;
        assert!(is_welcome(&got), "{from}: {got:?}");
        inside.push(raw);
    }
    // What stands before the last address was written by the client.
    for from in ["198.51.100.1", "203.0.113.9, 198.51.100.1", "2001:db8:0:1:ffff::3", "::ffff:198.51.100.1"] {
        let mut raw = Raw::open_from(&server, &key, Some(from)).await;
        assert_eq!(raw.next().await, Got::Closed(4429), "{from}, without a word said");
    }
    for from in ["198.51.100.2", "2001:db8:0:2::1"] {
        let (raw, got) = hello_from(&server, &key, from).await;
        assert!(is_welcome(&got), "{from}: {got:?}");
        inside.push(raw);
    }
    let mut one_more = Raw::open_from(&server, &key, Some("198.51.100.3")).await;
    assert_eq!(one_more.next().await, Got::Closed(1013));
    drop(inside.swap_remove(0));
    let room = async || is_welcome(&hello_from(&server, &key, "198.51.100.1").await.1).then_some(());
    eventually("room for another one of that address", LIMIT, room).await;
    assert!(server.said().contains("198.51.100.1"), "the log names the address");
}

/// Proves: G23.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s14_a_frame_is_taken_at_its_limit_and_what_is_larger_or_broken_ends_the_socket() {
    let server = Spec::demo().start().await;
    let client = alice(&server).await;
    let sync = |size: usize| format!("{}{}", r#"{"t":"sync"}"#, " ".repeat(size - 12));
    let mut whole = entered(&server, &client.key).await;
    whole.say(&sync(FRAME_BYTES)).await;
    whole.frame("snap").await;
    // In parts, with a ping between them.
    let text = sync(FRAME_BYTES).into_bytes();
    whole.send(false, TEXT, &text[..5]).await;
    whole.send(true, PING, b"still here").await;
    whole.send(false, CONTINUED, &text[5..6]).await;
    whole.send(true, CONTINUED, &text[6..]).await;
    whole.frame("snap").await;

    for (what, parts) in [
        ("one byte too many", vec![(0x80 | TEXT, FRAME_BYTES + 1, true)]),
        ("a hundred times the limit", vec![(0x80 | TEXT, FRAME_BYTES * 100, true)]),
        ("too many bytes in parts", vec![(TEXT, FRAME_BYTES, true), (0x80 | CONTINUED, 1, true)]),
        ("parts without an end", (0..200).map(|n| (if n == 0 { TEXT } else { CONTINUED }, 1_000, true)).collect()),
        ("binary", vec![(0x80 | BINARY, FRAME_BYTES + 1, true)]),
        ("not masked", vec![(0x80 | TEXT, 12, false)]),
        ("a part of nothing", vec![(0x80 | CONTINUED, 12, true)]),
        ("a new message within another", vec![(TEXT, 12, true), (0x80 | TEXT, 12, true)]),
        ("an unknown kind", vec![(0x80 | 0x3, 12, true)]),
        ("a bit that is reserved", vec![(0xc0 | TEXT, 12, true)]),
        ("a ping in parts", vec![(PING, 12, true)]),
        ("a ping that is too large", vec![(0x80 | PING, 126, true)]),
    ] {
        let mut raw = entered(&server, &client.key).await;
        for (first, size, masked) in parts {
            raw.send_bits(first, &sync(size.max(12)).as_bytes()[..size], masked).await;
        }
        let end = raw.end().await;
        assert!(matches!(end, Got::Closed(4409) | Got::Gone), "{what}: {end:?}");
    }
    whole.say(r#"{"t":"sync"}"#).await;
    whole.frame("snap").await;
}

/// Proves: G23.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s14_a_flood_of_pings_or_frames_ends_the_socket_and_disturbs_no_other() {
    let server = Spec::demo().start().await;
    let client = alice(&server).await;
    let mut other = entered(&server, &client.key).await;
    for (kind, payload) in [(PING, &b"x"[..]), (TEXT, br#"{"t":"sync"}"#), (TEXT, b"null")] {
        let mut raw = entered(&server, &client.key).await;
        for _ in 0..1_000 {
            raw.send(true, kind, payload).await;
        }
        let end = raw.end().await;
        assert!(matches!(end, Got::Closed(4409) | Got::Gone), "{end:?}");
        other.say(r#"{"t":"sync"}"#).await;
        other.frame("snap").await;
    }
    let before_hello = async || {
        let mut raw = Raw::open(&server, &client.key).await;
        for _ in 0..1_000 {
            raw.send(true, PING, b"x").await;
        }
        raw.end().await
    };
    let end = before_hello().await;
    assert!(matches!(end, Got::Closed(4409) | Got::Gone), "{end:?}");
}

/// Proves: G23.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k6_a_peer_that_is_gone_without_a_word_is_forgotten() {
    let server = Spec::demo()
        // So long that the third is here before one of the two is gone.
        .env("TASKBELL__PUSH__PING_MS", "3000")
        .env("TASKBELL__PUSH__PONG_MS", "3000")
        .env("TASKBELL__PUSH__HELLO_MS", "5000")
        .env("TASKBELL__PUSH__CONNECTIONS_PER_NODE", "2")
        .start()
        .await;
    let key = alice(&server).await.key;
    // Neither reads nor writes from now on; the machine under it still takes what comes.
    let half_open = entered(&server, &key).await;
    let silent = Raw::open(&server, &key).await;
    // A socket counts a moment after its handshake is answered.
    let both = async || (number(&server, "taskbell_sockets").await == 2.0).then_some(());
    eventually("both are counted", LIMIT, both).await;
    let mut third = Raw::open(&server, &key).await;
    assert_eq!(third.next().await, Got::Closed(1013));
    let room = async || {
        let mut raw = Raw::open(&server, &key).await;
        raw.say(HELLO).await;
        is_welcome(&raw.next().await).then_some(raw)
    };
    let mut inside = Vec::new();
    for _ in 0..2 {
        inside.push(eventually("the place of one that is gone", LIMIT, room).await);
    }
    for (mut gone, code) in [(half_open, 4010), (silent, 4409)] {
        assert_eq!(gone.end().await, Got::Closed(code), "what it would have read");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k10_null_and_its_like_in_batches_over_http_are_refused_one_by_one() {
    let server = Spec::demo().start().await;
    let client = alice(&server).await;
    let like_null =
        || vec![Value::Null, json!([null]), json!([]), json!({}), json!("x"), json!(1e300), json!([{"action": null}])];
    let (status, answer) = client.post("/api/v1/tasks/batch", &json!({"items": like_null()})).await;
    assert_eq!(status, 200);
    for item in answer["items"].as_array().unwrap() {
        assert_eq!(item["status"], 422, "{item}");
    }
    let places = [
        "/api/v1/tasks/batch",
        "/api/v1/tasks/bulk",
        "/api/v1/notifications/seen",
        "/api/v1/notifications/read",
        "/api/v1/notifications/archive",
    ];
    for path in places {
        for body in like_null() {
            for body in
                [body.clone(), json!({"items": body, "ids": body}), json!({"ids": [body]}), json!({"upTo": body})]
            {
                let (status, answer) = client.post(path, &body).await;
                assert!((400..500).contains(&status) || status < 300, "{path} {body}: {status} {answer}");
            }
        }
    }
    assert_eq!(client.get("/api/v1/tasks").await.0, 200);
}

/// A number of the server's `/metrics`.
async fn number(server: &Server, name: &str) -> f64 {
    let text = reqwest::get(format!("{}/metrics", server.url())).await.unwrap().text().await.unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} is told")).parse().unwrap()
}

/// How long the slowest but one of many answers on a socket took.
async fn slowest_answer(raw: &mut Raw) -> Duration {
    let mut took = Vec::new();
    for _ in 0..30 {
        let start = Instant::now();
        raw.say(r#"{"t":"sync"}"#).await;
        raw.frame("snap").await;
        took.push(start.elapsed());
    }
    took.sort();
    took[took.len() - 2]
}

/// Proves: G23.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k5_sockets_whose_buffers_are_full_are_closed_and_cost_the_others_little() {
    const STUCK: usize = 40;
    let server = Spec::demo()
        .env("TASKBELL__PUSH__WRITE_MS", "1000")
        .env("TASKBELL__PUSH__COMMANDS_PER_SECOND", "1000")
        .env("TASKBELL__PUSH__CONNECTIONS_PER_USER", "100")
        .start()
        .await;
    let client = alice(&server).await;
    // A center of nearly 200 KB, which no socket buffer holds many times.
    let click = json!({"action": "recalculate-totals", "title": "字".repeat(200), "runAt": "2099-01-01T00:00:00.000Z"});
    let (status, answer) = client.post("/api/v1/tasks/batch", &json!({"items": vec![click; 100]})).await;
    assert!(status == 200 && answer["items"][99]["status"] == 201, "{answer}");
    let mut healthy = entered(&server, &client.key).await;
    let alone = slowest_answer(&mut healthy).await;
    let before = number(&server, "taskbell_process_resident_memory_bytes").await;
    let mut stuck: Vec<TcpStream> = Vec::new();
    for _ in 0..STUCK {
        let mut raw = Raw::open(&server, &client.key).await;
        raw.say(HELLO).await;
        for _ in 0..100 {
            raw.say(r#"{"t":"sync"}"#).await;
        }
        // From here on nobody reads.
        stuck.push(raw.into_inner());
    }
    let beside = slowest_answer(&mut healthy).await;
    assert!(beside < alone * 10 + Duration::from_millis(500), "{alone:?} alone, {beside:?} beside {STUCK} stuck ones");
    let grown = number(&server, "taskbell_process_resident_memory_bytes").await - before;
    assert!(grown < 50.0 * 1024.0 * 1024.0, "{STUCK} sockets that stand still took {grown} bytes");
    let closed = async || (number(&server, "taskbell_sockets").await <= 1.0).then_some(());
    eventually("all that do not read are closed", LIMIT, closed).await;
    healthy.say(r#"{"t":"sync"}"#).await;
    healthy.frame("snap").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p11_nothing_is_changed_over_the_socket() {
    let server = Spec::demo().start().await;
    let client = alice(&server).await;
    let click = json!({"action": "recalculate-totals", "runAt": "2099-01-01T00:00:00.000Z"});
    let task = client.submit(click).await;
    let id = task["id"].as_str().unwrap();
    let mut raw = entered(&server, &client.key).await;
    for verb in ["cancel", "pause", "resume", "retry", "delete", "seen", "read", "archive", "submit"] {
        raw.say(&json!({"t": verb, "id": id, "task": id, "ids": [id], "topic": format!("task:{id}")}).to_string())
            .await;
        assert_eq!(raw.frame("err").await["code"], "unknown-frame", "{verb}");
    }
    let (_, after) = client.get(&format!("/api/v1/tasks/{id}")).await;
    assert_eq!((&after["state"], &after["revision"]), (&task["state"], &task["revision"]));
}
