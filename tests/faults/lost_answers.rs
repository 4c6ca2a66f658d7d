//! Commits that fail and commits whose answers are lost, on nodes that live on: each is tried again, and applied once.

use crate::rig::nodes::{Nodes, QUICK, Work};
use crate::rig::on_each_database;
use crate::support::ground::Ground;
use libtest_mimic::Trial;
use std::sync::Arc;
use std::time::Duration;

pub fn tests() -> Vec<Trial> {
    on_each_database("a_commit_that_fails_or_whose_answer_is_lost_is_applied_once", |ground| {
        a_commit_that_fails_or_whose_answer_is_lost_is_applied_once(ground)
    })
}

/// Points around a commit, each of which a node with work passes again and again.
const POINTS: [&str; 12] = [
    "submit.before",
    "submit.after",
    "claim.before",
    "claim.after",
    "renew.before",
    "renew.after",
    "report.before",
    "report.after",
    "checkpoint.before",
    "checkpoint.after",
    "finish.before",
    "finish.after",
];
/// At most this many tasks: some points are passed by all of them together.
const MOST: usize = 200;
/// Between two clicks.
const BETWEEN: Duration = Duration::from_millis(100);
const OVER: Duration = Duration::from_secs(90);

/// Proves: G1, G3, G5.
async fn a_commit_that_fails_or_whose_answer_is_lost_is_applied_once(ground: Arc<Ground>) {
    let work = Work { chunks: 3, items: 2, pause: Duration::from_millis(400) };
    let nodes = Nodes::start(ground, 1, &QUICK).await;
    nodes.end().await;
    let faults: Vec<String> = POINTS.iter().flat_map(|p| [format!("{p}=error@1"), format!("{p}=error@3")]).collect();
    nodes.start_again_with("TASKBELL_FAILPOINTS", &faults.join(";")).await;
    let mut clicks = 0;
    loop {
        nodes.click(&format!("click {clicks}"), work, false).await;
        clicks += 1;
        let said = nodes.servers[0].lock().await.said();
        let passed = |point: &&str| said.matches(&format!("failpoint {point}: an error")).count() == 2;
        let left: Vec<_> = POINTS.iter().filter(|point| !passed(point)).collect();
        if left.is_empty() {
            break;
        }
        assert!(clicks < MOST, "nothing failed at {left:?}");
        tokio::time::sleep(BETWEEN).await;
    }
    nodes.all_ended(OVER).await;
    let lost = nodes.settle(work, false).await;
    println!("{clicks} tasks, {} commits that failed or whose answers were lost; {lost} leases lost", faults.len());
}
