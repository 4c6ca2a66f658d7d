//! Nodes are killed again and again while they work: nothing that was accepted is lost, and no effect is doubled.

use crate::rig::base::Base;
use crate::rig::nodes::{Nodes, Work};
use crate::rig::watcher::Watcher;
use crate::rig::{dice, long, on_each_database};
use crate::support::ground::Ground;
use libtest_mimic::Trial;
use rand::{Rng as _, RngExt as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub fn tests() -> Vec<Trial> {
    on_each_database("nodes_that_are_killed_again_and_again_lose_nothing_and_double_nothing", |ground| {
        nodes_that_are_killed_again_and_again_lose_nothing_and_double_nothing(ground)
    })
}

/// After the last kill: a lease, a sweep, a start, and what is left of the work.
const OVER: Duration = Duration::from_secs(90);
/// Kills are spread over the work: each waits for its share of it to be done, but not for longer than this.
const BETWEEN: Duration = Duration::from_secs(10);

/// Proves: G1, G3, G4.
async fn nodes_that_are_killed_again_and_again_lose_nothing_and_double_nothing(ground: Arc<Ground>) {
    let alone = ground.database().is_none();
    let (tasks, kills) = match (long(), alone) {
        (true, _) => (2_000, 60),
        (false, true) => (150, 8),
        (false, false) => (400, 15),
    };
    let work = Work { chunks: 5, items: 4, pause: Duration::from_millis(150) };
    let nodes = Arc::new(Nodes::start(ground, if alone { 1 } else { 3 }, &[]).await);
    let (base, watcher) = (Base::of(&nodes).await, Watcher::start(&nodes).await);
    let mut dice = dice("crash soak");
    let left = Arc::new(AtomicUsize::new(kills));
    let killers: Vec<_> = (0..nodes.servers.len())
        .map(|n| {
            let (nodes, left) = (Arc::clone(&nodes), Arc::clone(&left));
            let mut dice = <rand::rngs::StdRng as rand::SeedableRng>::seed_from_u64(dice.next_u64());
            tokio::spawn(async move {
                let next = || left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
                while let Ok(left) = next() {
                    tokio::time::sleep(Duration::from_millis(dice.random_range(200..1_500))).await;
                    nodes.ended(tasks * (kills - left) / kills, BETWEEN).await;
                    let mut server = nodes.servers[n].lock().await;
                    server.kill().await;
                    tokio::time::sleep(Duration::from_millis(dice.random_range(500..3_000))).await;
                    server.start_again().await;
                }
            })
        })
        .collect();
    let began = Instant::now();
    let clickers = (0..8).map(|clicker| {
        let nodes = Arc::clone(&nodes);
        tokio::spawn(async move {
            for n in (clicker..tasks).step_by(8) {
                nodes.click(&format!("click {n}"), work, true).await;
            }
        })
    });
    for clicker in clickers.collect::<Vec<_>>() {
        clicker.await.unwrap();
    }
    for killer in killers {
        killer.await.unwrap();
    }
    let killed = Instant::now();
    nodes.all_ended(OVER).await;
    let after = killed.elapsed();
    watcher.shows_the_rows().await;
    drop(watcher);
    base.is_reached(&nodes).await;
    let lost = nodes.settle(work, true).await;
    println!(
        "{tasks} tasks, {} effects, {kills} kills of {} nodes in {:?}; {lost} leases lost; all ended {after:?} after the last start",
        tasks * 20,
        nodes.servers.len(),
        began.elapsed(),
    );
    assert!(lost > 0, "no kill met any work");
}
