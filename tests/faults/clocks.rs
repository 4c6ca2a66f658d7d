//! Nodes whose wall clocks are wrong, jump and drift, by a library that stands between them and the system's clock: leases are
//! the database's affair and lengths of time that of a clock which only goes on, so nobody steals early, nothing stops, and
//! no time is negative.

use crate::rig::nodes::{Nodes, Work};
use crate::rig::{PATIENCE, long, test};
use crate::support::ground::Ground;
use libtest_mimic::Trial;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub fn tests() -> Vec<Trial> {
    vec![test(
        "e3_clocks_that_are_wrong_jump_and_drift_steal_nothing_and_stop_nothing",
        e3_clocks_that_are_wrong_jump_and_drift_steal_nothing_and_stop_nothing,
    )]
}

const SETTINGS: [(&str, &str); 4] = [
    ("ENGINE__LEASE_MS", "30000"),
    ("ENGINE__HEARTBEAT_MS", "1000"),
    ("ENGINE__SWEEP_MS", "500"),
    ("ENGINE__POLL_MS", "1000"),
];
/// Due work starts so soon whatever the wall clock says; 5 s and what a busy machine takes.
const SOON: Duration = Duration::from_secs(30);
/// Each node's clock at its start: behind, ahead, and one that goes too fast.
const AT_START: [&str; 3] = ["-300", "+300", "+0 x1.1"];
/// Backwards and forwards by two hours.
const JUMPS: [&str; 4] = ["-7200", "+7200", "+0", "-7200"];

fn library() -> PathBuf {
    let found = ["x86_64-linux-gnu", "aarch64-linux-gnu"]
        .map(|machine| Path::new("/usr/lib").join(machine).join("faketime/libfaketimeMT.so.1"))
        .into_iter()
        .find(|path| path.exists());
    found.expect("this test needs Debian's package libfaketime, which tests/run installs")
}

/// Proves: G2.
async fn e3_clocks_that_are_wrong_jump_and_drift_steal_nothing_and_stop_nothing() {
    let ground = Arc::new(Ground::postgres().await);
    let (folder, library) = (tempfile::tempdir().unwrap(), library());
    let file = |n: usize| folder.path().join(format!("clock-{n}"));
    // In one step, so that nobody reads half of it.
    let set = |n: usize, to: &str| {
        let next = folder.path().join("next");
        std::fs::write(&next, to).unwrap();
        std::fs::rename(next, file(n)).unwrap();
    };
    for (n, at) in AT_START.iter().enumerate() {
        set(n, at);
    }
    let own = |n: usize| {
        [
            ("LD_PRELOAD", library.to_str().unwrap()),
            ("FAKETIME_TIMESTAMP_FILE", file(n).to_str().unwrap()),
            ("FAKETIME_NO_CACHE", "1"),
            ("DONT_FAKE_MONOTONIC", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    };
    let nodes = Nodes::start_each(ground.clone(), 3, &SETTINGS, own).await;
    let apart = nodes.clock(1).await.duration_since(nodes.clock(0).await).unwrap_or_default();
    assert!(
        (500..700).contains(&apart.as_secs()),
        "the clocks are {apart:?} apart: the library does not reach the nodes"
    );
    let work = Work { chunks: 4, items: 2, pause: Duration::from_secs(1) };
    let rounds = if long() { 12 } else { 3 };
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        for n in 0..9 {
            nodes.click(&format!("running {round} {n}"), work, false).await;
        }
        // In the middle of their chunks, and then while all are idle.
        for n in 0..3 {
            set(n, JUMPS[(round + n) % JUMPS.len()]);
        }
        nodes.all_ended(PATIENCE).await;
        for n in 0..3 {
            set(n, JUMPS[(round + n + 3) % JUMPS.len()]);
        }
        let from = Instant::now();
        let idle = nodes.click(&format!("idle {round}"), work, false).await;
        loop {
            let (_, task) = nodes.get(0, &format!("/api/v1/tasks/{idle}")).await.expect("the node answers");
            let task: serde_json::Value = serde_json::from_str(&task).unwrap();
            if task["state"] != "queued" {
                break;
            }
            assert!(from.elapsed() < SOON, "due work does not start: {task}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        slowest = slowest.max(from.elapsed());
        nodes.all_ended(PATIENCE).await;
        for (n, at) in AT_START.iter().enumerate() {
            set(n, at);
        }
    }
    for (what, sql) in [
        ("started", "SELECT COUNT(*) FROM taskbell_tasks WHERE started_at < created_at"),
        ("finished", "SELECT COUNT(*) FROM taskbell_tasks WHERE finished_at < started_at"),
    ] {
        assert_eq!(ground.numbers("", sql).await, [0], "a time until it {what} is negative");
    }
    nodes.assert_no_lease_lost().await;
    let lost = nodes.settle(work, false).await;
    println!("{rounds} rounds of jumps; due work started after at most {slowest:?}");
    assert_eq!(lost, 0, "a lease was stolen");
}
