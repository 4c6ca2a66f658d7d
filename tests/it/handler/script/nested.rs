//! Scripts that scripts run: by key, with params, in a world of their own, within the budgets of the chunk.

use super::{Host, MEMORY, ROOMY, Rig, chunk, failure, function, result, run};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use taskbell::core::budget::Budgets;
use taskbell::core::task::ErrorKind;
use taskbell::handler::script::{Library, ScriptHandler};

const MINUTE: Duration = Duration::from_secs(60);

/// A script that may run others: `main` is a body, the others are bodies by key.
fn with_library(rig: &Rig, main: &str, others: &[(&str, &str)], budgets: Budgets) -> ScriptHandler {
    let files = others.iter().map(|(key, body)| {
        let path = rig.path(&format!("{key}.js"));
        std::fs::write(&path, function(body)).unwrap();
        ((*key).to_owned(), path)
    });
    let library = Arc::new(Library::open(files.collect::<Vec<_>>()).unwrap());
    rig.bounded("main.js", &function(main), budgets, MINUTE).with_library(library)
}

async fn said(main: &str, others: &[(&str, &str)]) -> Value {
    let rig = Rig::new(1);
    let handler = with_library(&rig, main, others, ROOMY);
    result(run(&handler, &Arc::new(Host::new()), chunk()).await)
}

#[tokio::test]
async fn a_script_runs_another_and_gets_what_it_returns() {
    let seen = said(
        "const sum = await cx.run('sum', { list: [1, 2, 3] });
         const both = await Promise.all([cx.run('sum', { list: [4] }), cx.run('nothing')]);
         return { hasMore: false, result: [sum, both, task.params.file] };",
        &[
            ("sum", "let n = 0; for (const v of task.params.list) n += v; await cx.sleep(1); return { n, owner: task.owner, at: cx.checkpoint.row };"),
            ("nothing", "task.params === null"),
        ],
    )
    .await;
    let sum = |n: i64| json!({"n": n, "owner": "alice", "at": 1200});
    assert_eq!(seen, json!([sum(6), [sum(4), null], "f1"]));
}

#[tokio::test]
async fn a_nested_run_has_fresh_globals_and_leaves_none_behind() {
    let seen = said(
        "globalThis.secret = 1; Array.prototype.leak = 1;
         const first = await cx.run('look'), second = await cx.run('look');
         return { hasMore: false, result: [first, second, typeof globalThis.left, typeof Object.prototype.evil] };",
        &[("look", "const seen = [typeof secret, typeof [].leak, typeof left]; globalThis.left = 1; Object.prototype.evil = 1; return seen;")],
    )
    .await;
    let fresh = json!(["undefined", "undefined", "undefined"]);
    assert_eq!(seen, json!([fresh, fresh, "undefined", "undefined"]));
}

#[tokio::test]
async fn a_nested_run_reports_logs_and_asks_like_the_chunk_it_belongs_to() {
    let rig = Rig::new(1);
    let host = Arc::new(Host::new().with_file("f1", "text"));
    let main = "const later = cx.readFile('f1'); const inner = await cx.run('inner', 1);
                return { hasMore: false, result: [inner, await later] };";
    let inner = "cx.log('inside'); cx.progress({ current: 5 }); return [cx.leaseIsCurrent(), await cx.readFile('f1'), task.params];";
    let handler = with_library(&rig, main, &[("inner", inner)], ROOMY);
    assert_eq!(result(run(&handler, &host, chunk()).await), json!([[true, "text", 1], "text"]));
    assert_eq!((host.texts(), host.counted().0), (vec!["inside".to_owned()], Some(5)));
}

