//! Scripts that mean harm, eight at once beside the tasks of a node: each ends with its own code each time, nobody else is
//! slowed by much, and what they took comes back.
//!
//! `TASKBELL_TEST_LONG=1` runs each a hundred times and tells how long other tasks waited meanwhile; else each runs twice.

use super::pool::resident_bytes;
use super::{Host, ROOMY, Rig, chunk, eventually, failure, function, run};
use crate::support::ground::Ground;
use crate::support::node::{Node, action, answer, click, closure};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use taskbell::core::budget::Budgets;
use taskbell::handler::script::Library;
use tokio::sync::mpsc;

const MINUTE: Duration = Duration::from_secs(60);
/// For scripts that only time can end.
const SHORT: Duration = Duration::from_millis(300);
const MIB: u64 = 1024 * 1024;

/// Hostile scripts at once.
const AT_ONCE: usize = 8;

struct Hostile {
    body: &'static str,
    budgets: Budgets,
    time: Duration,
    code: &'static str,
}

const fn ends(code: &'static str, body: &'static str) -> Hostile {
    Hostile { body, budgets: ROOMY, time: MINUTE, code }
}

const fn late(body: &'static str) -> Hostile {
    Hostile { time: SHORT, ..ends("timeout", body) }
}

const fn busy(body: &'static str) -> Hostile {
    Hostile { budgets: Budgets { statements: 3_000_000, ..ROOMY }, ..ends("statements", body) }
}

/// What each of them is, and the code with which it has to end.
const HOSTILE: [Hostile; 26] = [
    // Loops without end: in the language, in promises, in native calls, in what is asked of the host.
    late("while (true) {}"),
    busy("while (true) {}"),
    busy("for (;;) { try { while (true) {} } catch {} finally { continue; } }"),
    busy("const p = (f) => f().catch(() => p(f)); await p(async () => { while (true) {} });"),
    late("while (true) await Promise.resolve();"),
    late("const turn = () => { Promise.resolve().then(turn); }; turn(); await new Promise(() => {});"),
    late("const a = []; a.length = 4294967295; a.indexOf(1); a.lastIndexOf(1);"),
    late("while (true) try { cx.leaseIsCurrent(); } catch {}"),
    busy("/^(a+)+$/.test('a'.repeat(64) + 'b');"),
    // Code that runs when the host looks at an answer.
    busy("return { get hasMore() { while (true) {} } };"),
    busy("return { hasMore: false, result: { toJSON() { while (true) {} } } };"),
    busy("throw { get message() { while (true) {} } };"),
    busy(
        "return new Proxy({}, { ownKeys() { while (true) {} }, get(_, key) { if (key !== 'then') while (true) {} } });",
    ),
    ends("bad-outcome", "return { then() {} };"),
    ends(
        "bad-outcome",
        "Object.prototype.then = function () {}; Array.prototype.toJSON = null; return { hasMore: true };",
    ),
    ends("bad-outcome", "return new Proxy({}, { get(_, key) { if (key !== 'then') throw new Error('no'); } });"),
    // Memory.
    ends("memory", "return { hasMore: false, result: new Uint8Array(4 * 1024 ** 3).length };"),
    ends("memory", "let text = 'x'; while (true) { text += text; if (text.charCodeAt(text.length - 1) === 0) break; }"),
    ends("memory", "globalThis.kept = []; for (let i = 0; i < 1e7; i++) kept.push(() => i);"),
    ends("memory", "'ab'.repeat(2e7).split('').sort();"),
    // Depth.
    ends("stack", "const down = () => down() + 1; down();"),
    ends("stack", "const p = new Proxy({}, { get: (t, k, self) => self[k] }); p.x;"),
    ends("stack", "JSON.parse('['.repeat(1e6));"),
    ends("nesting", "const down = () => cx.run('down'); await down();"),
    // Floods.
    ends("output", "return { hasMore: false, result: 'x'.repeat(9 * 1024 * 1024) };"),
    ends("log", "while (true) console.log('x'.repeat(10000));"),
];

