//! `submit` and `watch` against a scripted server.

use super::scripted::{Move, Script, Server};
use super::taskbell;
use serde_json::{Value, json};

const ID: &str = "019ac0de-0000-7000-8000-000000000001";

fn task(revision: i64, state: &str, progress: Value) -> Value {
    let mut task = json!({"id": ID, "revision": revision, "title": "Import", "state": state,
        "startedAt": "2026-11-29T15:00:00.000Z", "finishedAt": "2026-11-29T15:00:48.000Z"});
    task["progress"] = progress;
    task
}

fn progress(current: u64, total: Option<u64>, percent: Option<u8>) -> Value {
    json!({"current": current, "total": total, "unit": "rows", "percent": percent, "eta": {"state": "estimating"}})
}

fn line(seq: i64, message: &str) -> Value {
    json!({"seq": seq, "at": "2026-11-29T15:00:01.000Z", "level": "info", "source": "handler", "chunk": 1, "message": message})
}

fn greeting() -> [Move; 3] {
    let welcome = json!({"t": "welcome", "epoch": "e", "head": 1, "serverTime": "x", "pingMs": 25000});
    [Move::Expect("hello"), Move::Send(welcome), Move::Expect("sub")]
}

fn snap(task: &Value) -> Move {
    let topic = format!("task:{ID}");
    Move::Send(
        json!({"t": "snap", "topic": topic, "epoch": "e", "head": 1, "asOf": "x", "items": [task], "more": false, "counts": {}}),
    )
}

fn delta(task: &Value) -> Move {
    Move::Send(json!({"t": "delta", "topic": "me", "head": 2, "items": [task], "counts": {}}))
}

fn env(server: &Server) -> [(&str, &str); 2] {
    [("TASKBELL_URL", server.url.as_str()), ("TASKBELL_KEY", "tb_test-key")]
}

#[tokio::test]
async fn a_submit_uploads_files_and_prints_the_id_alone() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("rows 1.csv"), "a,b\n1,2\n").unwrap();
    let server = Server::start(Script { task: task(1, "queued", json!({})), ..Script::default() }).await;
    let args = [
        "submit",
        "import",
        "--param",
        "file=@rows 1.csv",
        "--param",
        "n=3",
        "--param",
        "who=bob",
        "--record",
        "order:7",
    ];
    let ran = taskbell(dir.path(), &[&args[..], &["--idempotency-key", "k1"]].concat(), &env(&server)).await;
    assert_eq!((ran.status, ran.out.as_str(), ran.err.as_str()), (0, format!("{ID}\n").as_str(), ""));
    server.with(|script| {
        let (what, headers, body) = &script.sent[0];
        assert_eq!((what.as_str(), body.as_slice()), ("POST uploads?name=rows+1.csv", &b"a,b\n1,2\n"[..]));
        assert_eq!(headers["content-type"], "application/octet-stream");
        let (what, headers, body) = &script.sent[1];
        assert_eq!((what.as_str(), headers["authorization"].to_str().unwrap()), ("POST tasks", "Bearer tb_test-key"));
        let sent: Value = serde_json::from_slice(body).unwrap();
        assert_eq!(
            sent,
            json!({"action": "import", "params": {"file": "f1", "n": 3, "who": "bob"}, "record": {"type": "order", "id": "7"}, "idempotencyKey": "k1"})
        );
    });
}

#[tokio::test]
async fn a_refusal_is_told_with_its_fields_and_its_request_id() {
    let dir = tempfile::tempdir().unwrap();
    let problem = json!({"title": "Invalid", "status": 422, "code": "invalid", "detail": "A field is wrong.", "requestId": "r-7",
        "errors": [{"path": "params.file", "message": "is required"}]});
    let server = Server::start(Script { refusal: Some((422, problem)), ..Script::default() }).await;
    let ran = taskbell(dir.path(), &["submit", "import", "--watch"], &env(&server)).await;
    assert_eq!((ran.status, ran.out.as_str()), (3, ""));
    assert_eq!(
        ran.err,
        "taskbell: Invalid (422 invalid): A field is wrong.\n  params.file: is required\n  request id: r-7\n"
    );
}

