//! A node stands still in the middle of its work, and goes on when others have taken it over, soon after its leases have ended
//! whatever it had locked: nothing that it still has to say changes anything, and what it is refused is counted.

use crate::rig::nodes::{Nodes, Work};
use crate::rig::{PATIENCE, dice, long, test};
use crate::support::eventually;
use crate::support::ground::Ground;
use libtest_mimic::Trial;
use rand::RngExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::process::Command;

pub fn tests() -> Vec<Trial> {
    vec![test(
        "a_node_that_stood_still_is_taken_over_and_its_late_writes_are_refused_and_counted",
        a_node_that_stood_still_is_taken_over_and_its_late_writes_are_refused_and_counted,
    )]
}

const SETTINGS: [(&str, &str); 4] = [
    ("ENGINE__LEASE_MS", "1000"),
    ("ENGINE__HEARTBEAT_MS", "300"),
    ("ENGINE__SWEEP_MS", "300"),
    ("ENGINE__PARALLELISM", "4"),
];
const LEASE: Duration = Duration::from_secs(1);
/// The longest that a takeover may take beyond the lease: three times what is promised on a machine with nothing else to do.
const TAKEN_OVER: Duration = Duration::from_secs(6);
/// How long it stands still at least.
const STILL: Duration = Duration::from_secs(3);
/// What a node counts when it is refused, or sees by itself that it came too late.
const REFUSED: [&str; 4] = [
    "taskbell_stale_writes_total",
    "taskbell_leases_ended_total",
    "taskbell_chunks_total{outcome=\"lost\"",
    "taskbell_chunks_total{outcome=\"not-stored\"",
];
/// Where it stands still: anywhere in its chunks, or between the statements of a commit and its end.
const WHERE: [Option<&str>; 3] = [None, Some("checkpoint.before"), Some("finish.before")];

/// Proves: G2, G3, G4.
async fn a_node_that_stood_still_is_taken_over_and_its_late_writes_are_refused_and_counted() {
    let work = Work { chunks: 3, items: 2, pause: Duration::from_millis(500) };
    let nodes = Arc::new(Nodes::start(Arc::new(Ground::postgres().await), 3, &SETTINGS).await);
    let mut dice = dice("frozen");
    let rounds = if long() { 50 } else { WHERE.len() };
    let mut longest = [Duration::ZERO; WHERE.len()];
    let mut refused = 0;
    for round in 0..rounds {
        let kind = round % WHERE.len();
        let phase = Duration::from_millis(dice.random_range(0..300));
        let (after, counted) = stand_still(&nodes, round, WHERE[kind], phase, work).await;
        longest[kind] = longest[kind].max(after.saturating_sub(LEASE));
        refused += counted;
    }
    let lost = nodes.settle(work, false).await;
    println!(
        "{rounds} times still, {lost} leases lost, {refused} times refused; taken over beyond the lease: {longest:?}"
    );
    assert!(lost >= rounds as i64, "every time something was taken over");
    assert!(longest.iter().all(|after| *after <= TAKEN_OVER), "beyond the lease: {longest:?}");
}

/// A round: how long after the halt the node held nothing any more, and how often it was refused.
async fn stand_still(
    nodes: &Arc<Nodes>,
    round: usize,
    point: Option<&str>,
    phase: Duration,
    work: Work,
) -> (Duration, u64) {
    let said = |server: &crate::support::server::Server| server.said().matches(": waiting").count();
    let before = if let Some(point) = point {
        let mut victim = nodes.servers[0].lock().await;
        victim.kill().await;
        let before = said(&victim);
        assert!(victim.start_again_with("TASKBELL_FAILPOINTS", &format!("{point}=wait@1:1000")).await);
        before
    } else {
        0
    };
    let counted = nodes.counted(0, &REFUSED).await;
    let fed = Arc::new(AtomicBool::new(false));
    let feeders: Vec<_> = (0..3)
        .map(|side| tokio::spawn(feed(Arc::clone(nodes), Arc::clone(&fed), format!("{round} {side}"), work)))
        .collect();
    let victim = nodes.servers[0].lock().await;
    tokio::time::sleep(phase).await;
    eventually("it is in the middle of its work", PATIENCE, async || match point {
        Some(_) => (said(&victim) > before).then_some(()),
        None => (nodes.held_by(victim.pid()).await > 0).then_some(()),
    })
    .await;
    signal(victim.pid(), "STOP").await;
    let halted = Instant::now();
    fed.store(true, Ordering::SeqCst);
    eventually("its work is taken over", PATIENCE, async || (nodes.held_by(victim.pid()).await == 0).then_some(()))
        .await;
    let after = halted.elapsed();
    tokio::time::sleep(STILL.saturating_sub(halted.elapsed())).await;
    signal(victim.pid(), "CONT").await;
    drop(victim);
    let refused = eventually("it is refused, and counts that", PATIENCE, async || {
        Some(nodes.counted(0, &REFUSED).await.saturating_sub(counted)).filter(|count| *count > 0)
    })
    .await;
    for feeder in feeders {
        feeder.await.unwrap();
    }
    nodes.all_ended(PATIENCE).await;
    (after, refused)
}

/// Clicks until it is enough, so that every node has something to do.
async fn feed(nodes: Arc<Nodes>, fed: Arc<AtomicBool>, name: String, work: Work) {
    for n in 0.. {
        if fed.load(Ordering::SeqCst) {
            return;
        }
        nodes.click(&format!("still {name} {n}"), work, false).await;
    }
}

async fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().await.unwrap();
    assert!(sent.success());
}
