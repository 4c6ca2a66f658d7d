//! Budgets of a chunk: each has its code, and tells operators how much there was, how much was used, and where.

use super::{Host, MEMORY, ROOMY, Rig, chunk, failure, function, result, run};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use taskbell::core::budget::Budgets;
use taskbell::core::chunk::Failure;
use taskbell::core::task::ErrorKind;

const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

/// What operators are told of a budget that was hit.
fn spent(failure: &Failure) -> Value {
    serde_json::from_str(failure.detail.as_deref().unwrap()).unwrap_or_else(|error| panic!("{error}: {failure:?}"))
}

async fn hit(rig: &Rig, body: &str, budgets: Budgets, time: Duration) -> Failure {
    let handler = rig.bounded("script.js", &function(body), budgets, time);
    failure(run(&handler, &Arc::new(Host::new()), chunk()).await)
}

#[tokio::test]
async fn each_budget_has_its_code_and_tells_limit_use_and_path() {
    let rig = Rig::new(2);
    for (body, budgets, code, limit) in [
        ("while (true) {}", Budgets { statements: 1_000_000, ..ROOMY }, "statements", 1_000_000),
        ("while (true) await null;", Budgets { statements: 1_000_000, ..ROOMY }, "statements", 1_000_000),
        ("/^(a+)+$/.test('a'.repeat(40) + 'b');", Budgets { statements: 1_000_000, ..ROOMY }, "statements", 1_000_000),
        ("const k = []; while (true) k.push({});", Budgets { memory_bytes: 8 << 20, ..ROOMY }, "memory", 8 << 20),
        ("const f = () => f() + 1; f();", Budgets { stack_bytes: 256 << 10, ..ROOMY }, "stack", 256 << 10),
        (
            "return { hasMore: false, result: 'x'.repeat(1e5) };",
            Budgets { output_bytes: 1 << 16, ..ROOMY },
            "output",
            1 << 16,
        ),
        ("while (true) cx.log('x'.repeat(1000));", Budgets { log_bytes: 1 << 20, ..ROOMY }, "log", 1 << 20),
    ] {
        let failure = hit(&rig, body, budgets, MINUTE).await;
        assert_eq!((failure.kind, failure.code.as_str()), (ErrorKind::Budget, code), "{body}: {failure:?}");
        let spent = spent(&failure);
        assert_eq!(
            (&spent["code"], &spent["limit"], &spent["path"]),
            (&json!(code), &json!(limit), &json!("script.js"))
        );
        assert!(spent["used"].as_u64().is_some(), "{spent}");
    }
    let late = hit(&rig, "while (true) {}", ROOMY, SECOND).await;
    assert_eq!((late.kind, late.code.as_str(), &spent(&late)["limit"]), (ErrorKind::Timeout, "timeout", &json!(1_000)));
    assert!(spent(&late)["used"].as_u64().unwrap() >= 1_000, "{late:?}");
}

#[tokio::test]
async fn a_script_that_catches_everything_gains_nothing() {
    let rig = Rig::new(2);
    let statements = Budgets { statements: 1_000_000, ..ROOMY };
    for (body, budgets, code) in [
        ("while (true) { try { while (true) {} } catch {} finally { continue; } }", statements, "statements"),
        ("while (true) { try { await (async () => { while (true) {} })(); } catch {} }", statements, "statements"),
        (
            "const p = Promise.resolve().then(() => { while (true) {} }); try { await p; } catch {} return { hasMore: true };",
            statements,
            "statements",
        ),
        (
            "try { while (true) cx.log('x'.repeat(9000)); } catch {} cx.log('on'); return { hasMore: true };",
            Budgets { log_bytes: 1 << 20, ..ROOMY },
            "log",
        ),
        (
            "try { await cx.readFile('x'.repeat(300)); } catch {} try { await cx.run('x', 'y'.repeat(1e5)); } catch {} return { hasMore: true };",
            Budgets { output_bytes: 1 << 16, ..ROOMY },
            "output",
        ),
    ] {
        let failure = hit(&rig, body, budgets, MINUTE).await;
        assert_eq!((failure.kind, failure.code.as_str()), (ErrorKind::Budget, code), "{body}: {failure:?}");
    }
}

#[tokio::test]
async fn what_a_script_says_after_its_budget_is_over_is_not_heard() {
    let rig = Rig::new(1);
    let host = Arc::new(Host::new());
    let body =
        "try { while (true) cx.log('x'.repeat(9000)); } catch {} cx.progress({ current: 7 }); cx.leaseIsCurrent();
                return { hasMore: true, checkpoint: 'stolen' };";
    let handler = rig.bounded("script.js", &function(body), Budgets { log_bytes: 1 << 20, ..ROOMY }, MINUTE);
    assert_eq!(failure(run(&handler, &host, chunk()).await).code, "log");
    assert_eq!(host.counted(), (None, None));
}

#[tokio::test]
async fn a_script_within_its_statements_ends_and_each_chunk_begins_anew() {
    let rig = Rig::new(1);
    let body = "let n = 0; for (let i = 0; i < 400000; i++) n += i; return { hasMore: false, result: n > 0 };";
    let handler = rig.bounded("script.js", &function(body), Budgets { statements: 1_000_000, ..ROOMY }, MINUTE);
    for _ in 0..3 {
        assert_eq!(result(run(&handler, &Arc::new(Host::new()), chunk()).await), json!(true));
    }
}

#[tokio::test]
async fn memory_that_came_back_may_be_used_again() {
    let rig = Rig::new(1);
    let body =
        "for (let i = 0; i < 50; i++) { try { new Uint8Array(1024 ** 3); } catch {} new Uint8Array(32 * 1024 * 1024); }
                return { hasMore: false, result: 'well' };";
    let (ended, _) = rig.body(body, MEMORY, MINUTE).await;
    assert_eq!(result(ended), json!("well"));
}
