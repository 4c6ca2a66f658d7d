//! Golden frames: the texts that clients are written against, and every kind of nonsense that a client may send.

use super::*;
use std::collections::BTreeMap;

fn id() -> TaskId {
    "0193a1b2-0000-7000-8000-000000000001".parse().unwrap()
}

#[test]
fn client_frames_are_read_as_the_contract_writes_them() {
    let read = |text: &str| ClientFrame::read(text).unwrap();
    assert_eq!(
        read(r#"{"t":"hello","token":null,"have":{"epoch":"e1","head":412},"lang":"en"}"#),
        ClientFrame::Hello(Hello {
            token: None,
            have: Some(Have { epoch: Some("e1".into()), head: Some(412) }),
            lang: Some("en".into())
        })
    );
    assert_eq!(read(r#"{"t":"hello"}"#), ClientFrame::Hello(Hello::default()));
    assert_eq!(
        read(r#" {"topic":"task:1","t":"sub","from the future":{"a":[1]}}"#),
        ClientFrame::Sub(Sub { topic: "task:1".into(), log: None, after: None })
    );
    assert_eq!(
        read(r#"{"t":"sub","topic":"task:1","log":false,"after":7}"#),
        ClientFrame::Sub(Sub { topic: "task:1".into(), log: Some(false), after: Some(7) })
    );
    assert_eq!(read(r#"{"t":"unsub","topic":"me"}"#), ClientFrame::Unsub(Topic { topic: "me".into() }));
    assert_eq!(read(r#"{"t":"view","visible":true}"#), ClientFrame::View(View { visible: true }));
    assert_eq!(read(r#"{"t":"sync"}"#), ClientFrame::Sync(Sync { have: None }));
    assert_eq!(read(r#"{"t":"refresh","token":"x"}"#), ClientFrame::Refresh(Refresh { token: "x".into() }));
    assert_eq!(read(r#"{"t":"pong"}"#), ClientFrame::Pong);
}

#[test]
fn k10_nonsense_is_a_fault_and_never_a_frame() {
    let deep = format!("{{\"t\":\"hello\",\"have\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
    for text in [
        "",
        "null",
        "[null]",
        "[]",
        "{}",
        "\"x\"",
        "1e999",
        "true",
        "[\"pong\"]",
        "{\"t\":null}",
        "{\"t\":1}",
        "{\"t\":\"view\"}",
        "{\"t\":\"view\",\"visible\":\"yes\"}",
        "{\"t\":\"sub\",\"topic\":null}",
        "{\"t\":\"hello\",\"have\":{\"head\":1e999}}",
        "{\"t\":\"hello\",\"t\":\"pong\"}",
        "{\"t\":\"pong\"} {}",
        "{\"t\":\"po\u{0}ng\"",
        &deep,
    ] {
        assert_eq!(ClientFrame::read(text), Err(Fault::Malformed), "{}", &text[..text.len().min(60)]);
    }
    assert_eq!(ClientFrame::read("{\"t\":\"teleport\"}"), Err(Fault::Unknown));
}

#[test]
fn server_frames_are_written_as_the_contract_writes_them() {
    let item = RawValue::from_string(r#"{"id":"x","revision":18}"#.into()).unwrap();
    let counts = CountsView(Counts { by_state: BTreeMap::from([(State::Running, 2)]), unseen: 3, attention: 1 });
    let at = Millis(1_764_417_600_000);
    let lines = [LogLine {
        seq: 101,
        at,
        level: crate::store::logs::Level::Warn,
        source: "handler".into(),
        chunk: 3,
        message: "<img src=x>".into(),
    }];
    let frames = [
        ServerFrame::Welcome {
            epoch: "e1",
            head: Head(415),
            server_time: at,
            ping_ms: 25_000,
            tenant: "default",
            user: "alice",
        },
        ServerFrame::Snap {
            topic: ME,
            epoch: "e1",
            head: Head(415),
            as_of: at,
            items: &[&item, &item],
            more: true,
            counts: Some(&counts),
        },
        ServerFrame::Same { topic: ME, head: Head(415) },
        ServerFrame::Delta { topic: ME, head: Head(416), items: &[&item], counts: None },
        ServerFrame::Gone { id: id(), revision: Revision(19) },
        ServerFrame::Log { task: id(), from: 101, to: 101, lines: &lines },
        ServerFrame::Ping { head: Head(416) },
        ServerFrame::Status { live: Live::Degraded, since: at },
        ServerFrame::Auth { expires_in_ms: 60_000 },
        ServerFrame::Drain { retry_ms: 500, spread_ms: 5_000 },
        ServerFrame::Err { code: ErrorCode::NotFound, retryable: false, topic: Some("task:1") },
        ServerFrame::Err { code: ErrorCode::TooManyCommands, retryable: true, topic: None },
    ];
    let texts: Vec<String> = frames.iter().map(ServerFrame::text).collect();
    let golden = [
        r#"{"t":"welcome","epoch":"e1","head":415,"serverTime":"2025-11-29T12:00:00.000Z","pingMs":25000,"tenant":"default","user":"alice"}"#,
        r#"{"t":"snap","topic":"me","epoch":"e1","head":415,"asOf":"2025-11-29T12:00:00.000Z","items":[{"id":"x","revision":18},{"id":"x","revision":18}],"more":true,"counts":{"queued":0,"blocked":0,"running":2,"pausing":0,"paused":0,"cancelling":0,"unseen":3,"attention":1}}"#,
        r#"{"t":"same","topic":"me","head":415}"#,
        r#"{"t":"delta","topic":"me","head":416,"items":[{"id":"x","revision":18}]}"#,
        r#"{"t":"gone","id":"0193a1b2-0000-7000-8000-000000000001","revision":19}"#,
        r#"{"t":"log","task":"0193a1b2-0000-7000-8000-000000000001","from":101,"to":101,"lines":[{"seq":101,"at":"2025-11-29T12:00:00.000Z","level":"warn","source":"handler","chunk":3,"message":"<img src=x>"}]}"#,
        r#"{"t":"ping","head":416}"#,
        r#"{"t":"status","live":"degraded","since":"2025-11-29T12:00:00.000Z"}"#,
        r#"{"t":"auth","expiresInMs":60000}"#,
        r#"{"t":"drain","retryMs":500,"spreadMs":5000}"#,
        r#"{"t":"err","code":"not-found","retryable":false,"topic":"task:1"}"#,
        r#"{"t":"err","code":"too-many-commands","retryable":true}"#,
    ];
    assert_eq!(texts, golden);
}

#[test]
fn the_docs_list_every_code_in_order() {
    let docs = include_str!("../../../docs/push.md");
    let cells = |from: &str| -> Vec<String> {
        let part = docs.split(from).nth(1).unwrap().split("\n## ").next().unwrap();
        let rows = part.lines().filter(|line| line.starts_with("| ")).skip(1);
        rows.map(|row| row.split('|').nth(1).unwrap().trim().trim_matches('`').to_owned()).collect()
    };
    let codes = ErrorCode::ALL.map(|code| serde_json::to_value(code).unwrap().as_str().unwrap().to_owned());
    assert_eq!(cells("## Codes of `err`"), codes);
    assert_eq!(cells("## Close codes"), close::ALL.map(|code| code.to_string()));
}
