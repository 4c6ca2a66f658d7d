//! What a script sees: its task, its context, its console, and nothing else.

use super::{Host, MEMORY, Rig, chunk, eventually, failure, function, result, run};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use taskbell::core::chunk::Outcome;
use taskbell::core::progress::Reported;

#[tokio::test]
async fn a_script_sees_its_task_and_its_chunk_as_the_contract_names_them() {
    let seen = Rig::new(1)
        .run(&function(
            "const { checkpoint, chunk, attempt, fencingToken, lastError, deadline, progressSoFar } = cx;
             return { hasMore: false, result: { task, checkpoint, chunk, attempt, fencingToken, lastError, deadline, progressSoFar } };",
        ))
        .await;
    let mut expected = serde_json::to_value(chunk()).unwrap();
    let progress = expected.as_object_mut().unwrap().remove("progress").unwrap();
    expected["progressSoFar"] = progress;
    assert_eq!(result(seen), expected);
}

#[tokio::test]
async fn what_a_script_is_given_cannot_be_changed() {
    let refused = Rig::new(1)
        .run(&function(
            "const refused = [];
             const attempts = {
               task: () => { task.owner = 'bob'; }, params: () => { task.params.nested.list.push(3); },
               checkpoint: () => { cx.checkpoint.row = 0; }, cx: () => { cx.log = null; },
               more: () => { cx.more = 1; }, console: () => { console.log = null; },
             };
             for (const [name, attempt] of Object.entries(attempts)) {
               try { attempt(); } catch (error) { if (error instanceof TypeError) refused.push(name); }
             }
             return { hasMore: false, result: refused };",
        ))
        .await;
    assert_eq!(result(refused), json!(["task", "params", "checkpoint", "cx", "more", "console"]));
}

#[tokio::test]
async fn there_is_nothing_of_the_host_but_cx_and_console() {
    let found = Rig::new(1)
        .run(&function(
            "const names = ['require', 'process', 'std', 'os', 'bjson', 'print', 'scriptArgs', 'Deno', 'fetch', 'performance',
               'setTimeout', 'XMLHttpRequest', 'WebAssembly', 'gc', 'navigator', 'Worker'];
             let reached = names.filter((name) => typeof globalThis[name] !== 'undefined');
             for (const maker of [Function, (async () => {}).constructor, task.constructor.constructor, cx.log.constructor]) {
               const outer = maker('return globalThis')();
               const world = await outer;
               if (world !== globalThis) reached.push('another world');
             }
             return { hasMore: false, result: reached };",
        ))
        .await;
    assert_eq!(result(found), json!([]));
}

#[tokio::test]
async fn an_import_is_refused_in_words_when_it_is_written_and_when_it_is_called() {
    let rig = Rig::new(1);
    for text in [
        "import * as std from 'std';\nexport default async () => ({ hasMore: false });".to_owned(),
        function("const os = await import('std'); return { hasMore: false };"),
    ] {
        let failure = failure(rig.run(&text).await);
        assert_eq!(failure.message, "a script cannot import anything, not `std`");
        assert!(!failure.retryable, "{failure:?}");
    }
}

#[tokio::test]
async fn built_ins_that_a_script_rewrites_confuse_only_itself() {
    let rig = Rig::new(1);
    let host = Arc::new(Host::new());
    let poisoned = function(
        "const evil = () => { throw new Error('evil'); };
         for (const owner of [Object, Array, String, Promise, Function, Map, RegExp, Error, Number]) {
           for (const name of Object.getOwnPropertyNames(owner.prototype)) {
             try { if (name !== 'constructor') owner.prototype[name] = evil; } catch {}
           }
         }
         JSON.stringify = evil; JSON.parse = evil; Reflect.apply = evil; Object.freeze = evil;
         Object.defineProperty(Object.prototype, 'current', { get() { return 7; }, set: evil });
         Object.defineProperty(Object.prototype, '0', { set: evil });
         globalThis.Promise = globalThis.Error = globalThis.String = undefined;
         cx.log('still here', 'warn');
         cx.progress({ total: 9 });
         const text = await cx.readFile('f1');
         await cx.sleep(1);
         return { hasMore: false, result: [text, cx.leaseIsCurrent(), cx.stopRequested()] };",
    );
    let host_with_file = Arc::new(Host::new().with_file("f1", "a"));
    let ended = rig.run_with(&poisoned, &host_with_file, chunk()).await;
    assert_eq!(result(ended), json!(["a", true, false]));
    assert_eq!(host_with_file.log(), [("warn".to_owned(), "still here".to_owned())]);
    let clean = rig.run_with(&function("return { hasMore: false, result: [1, 2].map(String) };"), &host, chunk()).await;
    assert_eq!(result(clean), json!(["1", "2"]));
}

