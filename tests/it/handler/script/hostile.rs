//! Scripts that never end, eat memory, or try to get at the server.

use super::field::NATIVE;
use super::{Host, MEMORY, Rig, chunk, failure, function, result, run};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use taskbell::core::task::ErrorKind;

const SECOND: Duration = Duration::from_secs(1);

/// Scripts whose time is over before they are.
const ENDLESS: [&str; 12] = [
    "while (true) {}",
    "for (;;) { try { while (true) {} } catch {} finally { continue; } }",
    "while (true) await Promise.resolve();",
    "const turn = () => { Promise.resolve().then(turn); }; turn(); await new Promise(() => {});",
    "await cx.sleep(1e12);",
    "while (true) await cx.sleep(0);",
    "return { get hasMore() { while (true) {} } };",
    "return { hasMore: false, result: { toJSON() { while (true) {} } } };",
    "throw { get message() { while (true) {} } };",
    "return { then(resolve) { while (true) {} } };",
    "while (true) cx.leaseIsCurrent();",
    "/^(a+)+$/.test('a'.repeat(64) + 'b'); while (true) {}",
];

#[tokio::test]
async fn a_script_that_does_not_end_is_stopped_when_its_time_is_over() {
    let rig = Rig::new(2);
    for body in ENDLESS {
        let (ended, took) = rig.body(body, MEMORY, SECOND).await;
        let failure = failure(ended);
        assert_eq!((failure.kind, failure.code.as_str()), (ErrorKind::Timeout, "timeout"), "{body}: {failure:?}");
        assert!(took < 10 * SECOND, "{body}: {took:?}");
    }
    let handler = rig.handler("top.js", "while (true) {}\nexport default () => {};", MEMORY, SECOND);
    assert_eq!(
        failure(run(&handler, &Arc::new(Host::new()), chunk()).await).code,
        "timeout",
        "outside of its function"
    );
}

#[tokio::test]
async fn a_native_call_cannot_hold_a_process_beyond_its_time() {
    let rig = Rig::new(2);
    for body in NATIVE {
        let (ended, took) = rig.body(body, 1024 * 1024 * 1024, SECOND).await;
        let failure = failure(ended);
        assert!(matches!(failure.kind, ErrorKind::Timeout | ErrorKind::Budget), "{body}: {failure:?}");
        assert!(took < 10 * SECOND, "{body}: {took:?}");
    }
}

#[tokio::test]
async fn a_script_that_eats_memory_hits_its_budget() {
    let rig = Rig::new(2);
    for body in [
        "return { hasMore: false, result: new Uint8Array(4 * 1024 ** 3).length };",
        "const kept = []; while (true) kept.push(new ArrayBuffer(1024 * 1024));",
        "let text = 'x'; while (true) { text += text; if (text.charCodeAt(text.length - 1) === 0) break; }",
        "const kept = []; for (let i = 0; i < 1e7; i++) kept.push({ i });",
        "globalThis.kept = []; for (let i = 0; i < 1e7; i++) globalThis.kept.push(() => i);",
        "const list = new Array(5e6).fill(0).map((_, i) => [i]); return { hasMore: false, result: list.length };",
        "globalThis.kept = []; const more = async () => { kept.push('y'.repeat(1e5)); await null; return more(); }; await more();",
        "let chain = null; while (true) chain = { chain };",
        "const map = new Map(); for (let i = 0; ; i++) map.set(i, 'v' + i);",
        "console.log('x'.repeat(5e8) + 'y');",
        "return { hasMore: false, result: 'z'.repeat(6e7) };",
    ] {
        let (ended, _) = rig.body(body, MEMORY, Duration::from_secs(60)).await;
        let failure = failure(ended);
        assert_eq!((failure.kind, failure.code.as_str()), (ErrorKind::Budget, "memory"), "{body}: {failure:?}");
        assert!(failure.message.contains("64 MiB") && failure.detail.unwrap().contains("67108864"), "{body}");
    }
}