#[tokio::test]
async fn what_goes_wrong_inside_is_thrown_with_its_code_and_can_be_caught() {
    let seen = said(
        "const told = [];
         for (const [key, params] of [['none'], ['throws'], ['broken'], ['odd'], ['odd', { get x() { throw new Error('own'); } }], [{ toString: () => 'throws' }]]) {
           try { told.push(await cx.run(key, params)); } catch (error) { told.push([error.code ?? error.message, error.permanent ?? null]); }
         }
         return { hasMore: false, result: told };",
        &[
            ("throws", "throw Object.assign(new Error('Sold out'), { code: 'sold-out', permanent: true });"),
            ("broken", "} let = ;"),
            ("odd", "const loop = {}; loop.loop = loop; return loop;"),
        ],
    )
    .await;
    let expected = json!([
        ["unknown-script", true],
        ["sold-out", true],
        ["script-syntax", true],
        ["bad-outcome", true],
        ["own", null],
        ["sold-out", true]
    ]);
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn an_error_that_nobody_catches_is_the_chunks_own() {
    let rig = Rig::new(1);
    let inner = "throw Object.assign(new Error('Sold out'), { code: 'sold-out', permanent: true });";
    let handler = with_library(&rig, "await cx.run('inner');", &[("inner", inner)], ROOMY);
    let failure = failure(run(&handler, &Arc::new(Host::new()), chunk()).await);
    assert_eq!(
        (failure.kind, failure.code.as_str(), failure.message.as_str()),
        (ErrorKind::Permanent, "sold-out", "Sold out")
    );
    let detail = failure.detail.unwrap();
    assert!(detail.contains("inner.js:1") && detail.contains("main.js:1"), "{detail}");
}

#[tokio::test]
async fn scripts_nest_as_deep_as_their_budget_and_no_deeper() {
    let rig = Rig::new(1);
    let down = "try { return 1 + await cx.run('down'); } catch (error) { return error.limit ? error.limit.path.split(' > ').length : -100; }";
    for (nesting, deepest) in [(32, 32), (3, 3)] {
        let budgets = Budgets { nesting, ..ROOMY };
        let handler =
            with_library(&rig, "return { hasMore: false, result: await cx.run('down') };", &[("down", down)], budgets);
        let depth = result(run(&handler, &Arc::new(Host::new()), chunk()).await);
        // The refused run is in the path with all above it; each run that could end adds one.
        assert_eq!(depth, json!(deepest + 2 + deepest - 1), "{nesting}");
    }
    let endless = with_library(&rig, "await cx.run('down');", &[("down", "return cx.run('down');")], ROOMY);
    let failure = failure(run(&endless, &Arc::new(Host::new()), chunk()).await);
    assert_eq!((failure.kind, failure.code.as_str()), (ErrorKind::Budget, "nesting"), "{failure:?}");
    let spent: Value = serde_json::from_str(&failure.detail.unwrap()).unwrap();
    assert_eq!((&spent["limit"], &spent["used"]), (&json!(32), &json!(33)));
    assert!(spent["path"].as_str().unwrap().starts_with("main.js > down.js > "), "{spent}");
}

#[tokio::test]
async fn a_limit_that_a_nested_run_hits_is_told_with_the_path_to_it() {
    let rig = Rig::new(1);
    for (body, budgets, code) in [
        ("while (true) {}", Budgets { statements: 2_000_000, ..ROOMY }, "statements"),
        ("const k = []; while (true) k.push({});", ROOMY, "memory"),
        ("const f = () => f() + 1; f();", ROOMY, "stack"),
        ("return 'x'.repeat(1e5);", Budgets { output_bytes: 1 << 16, ..ROOMY }, "output"),
    ] {
        let main = "await cx.run('middle'); return { hasMore: true };";
        let handler = with_library(&rig, main, &[("middle", "return cx.run('inner');"), ("inner", body)], budgets);
        let failure = failure(run(&handler, &Arc::new(Host::new()), chunk()).await);
        assert_eq!((failure.kind, failure.code.as_str()), (ErrorKind::Budget, code), "{body}: {failure:?}");
        let spent: Value = serde_json::from_str(&failure.detail.unwrap()).unwrap();
        assert_eq!(spent["path"], json!("main.js > middle.js > inner.js"), "{spent}");
    }
}

/// Proves: G16.
#[tokio::test]
async fn a_nested_run_that_hits_a_limit_and_is_caught_cannot_be_gone_past() {
    let rig = Rig::new(2);
    let hog = "globalThis.k = []; while (true) k.push('x'.repeat(1e4) + k.length);";
    let all =
        [("spin", "while (true) {}"), ("hog", hog), ("deep", "const f = () => f() + 1; f();"), ("calm", "return 1;")];
    let statements = Budgets { statements: 20_000_000, ..ROOMY };
    for main in [
        "while (true) { try { await cx.run('spin'); } catch {} }",
        "try { await cx.run('spin'); } catch {} return { hasMore: true };",
        "while (true) { try { await cx.run('hog'); } catch {} }",
        "while (true) { try { await cx.run('deep'); } catch {} }",
        "while (true) { try { await cx.run('none'); } catch {} }",
        "while (true) { try { await cx.run('calm'); } catch {} }",
    ] {
        let handler = with_library(&rig, main, &all, statements);
        let failure = failure(run(&handler, &Arc::new(Host::new()), chunk()).await);
        assert_eq!((failure.kind, failure.code.as_str()), (ErrorKind::Budget, "statements"), "{main}: {failure:?}");
    }
}

#[tokio::test]
async fn nested_runs_share_the_memory_and_the_stack_of_the_chunk() {
    let rig = Rig::new(1);
    let take = "return new Uint8Array(task.params * 1024 * 1024).fill(1).length > 0;";
    for (main, ends) in [
        ("return { hasMore: false, result: await cx.run('take', 40) };", None),
        ("for (let i = 0; i < 20; i++) await cx.run('take', 40); return { hasMore: false, result: true };", None),
        (
            "const held = new Uint8Array(40 * 1024 * 1024).fill(1); await cx.run('take', 40); return held;",
            Some("memory"),
        ),
        ("const down = (n) => (n > 0 ? down(n - 1) : cx.run('deep')); await down(1500);", Some("stack")),
    ] {
        let others =
            [("take", take), ("deep", "const down = (n) => (n > 0 ? 1 + down(n - 1) : 1); return down(1500);")];
        let handler = with_library(&rig, main, &others, Budgets { memory_bytes: MEMORY, ..ROOMY });
        let ended = run(&handler, &Arc::new(Host::new()), chunk()).await;
        match ends {
            None => assert_eq!(result(ended), json!(true), "{main}"),
            Some(code) => assert_eq!(failure(ended).code, code, "{main}"),
        }
    }
}

#[tokio::test]
async fn a_script_cannot_make_up_a_budget_that_was_not_hit() {
    let rig = Rig::new(1);
    let main = "const error = new Error('mine'); error.limit = { code: 'memory', limit: 1, used: 2, path: 'x' }; error.hit = 0; error.code = 'memory';
                try { await cx.run('none'); } catch {} throw error;";
    let handler = with_library(&rig, main, &[], ROOMY);
    let failure = failure(run(&handler, &Arc::new(Host::new()), chunk()).await);
    assert_eq!((failure.kind, failure.message.as_str()), (ErrorKind::Handler, "mine"));
}
