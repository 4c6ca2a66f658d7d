//! Faults that others had with interpreters in their servers: native loops that nothing interrupts, interrupts that end the
//! process, allocations that end the host. `TASKBELL_TEST_LONG=1` repeats them as often as it took there.

use super::pool::resident_bytes;
use super::{Host, MEMORY, Rig, chunk, eventually, failure, function, result, run};
use crate::support::ground::Ground;
use crate::support::node::{Node, action, answer, click, closure};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use taskbell::core::submit::Submit;
use taskbell::core::task::{ErrorKind, State};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const MIB: u64 = 1024 * 1024;

/// Scripts whose time goes into single native calls.
pub const NATIVE: [&str; 4] = [
    "new Array(1e9).join();",
    "const a = []; a.length = 4294967295; a.indexOf(1); a.reverse(); a.sort();",
    "'ab'.repeat(2.5e8).split('');",
    "const wide = {}; for (let i = 0; i < 3e6; i++) wide['k' + i] = i; while (true) JSON.stringify(wide);",
];

/// Proves: G16.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn q1_a_native_call_is_stopped_soon_after_its_time_and_others_go_on() {
    let rig = Rig::new(2);
    let ground = Ground::sqlite().await;
    let quick = closure(|_| std::future::ready(answer(json!({"hasMore": false}))));
    let mut handlers = vec![(action("other"), quick)];
    for (n, body) in NATIVE.iter().enumerate() {
        let script = rig.handler(&format!("{n}.js"), &function(body), 1024 * MIB, SECOND);
        handlers.push((action(&format!("native-{n}")), Arc::new(script)));
    }
    let node = Node::start(&ground, handlers).await;
    for n in 0..NATIVE.len() {
        let hostile = node.click(Submit { max_attempts: 1, ..click(&format!("native-{n}"), json!({})) }).await;
        let began = Instant::now();
        let mut beside = 0;
        let ended = loop {
            let other = node.click(click("other", json!({}))).await;
            node.until(other, State::Succeeded).await;
            beside += 1;
            let task = node.task(hostile).await;
            if task.state.is_final() || began.elapsed() > MINUTE {
                break task;
            }
        };
        let error = ended.error.unwrap_or_else(|| panic!("native-{n} goes on after {:?}", began.elapsed()));
        assert!(matches!(error.kind, ErrorKind::Timeout | ErrorKind::Budget), "native-{n}: {error:?}");
        assert_eq!(ended.reclaims, 0, "its lease was kept all the while");
        assert!(beside > 1, "native-{n}: {beside}");
        assert!(began.elapsed() < 20 * SECOND, "native-{n}: {:?}", began.elapsed());
    }
    node.engine.drain().await;
}

/// Proves: G16.
#[tokio::test]
async fn q3_an_endless_chain_of_promises_is_an_error_each_time_alone_and_eight_at_once() {
    let rig = Arc::new(Rig::new(2));
    let body = "while (true) await Promise.resolve();";
    let handler = Arc::new(rig.handler("spin.js", &function(body), MEMORY, Duration::from_millis(50)));
    let rounds = if std::env::var("TASKBELL_TEST_LONG").is_ok_and(|v| v == "1") { 1_000 } else { 16 };
    for at_once in [1, 8] {
        for _ in 0..rounds / at_once {
            let all = (0..at_once).map(|_| {
                let handler = Arc::clone(&handler);
                tokio::spawn(async move { failure(run(&handler, &Arc::new(Host::new()), chunk()).await).code })
            });
            for code in all.collect::<Vec<_>>() {
                assert_eq!(code.await.unwrap(), "timeout");
            }
        }
    }
    assert_eq!(result(rig.run(&function("return { hasMore: false, result: 'well' };")).await), json!("well"));
}

/// Proves: G16.
#[tokio::test]
async fn q5_an_allocation_ends_the_script_and_its_memory_comes_back() {
    let rig = Rig::new(1);
    eventually("a process is ready", || rig.pool.ready_processes().len() == 1).await;
    let before = resident_bytes(rig.pool.ready_processes()[0]);
    for body in [
        "return { hasMore: false, result: new Uint8Array(4 * 1024 ** 3).length };",
        "let text = 'x'; while (true) { text += text; if (text.charCodeAt(text.length - 1) === 0) break; }",
        "const kept = []; for (let i = 0; i < 1e7; i++) kept.push({ i });",
        "globalThis.kept ??= []; for (let i = 0; i < 1e7; i++) kept.push(() => i);",
        "globalThis.kept ??= []; if (kept.length > 0) return { hasMore: true }; while (true) kept.push('x'.repeat(1e5) + kept.length);",
    ] {
        let handler = rig.handler("script.js", &function(body), MEMORY, MINUTE);
        for _ in 0..2 {
            let failure = failure(run(&handler, &Arc::new(Host::new()), chunk()).await);
            assert_eq!((failure.kind, failure.code.as_str()), (ErrorKind::Budget, "memory"), "{body}: {failure:?}");
            eventually("a process is ready", || rig.pool.ready_processes().len() == 1).await;
            let after = resident_bytes(rig.pool.ready_processes()[0]);
            assert!(after.abs_diff(before) <= 20 * MIB, "{before} bytes, then {after}: {body}");
        }
    }
    let fresh = function("return { hasMore: false, result: typeof globalThis.kept };");
    assert_eq!(result(rig.run(&fresh).await), json!("undefined"));
}