#[tokio::test]
async fn the_memory_of_a_chunk_is_its_own_budget_and_its_errors_can_be_caught() {
    let rig = Rig::new(1);
    let body = "return { hasMore: false, result: new Uint8Array(48 * 1024 * 1024).length };";
    let (roomy, _) = rig.body(body, MEMORY, Duration::from_secs(60)).await;
    assert_eq!(result(roomy), json!(48 * 1024 * 1024));
    let (tight, _) = rig.body(body, 16 * 1024 * 1024, Duration::from_secs(60)).await;
    assert_eq!(failure(tight).code, "memory");
    let body = "try { new Uint8Array(1024 ** 3); } catch (error) { return { hasMore: false, result: error.message }; }";
    let (caught, _) = rig.body(body, MEMORY, Duration::from_secs(60)).await;
    assert_eq!(result(caught), json!("out of memory"));
}

#[tokio::test]
async fn calls_that_are_nested_too_deep_hit_their_budget() {
    let rig = Rig::new(1);
    for body in [
        "const down = () => down() + 1; down();",
        "let deep = []; for (let i = 0; i < 1e5; i++) deep = [deep]; return { hasMore: false, result: deep };",
        "const down = { get down() { return this.down; } }; down.down;",
        "const p = new Proxy({}, { get: (t, k, self) => self[k] }); p.x;",
        "JSON.parse('['.repeat(1e6));",
    ] {
        let (ended, _) = rig.body(body, 256 * 1024 * 1024, Duration::from_secs(60)).await;
        let failure = failure(ended);
        assert_eq!((failure.kind, failure.code.as_str()), (ErrorKind::Budget, "stack"), "{body}: {failure:?}");
    }
}

#[tokio::test]
async fn a_flood_of_lines_is_cut_and_the_cut_is_told() {
    let rig = Rig::new(1);
    let host = Arc::new(Host::new());
    let text = function(
        "for (let i = 0; i < 1e5; i++) console.log('line', i); return { hasMore: true, log: Array(1e4).fill('l') };",
    );
    let ended = rig.run_with(&text, &host, chunk()).await.unwrap();
    let texts = host.texts();
    assert_eq!(texts.len(), 2_001);
    assert_eq!((texts[0].as_str(), texts[1_999].as_str()), ("line 0", "line 1999"));
    assert_eq!(texts[2_000], "98000 more lines were cut: of a chunk 2000 lines and 1048576 bytes are kept");
    let taskbell::core::chunk::Outcome::More { told, .. } = ended else { panic!("{ended:?}") };
    assert_eq!((told.log.len(), told.log[2_000].as_str()), (2_001, "8000 more lines of the answer were cut"));

    let host = Arc::new(Host::new());
    let text = function("for (let i = 0; i < 300; i++) cx.log('界'.repeat(1e6)); throw new Error('after all');");
    assert_eq!(failure(rig.run_with(&text, &host, chunk()).await).message, "after all");
    let lines = host.texts();
    assert!(lines.iter().map(String::len).sum::<usize>() <= 1024 * 1024 + 200);
    assert!(lines.iter().all(|line| line.len() <= 16 * 1024 && !line.contains('\u{fffd}')));
    assert!(lines.last().unwrap().contains("more lines were cut"));
}

/// Proves: G16.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_innocent_script_goes_on_beside_eight_hostile_ones() {
    let rig = Arc::new(Rig::new(2));
    let hostile = [
        ENDLESS[0],
        ENDLESS[2],
        NATIVE[0],
        NATIVE[3],
        "const k = []; while (true) k.push('x'.repeat(1e6) + k.length);",
    ];
    let over = Arc::new(AtomicBool::new(false));
    let mut attackers = Vec::new();
    for attacker in 0..8 {
        let handler =
            rig.handler(&format!("{attacker}.js"), &function(hostile[attacker % hostile.len()]), MEMORY, SECOND);
        let over = Arc::clone(&over);
        attackers.push(tokio::spawn(async move {
            for _ in 0..2 {
                let failure = failure(run(&handler, &Arc::new(Host::new()), chunk()).await);
                assert!(matches!(failure.kind, ErrorKind::Timeout | ErrorKind::Budget), "{attacker}: {failure:?}");
            }
            over.store(true, Ordering::Release);
        }));
    }
    let innocent = rig.handler("innocent.js", &function("return { hasMore: true, current: 1 };"), MEMORY, SECOND);
    let mut chunks = 0;
    while !over.load(Ordering::Acquire) {
        run(&innocent, &Arc::new(Host::new()), chunk()).await.unwrap();
        chunks += 1;
    }
    for attacker in attackers {
        attacker.await.unwrap();
    }
    println!("{chunks} chunks beside 8 hostile scripts");
    assert!(chunks >= 5, "{chunks}");
}