fn long() -> bool {
    std::env::var("TASKBELL_TEST_LONG").is_ok_and(|v| v == "1")
}

/// A node whose tasks tell when their chunk runs.
struct Others {
    node: Node,
    ran: mpsc::UnboundedReceiver<()>,
    _ground: Ground,
}

impl Others {
    async fn start() -> Self {
        let ground = Ground::sqlite().await;
        let (runs, ran) = mpsc::unbounded_channel();
        let handler = closure(move |_| {
            let _ = runs.send(());
            std::future::ready(answer(json!({"hasMore": false})))
        });
        let node = Node::start(&ground, vec![(action("other"), handler)]).await;
        Self { node, ran, _ground: ground }
    }

    /// How long a task waits from its click until it runs.
    async fn one(&mut self) -> Duration {
        let began = Instant::now();
        self.node.click(click("other", json!({}))).await;
        self.ran.recv().await.expect("the node lives");
        began.elapsed()
    }
}

fn p99(times: &mut [Duration]) -> Duration {
    times.sort();
    times[(times.len() * 99 / 100).min(times.len() - 1)]
}

/// Proves: G16.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_scripts_end_with_their_code_each_time_and_harm_nobody_else() {
    let times_each = if long() { 100 } else { 2 };
    let rig = Arc::new(Rig::new(2));
    eventually("processes are ready", || rig.pool.ready_processes().len() == 2).await;
    let children_before = rig.pool.ready_processes().into_iter().map(resident_bytes).max().unwrap();
    let mut others = Others::start().await;
    let mut base = Vec::new();
    for _ in 0..if long() { 1_000 } else { 50 } {
        base.push(others.one().await);
    }
    let own_before = resident_bytes(std::process::id());

    std::fs::write(rig.path("down.js"), function("return cx.run('down');")).unwrap();
    let library = Arc::new(Library::open([("down".to_owned(), rig.path("down.js"))]).unwrap());
    let handlers: Vec<_> = HOSTILE
        .iter()
        .enumerate()
        .map(|(n, hostile)| {
            let handler = rig.bounded(&format!("{n}.js"), &function(hostile.body), hostile.budgets, hostile.time);
            handler.with_library(Arc::clone(&library))
        })
        .collect();
    let (handlers, next) = (Arc::new(handlers), Arc::new(AtomicUsize::new(0)));
    let total = HOSTILE.len() * times_each;
    let attackers: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let (handlers, next) = (Arc::clone(&handlers), Arc::clone(&next));
            tokio::spawn(async move {
                loop {
                    let n = next.fetch_add(1, Ordering::AcqRel);
                    if n >= total {
                        return;
                    }
                    let hostile = &HOSTILE[n % HOSTILE.len()];
                    let failure = failure(run(&handlers[n % HOSTILE.len()], &Arc::new(Host::new()), chunk()).await);
                    assert_eq!(failure.code, hostile.code, "{}: {failure:?}", hostile.body);
                }
            })
        })
        .collect();
    let mut beside = Vec::new();
    while next.load(Ordering::Acquire) < total {
        beside.push(others.one().await);
    }
    for attacker in attackers {
        attacker.await.unwrap();
    }
    assert!(beside.len() > 5, "{} tasks ran beside", beside.len());
    eventually("as many processes as are kept", || {
        rig.pool.living_count() == 2 && rig.pool.ready_processes().len() == 2
    })
    .await;
    let children_after = rig.pool.ready_processes().into_iter().map(resident_bytes).max().unwrap();
    let own_after = resident_bytes(std::process::id());
    assert!(children_after < children_before + 20 * MIB, "{children_before}, then {children_after} bytes");
    assert!(own_after < own_before + 64 * MIB, "{own_before}, then {own_after} bytes in the server");
    println!(
        "{total} hostile chunks, {AT_ONCE} at once; p99 of {} other tasks {:?} before, of {} {:?} beside; \
         server {} MiB before, {} MiB after",
        base.len(),
        p99(&mut base),
        beside.len(),
        p99(&mut beside),
        own_before / MIB,
        own_after / MIB,
    );
    others.node.engine.drain().await;
}
