//! Tasks under a key of which a few may run at once, while their nodes are killed.

use crate::rig::ledger::AT_ONCE;
use crate::rig::nodes::{Nodes, QUICK};
use crate::rig::on_each_database;
use crate::support::ground::Ground;
use libtest_mimic::Trial;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

pub fn tests() -> Vec<Trial> {
    on_each_database("no_more_tasks_than_may_hold_a_key_through_kills", |ground| {
        no_more_tasks_than_may_hold_a_key_through_kills(ground)
    })
}

const TASKS: usize = 15;
const CHUNKS: usize = 3;
const ITEMS: usize = 2;
const KILLS: usize = 4;
/// Between two kills: some chunks of those that hold the key.
const BETWEEN: Duration = Duration::from_millis(900);
const OVER: Duration = Duration::from_secs(120);

/// Invariant 6: each row of the ledger tells how many held the key at the instant of its commit.
async fn no_more_tasks_than_may_hold_a_key_through_kills(ground: Arc<Ground>) {
    let count = if ground.database().is_none() { 1 } else { 2 };
    let nodes = Nodes::start(ground, count, &QUICK).await;
    let client = nodes.servers[0].lock().await.client("olga", "operator").await;
    for _ in 0..TASKS {
        let params = json!({"chunks": CHUNKS, "items": ITEMS, "pauseMs": 300});
        client.submit(json!({"action": "bounded", "params": params})).await;
    }
    for kill in 0..KILLS {
        tokio::time::sleep(BETWEEN).await;
        let mut server = nodes.servers[kill % count].lock().await;
        server.kill().await;
        server.start_again().await;
    }
    nodes.all_ended(OVER).await;
    let ended = nodes.numbers("SELECT COUNT(*) FROM taskbell_tasks WHERE state = 'succeeded'").await;
    let written = nodes.numbers("SELECT COUNT(*) FROM ledger").await;
    assert_eq!((ended, written), (vec![TASKS as i64], vec![(TASKS * CHUNKS * ITEMS) as i64]));
    let most = nodes.numbers("SELECT MAX(holders) FROM ledger").await[0];
    assert!((1..=AT_ONCE).contains(&most), "{most} tasks held a key for {AT_ONCE}");
    nodes.end().await;
    println!("{TASKS} tasks, {KILLS} kills; at most {most} of them held the key");
}
