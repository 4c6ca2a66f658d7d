//! A node dies at each point between a decision and its commit, and between the commit and whoever is told.

use crate::rig::base::Base;
use crate::rig::nodes::{Nodes, QUICK, Work};
use crate::rig::watcher::Watcher;
use crate::rig::{dice, long, on_each_database};
use crate::support::ground::Ground;
use libtest_mimic::Trial;
use rand::RngExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub fn tests() -> Vec<Trial> {
    on_each_database("a_node_that_dies_at_any_point_of_any_commit_loses_nothing_and_doubles_nothing", |ground| {
        a_node_that_dies_at_any_point_of_any_commit_loses_nothing_and_doubles_nothing(ground)
    })
}

/// Where src passes a point (`failpoint!`).
const POINTS: [&str; 18] = [
    "submit.before",
    "submit.after",
    "submit.reply",
    "claim.before",
    "claim.after",
    "renew.before",
    "renew.after",
    "report.before",
    "report.after",
    "effect.before",
    "effect.after",
    "checkpoint.before",
    "checkpoint.after",
    "finish.before",
    "finish.after",
    "publish.before",
    "sweep.before",
    "sweep.after",
];
/// Tasks of a round, at least.
const TASKS: usize = 3;
/// How long a node may take to come to a point: it beats, sweeps and claims several times a second.
const DIES: Duration = Duration::from_secs(60);
/// Between two clicks.
const BETWEEN: Duration = Duration::from_millis(300);
const OVER: Duration = Duration::from_secs(90);

/// Proves: G1, G3, G4, G5.
async fn a_node_that_dies_at_any_point_of_any_commit_loses_nothing_and_doubles_nothing(ground: Arc<Ground>) {
    let seeds = if long() { 10 } else { 1 };
    let work = Work { chunks: 3, items: 2, pause: Duration::from_millis(700) };
    // The second node is the one that others go to meanwhile.
    let count = if ground.database().is_none() { 1 } else { 2 };
    let nodes = Arc::new(Nodes::start(ground, count, &QUICK).await);
    let (base, watcher) = (Base::of(&nodes).await, Watcher::start(&nodes).await);
    let mut dice = dice("crash matrix");
    for seed in 0..seeds {
        for point in POINTS {
            let at = dice.random_range(1..=3);
            die_at(&nodes, point, at, work, seed).await;
        }
    }
    watcher.shows_the_rows().await;
    drop(watcher);
    base.is_reached(&nodes).await;
    let lost = nodes.settle(work, false).await;
    println!("{} aborts at {} points; {lost} leases lost", seeds * POINTS.len(), POINTS.len());
}

/// A round: the first node dies at a point while it works, comes back, and all is done.
async fn die_at(nodes: &Arc<Nodes>, point: &str, at: u32, work: Work, seed: usize) {
    let mut victim = nodes.servers[0].lock().await;
    victim.kill().await;
    let started = victim.start_again_with("TASKBELL_FAILPOINTS", &format!("{point}=abort@{at}")).await;
    let (mut clicks, end) = (Vec::new(), Instant::now() + DIES);
    // One that dies at its start was at the point then. Clicks of one commit come to a point together, so more follow.
    let mut died = !started;
    while !died || clicks.len() < TASKS {
        assert!(Instant::now() < end, "the node does not come to {point} for the {at}. time");
        let (nodes, key) = (Arc::clone(nodes), format!("{point} {at} {seed} {}", clicks.len()));
        clicks.push(tokio::spawn(async move { nodes.click(&key, work, false).await }));
        died = died || victim.ended(BETWEEN).await;
    }
    victim.start_again().await;
    drop(victim);
    for click in clicks {
        click.await.unwrap();
    }
    nodes.all_ended(OVER).await;
}
