//! How long other tasks of a node wait while eight scripts at once do their worst.

use super::support::ground::Ground;
use super::support::node::{Node, action, answer, click, closure};
use super::{pool, quantile, script};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use taskbell::core::budget::Budgets;
use taskbell::core::submit::Submit;
use taskbell::engine::EngineSettings;
use tokio::sync::mpsc;

/// One of each kind: loops, native loops, promises, memory, depth, floods.
const HOSTILE: [&str; 8] = [
    "while (true) {}",
    "while (true) await Promise.resolve();",
    "const a = []; a.length = 4294967295; a.indexOf(1);",
    "globalThis.kept = []; while (true) kept.push('x'.repeat(1e5) + kept.length);",
    "const down = () => down() + 1; down();",
    "for (;;) { try { while (true) {} } catch {} }",
    "while (true) console.log('x'.repeat(10000));",
    "return { hasMore: false, result: { toJSON() { while (true) {} } } };",
];

/// Clicks one task after the other for a while, first alone and then beside hostile scripts, and prints how long they waited
/// from the click until they ran.
pub async fn wait(time: Duration) {
    let ground = Ground::sqlite().await;
    let (runs, mut ran) = mpsc::unbounded_channel();
    let other = closure(move |_| {
        let _ = runs.send(());
        std::future::ready(answer(json!({"hasMore": false})))
    });
    let pool = pool(2);
    let mut handlers = vec![(action("other"), other)];
    for (n, body) in HOSTILE.iter().enumerate() {
        let script = script(&ground, &format!("{n}.js"), body, Budgets::default(), Duration::from_secs(1), &pool);
        handlers.push((action(&format!("hostile-{n}")), Arc::new(script)));
    }
    let settings = EngineSettings { parallelism: 16, ..super::support::node::short_settings() };
    let node = Arc::new(Node::start_with(&ground, handlers, settings).await);
    let mut quantiles = Vec::new();
    for hostile in [false, true] {
        let (stop, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let attackers: Vec<_> = (0..HOSTILE.len())
            .filter(|_| hostile)
            .map(|n| {
                let (node, stop, ended) = (Arc::clone(&node), Arc::clone(&stop), Arc::clone(&ended));
                tokio::spawn(async move {
                    while !stop.load(Ordering::Acquire) {
                        let once = Submit { max_attempts: 1, ..click(&format!("hostile-{n}"), json!({})) };
                        let id = node.click(once).await;
                        while !node.task(id).await.state.is_final() {
                            tokio::time::sleep(Duration::from_millis(20)).await;
                        }
                        ended.fetch_add(1, Ordering::AcqRel);
                    }
                })
            })
            .collect();
        let (began, mut times) = (Instant::now(), Vec::new());
        while began.elapsed() < time {
            let clicked = Instant::now();
            node.click(click("other", json!({}))).await;
            ran.recv().await.unwrap();
            times.push(clicked.elapsed());
        }
        stop.store(true, Ordering::Release);
        for attacker in attackers {
            attacker.await.unwrap();
        }
        let (median, p99) = (quantile(&mut times, 0.5), quantile(&mut times, 0.99));
        let beside = if hostile { "beside 8 hostile scripts" } else { "alone" };
        let ended = ended.load(Ordering::Acquire);
        println!(
            "other tasks {beside}: {} of them, median {median:?}, p99 {p99:?}; {ended} hostile chunks ended",
            times.len()
        );
        quantiles.push(p99.as_secs_f64());
    }
    println!("p99 of other tasks: {:.2} times its base (aim below 2)", quantiles[1] / quantiles[0]);
}