#[tokio::test]
async fn a_watch_shows_progress_and_log_and_exits_by_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let done = task(5, "succeeded", progress(5000, Some(5000), Some(100)));
    let moves = greeting().into_iter().chain([
        snap(&task(2, "running", progress(0, Some(5000), Some(0)))),
        delta(&task(3, "running", progress(1200, Some(5000), Some(24)))),
        Move::Send(json!({"t": "log", "task": ID, "from": 2, "to": 2, "lines": [line(2, "batch \u{1b}[31m12\u{1b}[0m committed")]})),
        delta(&task(2, "running", progress(1, Some(5000), Some(0)))),
        Move::Send(json!({"t": "ping", "head": 2})),
        Move::Expect("pong"),
        Move::Task(done.clone()),
        delta(&done),
    ]);
    let server = Server::start(Script {
        task: task(1, "queued", progress(0, None, None)),
        log: vec![line(1, "started")],
        sockets: [moves.collect()].into(),
        ..Script::default()
    })
    .await;
    let ran = taskbell(dir.path(), &["watch", ID], &env(&server)).await;
    assert_eq!(server.with(|script| script.faults.clone()), [""; 0]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    let lines: Vec<&str> = ran.out.lines().collect();
    let told = [
        "Queued · starting",
        "2026-11-29 15:00:01 I started",
        "Running · 0% · 0 / 5,000 rows · estimating",
        "Running · 24% · 1,200 / 5,000 rows · estimating",
        "2026-11-29 15:00:01 I batch 12 committed",
    ];
    assert_eq!(lines[..5], told);
    assert_eq!(lines.last(), Some(&"Succeeded · 5,000 rows in 48 s"));
    let socket = server.with(|script| script.sent.iter().find(|(what, ..)| what == "GET ws").unwrap().1.clone());
    assert_eq!(
        (&socket["authorization"], &socket["sec-websocket-protocol"]),
        (&"Bearer tb_test-key".parse().unwrap(), &"taskbell.v1".parse().unwrap())
    );
    assert!(!socket.contains_key("origin"));
}

#[tokio::test]
async fn failed_is_1_and_cancelled_is_2_at_their_true_value() {
    let dir = tempfile::tempdir().unwrap();
    for (state, status, told) in [("failed", 1, "Failed · no (x) · "), ("cancelled", 2, "Cancelled · ")] {
        let mut ended = task(9, state, progress(1250, Some(5000), Some(25)));
        ended["error"] = json!({"kind": "handler", "code": "x", "message": "no"});
        let moves = greeting().into_iter().chain([snap(&ended)]).collect();
        let server = Server::start(Script {
            task: task(1, "running", progress(1250, Some(5000), Some(25))),
            sockets: [moves].into(),
            ..Script::default()
        })
        .await;
        let ran = taskbell(dir.path(), &["watch", ID], &env(&server)).await;
        assert_eq!(ran.status, status, "{}{}", ran.out, ran.err);
        let last = ran.out.lines().last().unwrap();
        assert!(last.starts_with(told) && last.ends_with("stopped at 1,250 of 5,000 (25%)"), "{last}");
    }
}

#[tokio::test]
async fn an_unknown_total_has_no_percent_sign_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let moves = greeting()
        .into_iter()
        .chain([
            snap(&task(2, "running", progress(10, None, None))),
            delta(&task(3, "succeeded", progress(1250, None, None))),
        ])
        .collect();
    let server = Server::start(Script {
        task: task(1, "running", progress(0, None, None)),
        sockets: [moves].into(),
        ..Script::default()
    })
    .await;
    let ran = taskbell(dir.path(), &["watch", ID], &env(&server)).await;
    assert_eq!(ran.status, 0);
    assert!(!ran.out.contains('%') && ran.out.contains("Succeeded · 1,250 rows"), "{}", ran.out);
}

