//! What a script costs: the time of a chunk beside a native one, the memory of eight at once, and how long other tasks wait
//! beside eight that mean harm.
//!
//! `cargo bench --bench script` takes about half a minute. It runs a node of its own on a SQLite file and real script
//! processes. Figures are printed and never asserted; what they should be is in docs/performance.md.

#![allow(clippy::unwrap_used, reason = "a bench that cannot go on fails where it stands")]
#![allow(clippy::print_stdout, reason = "its figures are for whoever runs it")]

mod others;
#[path = "../../tests/it/support/mod.rs"]
#[allow(dead_code, unused_imports, unused_macros, reason = "the tests use it too, and each a part of it")]
mod support;

use async_trait::async_trait;
use clap::Parser;
use serde_json::json;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::ground::Ground;
use support::node::{Node, action, answer, click, closure};
use taskbell::core::budget::Budgets;
use taskbell::core::chunk::Outcome;
use taskbell::core::task::State;
use taskbell::handler::script::{PoolSettings, ScriptHandler, ScriptPool};
use taskbell::handler::{ChunkContext, Handler, HandlerError};

const MIB: f64 = 1024.0 * 1024.0;

/// How much of everything.
#[derive(Clone, Debug, Parser)]
struct Scale {
    /// Chunks of each kind.
    #[arg(long, default_value_t = 500)]
    chunks: i64,
    /// How long other tasks are watched, with and without hostile scripts, seconds each.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// What `cargo bench` adds.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A handler whose chunks are timed.
struct Timed<H>(H, Arc<Mutex<Vec<Duration>>>);

#[async_trait]
impl<H: Handler> Handler for Timed<H> {
    async fn run(&self, cx: &ChunkContext) -> Result<Outcome, HandlerError> {
        let began = Instant::now();
        let ended = self.0.run(cx).await;
        self.1.lock().unwrap().push(began.elapsed());
        ended
    }
}

struct Shared(Arc<dyn Handler>);

#[async_trait]
impl Handler for Shared {
    async fn run(&self, cx: &ChunkContext) -> Result<Outcome, HandlerError> {
        self.0.run(cx).await
    }
}

/// The value below which a share of all lies.
fn quantile(times: &mut [Duration], share: f64) -> Duration {
    times.sort();
    times[((times.len() as f64 * share) as usize).min(times.len() - 1)]
}

fn pool(size: usize) -> Arc<ScriptPool> {
    ScriptPool::start(PoolSettings { size, exe: PathBuf::from(env!("CARGO_BIN_EXE_taskbell")) })
}

fn script(
    ground: &Ground,
    name: &str,
    body: &str,
    budgets: Budgets,
    time: Duration,
    pool: &Arc<ScriptPool>,
) -> ScriptHandler {
    let path = ground.path().join(name);
    std::fs::write(&path, format!("export default async function (task, cx) {{ {body} }}")).unwrap();
    ScriptHandler::new(path, budgets, time, Arc::clone(pool)).unwrap()
}

async fn all_ready(pool: &ScriptPool, count: usize) {
    let ready = async || (pool.ready_processes().len() >= count).then_some(());
    support::eventually("script processes are ready", Duration::from_secs(60), ready).await;
}

/// Runs a task of many chunks of each kind and prints what one costs.
async fn time_of_a_chunk(chunks: i64) {
    let ground = Ground::sqlite().await;
    let pool = pool(2);
    let native = closure(move |call| {
        std::future::ready(answer(json!({"hasMore": call.chunk < chunks, "checkpoint": {"chunk": call.chunk}})))
    });
    let body = format!("return {{ hasMore: cx.chunk < {chunks}, checkpoint: {{ chunk: cx.chunk }} }};");
    let scripted = script(&ground, "empty.js", &body, Budgets::default(), Duration::from_secs(60), &pool);
    let times = [Arc::default(), Arc::default()];
    let node = Node::start(
        &ground,
        vec![
            (action("native"), Arc::new(Timed(Shared(native), Arc::clone(&times[0])))),
            (action("script"), Arc::new(Timed(scripted, Arc::clone(&times[1])))),
        ],
    )
    .await;
    all_ready(&pool, 2).await;
    let mut medians = Vec::new();
    for (name, times) in ["native", "script"].into_iter().zip(&times) {
        let began = Instant::now();
        let id = node.click(click(name, json!({}))).await;
        let done = async || (node.task(id).await.state == State::Succeeded).then_some(());
        support::eventually("the task is done", Duration::from_secs(300), done).await;
        let whole = began.elapsed() / u32::try_from(chunks).unwrap();
        let mut times = times.lock().unwrap();
        let (median, p99) = (quantile(&mut times, 0.5), quantile(&mut times, 0.99));
        println!("a chunk, {name}: median {median:?}, p99 {p99:?}; with its commit {whole:?} on average");
        medians.push(median);
    }
    println!(
        "an empty script costs {:?} more than a native chunk (median; aim 3 ms)",
        medians[1].saturating_sub(medians[0])
    );
    node.engine.drain().await;
}

/// Holds eight scripts in their middle and prints what their processes take.
async fn memory_of_eight(own_mib: u64) {
    let ground = Ground::sqlite().await;
    let pool = pool(8);
    let body = format!(
        "globalThis.own = new Uint8Array({own_mib} * 1024 * 1024).fill(1);
         while (!cx.stopRequested()) await cx.sleep(20); return {{ hasMore: true }};"
    );
    let handler = script(&ground, "holds.js", &body, Budgets::default(), Duration::from_secs(60), &pool);
    all_ready(&pool, 8).await;
    let children = pool.ready_processes();
    let node = Node::start_with(
        &ground,
        vec![(action("holds"), Arc::new(handler))],
        taskbell::engine::EngineSettings { parallelism: 8, ..support::node::short_settings() },
    )
    .await;
    for _ in 0..8 {
        node.click(click("holds", json!({}))).await;
    }
    let busy = async || pool.ready_processes().is_empty().then_some(());
    support::eventually("eight scripts run", Duration::from_secs(60), busy).await;
    let settled = Instant::now() + Duration::from_millis(500);
    support::eventually("they hold their data", Duration::from_secs(5), async || {
        (Instant::now() > settled).then_some(())
    })
    .await;
    let all = |name| children.iter().map(|child| figure(*child, name)).sum::<f64>() / MIB;
    let (whole, own) = (all("Pss:"), 8.0 * own_mib as f64);
    println!(
        "8 scripts at once with {own_mib} MiB each: {whole:.1} MiB in all, {:.1} MiB beside their data (aim 64 MiB); \
         resident, shared pages counted each time, {:.1} MiB",
        whole - own,
        all("Rss:")
    );
    node.engine.drain().await;
}

/// A figure of a process from its map, bytes.
fn figure(process: u32, name: &str) -> f64 {
    let map = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap();
    let line = map.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0
}

#[tokio::main]
async fn main() {
    let scale = Scale::parse();
    time_of_a_chunk(scale.chunks).await;
    memory_of_eight(0).await;
    memory_of_eight(16).await;
    others::wait(Duration::from_secs(scale.seconds)).await;
}