#[tokio::test]
async fn odd_arguments_are_taken_or_refused_and_late_answers_meet_no_later_chunk() {
    let rig = Rig::new(1);
    let odd = function(
        "const no = () => { throw new Error('no'); };
         const values = [new Proxy({}, { get: no, ownKeys: no, getPrototypeOf: no }), new Proxy(() => {}, {}), Symbol('s'), 10n,
           { valueOf: no, toString: no, toJSON: no, [Symbol.toPrimitive]: no }, Object.create(null), new Array(1e5), 'x'.repeat(1e5),
           -1, NaN, Infinity, undefined, null, no, new Date(NaN), new Error('e'), /x/, new Uint8Array(9), globalThis];
         const calls = [cx.progress, cx.log, console.error, cx.readFile, cx.sleep, cx.stopRequested, (v) => cx.log('x', v),
           (v) => cx.progress({ current: v, total: v, message: v, unit: v }), (v) => cx.log.call(v, v), (v) => new cx.log(v)];
         for (const value of values) for (const call of calls) {
           try { const later = call(value); if (later instanceof Promise) later.catch(() => {}); } catch {}
         }
         return { hasMore: false, result: 'survived' };",
    );
    eventually("a process is ready", || !rig.pool.ready_processes().is_empty()).await;
    let processes = rig.pool.ready_processes();
    let host = Arc::new(Host::new());
    assert_eq!(result(rig.run_with(&odd, &host, chunk()).await), json!("survived"));
    assert!(host.texts().len() > 20);
    eventually("it is ready again", || rig.pool.ready_processes() == processes).await;
    let host = Arc::new(Host::new().with_file("f1", "mine"));
    let next = function("return { hasMore: false, result: await cx.readFile('f1') };");
    assert_eq!(result(rig.run_with(&next, &host, chunk()).await), json!("mine"));
}

#[tokio::test]
async fn nothing_that_a_chunk_leaves_behind_meets_the_next_one() {
    let rig = Rig::new(1);
    let text = "globalThis.count = (globalThis.count ?? 0) + 1; let top = 0;
        export default async function () {
          top += 1;
          Array.prototype.leak = [1]; Object.prototype.polluted = true;
          return { hasMore: false, result: [globalThis.count, top, typeof globalThis.secret, globalThis.secret = 's'] };
        }";
    let handler = rig.handler("script.js", text, MEMORY, Duration::from_secs(60));
    eventually("a process is ready", || !rig.pool.ready_processes().is_empty()).await;
    let processes = rig.pool.ready_processes();
    for _ in 0..5 {
        let seen = run(&handler, &Arc::new(Host::new()), chunk()).await;
        assert_eq!(result(seen), json!([1, 1, "undefined", "s"]));
        eventually("it is ready again", || rig.pool.ready_processes() == processes).await;
    }
    assert_eq!(
        result(rig.run(&function("return { hasMore: false, result: typeof [].leak };")).await),
        json!("undefined")
    );
}

#[tokio::test]
async fn progress_of_any_rate_is_merged_and_the_newest_value_counts() {
    let host = Arc::new(Host::new());
    let text = function(
        "cx.progress({ current: 0, total: 100000, unit: 'rows', phase: 'import', message: 'begin 🙂'.slice(0, 7) });
         for (let i = 1; i <= 100000; i++) cx.progress({ current: i });
         cx.progress({ message: 'end' });
         return { hasMore: true };",
    );
    Rig::new(1).run_with(&text, &host, chunk()).await.unwrap();
    let reports = host.reports();
    assert_eq!(host.counted(), (Some(100_000), Some(100_000)));
    assert!(reports.len() < 5_000, "{} reports", reports.len());
    let first = reports.first().unwrap();
    assert_eq!((first.unit.clone(), first.phase.clone()), (Some(Some("rows".into())), Some(Some("import".into()))));
    assert_eq!(first.message, Some(Some("begin \u{fffd}".into())), "half a character is no text");
    assert_eq!(reports.last().unwrap().message, Some(Some("end".into())));
    assert!(reports.windows(2).all(|two| two[0].current <= two[1].current.or(two[0].current)), "never falls");
}

#[tokio::test]
async fn a_report_is_seen_while_the_script_goes_on() {
    let rig = Rig::new(1);
    let host = Arc::new(Host::new());
    let text = function(
        "cx.progress({ current: 1 }); cx.progress({ current: 2 }); while (!cx.stopRequested()) {} return { hasMore: true };",
    );
    let (ended, ()) = tokio::join!(rig.run_with(&text, &host, chunk()), async {
        eventually("the merged report comes", || host.counted().0 == Some(2)).await;
        host.stop.send_replace(true);
    });
    ended.unwrap();
}

#[tokio::test]
async fn a_bad_number_is_a_line_in_the_log_and_never_a_failure() {
    let host = Arc::new(Host::new());
    let text = function(
        "for (const bad of [NaN, -1, Infinity, '7', {}, 2 ** 60]) cx.progress({ current: bad, total: 10 });
         cx.progress('seven'); cx.progress(null); cx.progress({ message: 5 });
         cx.progress({ current: 3.9, total: 10, colour: 'red' });
         return { hasMore: true, current: NaN };",
    );
    let ended = Rig::new(1).run_with(&text, &host, chunk()).await.unwrap();
    assert!(matches!(ended, Outcome::More { told, .. } if told.report == Reported::default()));
    assert_eq!(host.counted(), (Some(3), Some(10)));
    let log = host.log();
    assert!(log.iter().all(|(level, _)| level == "warn"), "{log:?}");
    let dropped = "a progress report was dropped: ";
    let number = format!("{dropped}current must be a number");
    let expected = [
        number.as_str(),
        &format!("{dropped}current must not be negative"),
        &number,
        &number,
        &number,
        &format!("{dropped}current must be at most 9007199254740991"),
        &number,
        &format!("{dropped}message must be a text"),
        "dropped from the progress: current must be a number",
    ];
    assert_eq!(host.texts(), expected);
}