#[tokio::test]
async fn a_lost_socket_is_taken_up_again_and_no_log_line_is_lost_or_doubled() {
    let dir = tempfile::tempdir().unwrap();
    let done = task(9, "succeeded", progress(100, Some(100), Some(100)));
    let first = greeting().into_iter().chain([
        snap(&task(2, "running", progress(10, Some(100), Some(10)))),
        Move::Send(json!({"t": "log", "task": ID, "from": 1, "to": 1, "lines": [line(1, "one")]})),
        Move::Close(1012),
    ]);
    let second = greeting().into_iter().chain([
        snap(&task(5, "running", progress(60, Some(100), Some(60)))),
        Move::Send(json!({"t": "log", "task": ID, "from": 3, "to": 3, "lines": [line(3, "three")]})),
        Move::Task(done.clone()),
        delta(&done),
    ]);
    let server = Server::start(Script {
        task: task(1, "running", progress(0, Some(100), Some(0))),
        sockets: [first.collect(), second.collect()].into(),
        ..Script::default()
    })
    .await;
    let log = vec![line(1, "one"), line(2, "two"), line(3, "three")];
    let ran = {
        let server = server.clone();
        let feed = tokio::spawn({
            let server = server.clone();
            // The whole log can be read once the first socket is gone.
            async move {
                while server.with(|script| script.sockets.len()) == 2 {
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
                server.with(|script| script.log = log);
            }
        });
        let ran = taskbell(dir.path(), &["watch", ID], &env(&server)).await;
        tokio::time::timeout(super::LIMIT, feed).await.expect("the first socket was used").unwrap();
        ran
    };
    assert_eq!(server.with(|script| script.faults.clone()), [""; 0]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    let logged: Vec<&str> = ran.out.lines().filter_map(|line| line.split_once(" I ")).map(|(_, text)| text).collect();
    assert_eq!(logged, ["one", "two", "three"]);
    assert!(ran.out.contains("60%"), "{}", ran.out);
}

#[tokio::test]
async fn every_loss_but_a_refusal_is_survived_and_the_server_is_told_what_was_told_before() {
    let drain = || Move::Send(json!({"t": "drain", "retryMs": 0, "spreadMs": 100}));
    let lives = [1012, 1013, 4008, 4010, 4429].map(|code| vec![Move::Close(code)]);
    let lives = lives.into_iter().chain([vec![drain()], vec![]]);
    let watches = lives.map(async |last| {
        let dir = tempfile::tempdir().unwrap();
        let done = task(9, "succeeded", progress(100, Some(100), Some(100)));
        let me = json!({"t": "snap", "topic": "me", "epoch": "e", "head": 7, "asOf": "x", "items": [], "more": false, "counts": {}});
        let running = snap(&task(2, "running", progress(10, Some(100), Some(10))));
        let first = greeting().into_iter().chain([Move::Send(me), running]).chain(last);
        let have = json!({"t": "hello", "token": null, "have": {"epoch": "e", "head": 7}, "lang": "en"});
        let [_, _, sub] = greeting();
        let welcome = json!({"t": "welcome", "epoch": "e", "head": 8, "serverTime": "x", "pingMs": 25000});
        let second = [Move::ExpectThis(have), Move::Send(welcome), sub, Move::Task(done.clone()), snap(&done)];
        let server = Server::start(Script {
            task: task(1, "running", progress(0, Some(100), Some(0))),
            sockets: [first.collect(), second.into()].into(),
            ..Script::default()
        })
        .await;
        let ran = taskbell(dir.path(), &["watch", ID], &env(&server)).await;
        assert_eq!(server.with(|script| script.faults.clone()), [""; 0]);
        assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
        assert_eq!(ran.out.lines().last(), Some("Succeeded · 100 rows in 48 s"));
    });
    futures_util::future::join_all(watches).await;
}

#[tokio::test]
async fn a_terminal_in_chinese_says_the_words_of_the_pages() {
    let dir = tempfile::tempdir().unwrap();
    let done = task(9, "succeeded", progress(100, Some(100), Some(100)));
    let hello = json!({"t": "hello", "token": null, "have": null, "lang": "zh-CN"});
    let [_, welcome, sub] = greeting();
    let running = snap(&task(2, "running", progress(10, Some(100), Some(10))));
    let moves = [Move::ExpectThis(hello), welcome, sub, running, Move::Task(done.clone()), delta(&done)];
    let server = Server::start(Script {
        task: task(1, "queued", progress(0, None, None)),
        sockets: [moves.into()].into(),
        ..Script::default()
    })
    .await;
    let [url, key] = env(&server);
    let ran = taskbell(dir.path(), &["watch", ID], &[url, key, ("LC_ALL", "zh_CN.UTF-8")]).await;
    assert_eq!(server.with(|script| script.faults.clone()), [""; 0]);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines, ["排队中 · 即将开始", "后台处理中 · 10% · 10 / 100 行 · 估算中", "已完成 · 100 行，用时 48 秒"]);
    let asked = server.with(|script| script.sent[0].1["accept-language"].clone());
    assert_eq!(asked, "zh-CN");
}

#[tokio::test]
async fn the_end_is_seen_even_where_sockets_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let done = task(9, "succeeded", progress(100, Some(100), Some(100)));
    let server = Server::start(Script {
        task: task(1, "running", progress(0, Some(100), Some(0))),
        sockets: [vec![Move::Task(done), Move::Close(1013)]].into(),
        ..Script::default()
    })
    .await;
    let ran = taskbell(dir.path(), &["watch", ID], &env(&server)).await;
    assert!(ran.status == 0 && ran.out.contains("Succeeded"), "{}{}", ran.out, ran.err);
}

#[tokio::test]
async fn what_cannot_be_followed_is_3_with_a_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let problem = |status: u16, code: &str| json!({"title": "Refused", "status": status, "code": code, "detail": "", "requestId": "r"});
    for (status, code, told) in [(404, "not-found", "(404 not-found)"), (401, "unauthorized", "TASKBELL_KEY")] {
        let server =
            Server::start(Script { refusal: Some((status, problem(status, code))), ..Script::default() }).await;
        let ran = taskbell(dir.path(), &["watch", ID], &env(&server)).await;
        assert!(ran.status == 3 && ran.out.is_empty() && ran.err.contains(told), "{}", ran.err);
    }
    for (last, told) in [
        (Move::Close(4403), "does not allow"),
        (Move::Close(4001), "no longer valid"),
        (Move::Send(json!({"t": "gone", "id": ID, "revision": 9})), "deleted"),
    ] {
        let moves = greeting().into_iter().chain([last]).collect();
        let server =
            Server::start(Script { task: task(1, "running", json!({})), sockets: [moves].into(), ..Script::default() })
                .await;
        let ran = taskbell(dir.path(), &["watch", ID], &env(&server)).await;
        assert!(ran.status == 3 && ran.err.contains(told), "{} {}", ran.status, ran.err);
    }
    let nobody = [("TASKBELL_URL", "http://127.0.0.1:1")];
    let ran = taskbell(dir.path(), &["watch", ID], &nobody).await;
    assert!(ran.status == 3 && ran.err.contains("cannot reach http://127.0.0.1:1/"), "{}", ran.err);
}