#[tokio::test]
async fn lines_keep_their_level_and_values_are_shown_as_text() {
    let host = Arc::new(Host::new());
    let text = function(
        "cx.log('plain'); cx.log('careful', 'warn'); cx.log('odd level', 'shout'); cx.log({ a: [1] }, 'debug');
         console.log('a', 1, null, undefined, { b: 2 }); console.info('i'); console.warn('w'); console.error(new TypeError('t'));
         const loop = {}; loop.self = loop; console.log(loop, Symbol('s'), 10n, { toJSON() { throw 1; } });
         console.log('half ' + '🙂'.slice(0, 1));
         return { hasMore: true };",
    );
    Rig::new(1).run_with(&text, &host, chunk()).await.unwrap();
    let log = host.log();
    let expected = [
        ("info", "plain"),
        ("warn", "careful"),
        ("info", "odd level"),
        ("debug", r#"{"a":[1]}"#),
        ("info", r#"a 1 null undefined {"b":2}"#),
        ("info", "i"),
        ("warn", "w"),
    ];
    for ((level, text), (expected_level, expected_text)) in log.iter().zip(expected) {
        assert_eq!((level.as_str(), text.as_str()), (expected_level, expected_text));
    }
    assert!(log[7].0 == "error" && log[7].1.starts_with("TypeError: t\n"), "{:?}", log[7]);
    assert_eq!(log[8].1, "(a value that cannot be shown) Symbol(s) 10 (a value that cannot be shown)");
    assert_eq!(log[9].1, "half \u{fffd}");
}

#[tokio::test]
async fn a_stop_request_reaches_a_script_in_its_loop_and_ends_its_sleep() {
    let rig = Rig::new(1);
    for body in [
        "cx.log('on'); let turns = 0; while (!cx.stopRequested()) turns++; return { hasMore: true, checkpoint: { turns } };",
        "cx.log('on'); while (!cx.stopRequested()) await cx.sleep(3600000); return { hasMore: true };",
    ] {
        let host = Arc::new(Host::new());
        let text = function(body);
        let (ended, ()) = tokio::join!(rig.run_with(&text, &host, chunk()), async {
            eventually("it runs", || !host.log().is_empty()).await;
            host.stop.send_replace(true);
        });
        assert!(matches!(ended, Ok(Outcome::More { .. })), "{ended:?}");
    }
    let calm = rig.run(&function("await cx.sleep(1); return { hasMore: false, result: cx.stopRequested() };")).await;
    assert_eq!(result(calm), Value::Bool(false), "a request ends with its chunk");
}

#[tokio::test]
async fn a_script_can_ask_whether_its_lease_is_still_current() {
    let rig = Rig::new(1);
    let host = Arc::new(Host::new());
    let text = function(
        "const before = cx.leaseIsCurrent(); cx.log('asked'); while (cx.leaseIsCurrent()) {}
         return { hasMore: false, result: [before, await cx.leaseIsCurrent()] };",
    );
    let (ended, ()) = tokio::join!(rig.run_with(&text, &host, chunk()), async {
        eventually("it has asked", || !host.log().is_empty()).await;
        host.lease.send_replace(false);
    });
    assert_eq!(result(ended), json!([true, false]));
}

#[tokio::test]
async fn an_uploaded_file_is_read_as_text_and_one_that_cannot_be_says_why() {
    let host = Host::new()
        .with_file("plain", "name\n张三\n")
        .with_file("marked", "\u{feff}a;b")
        .with_file("binary", vec![0xff, 0xfe, 0x00])
        .with_file("huge", vec![b' '; 32 * 1024 * 1024 + 1])
        .with_file("largest", vec![b'x'; 32 * 1024 * 1024]);
    let host = Arc::new(host);
    let text = function(
        "const read = await Promise.all([cx.readFile('plain'), cx.readFile('marked')]);
         const refused = [];
         for (const id of ['binary', 'huge', 'none']) {
           try { await cx.readFile(id); } catch (error) { refused.push([error.message, error.permanent]); }
         }
         const { length } = await cx.readFile('largest');
         return { hasMore: false, result: { read, refused, length } };",
    );
    let seen = result(Rig::new(1).run_with(&text, &host, chunk()).await);
    assert_eq!(seen["read"], json!(["name\n张三\n", "a;b"]));
    assert_eq!(seen["length"], json!(32 * 1024 * 1024));
    assert_eq!(
        seen["refused"],
        json!([
            ["binary.csv is not UTF-8 text", true],
            ["huge.csv has 33554433 bytes, the limit for reading it as text is 33554432", true],
            ["there is no file none", true]
        ])
    );
}
