//! The loop that takes away what was kept long enough, on a node that works meanwhile.

use crate::support::eventually;
use crate::support::ground::Ground;
use crate::support::node::{Node, SOON, action, answer, click, closure, short_settings};
use crate::support::on_each_database;
use serde_json::json;
use std::sync::Arc;
use taskbell::core::chunk::{Failure, Outcome};
use taskbell::core::ids::TaskId;
use taskbell::core::retention::Keep;
use taskbell::core::task::{ErrorKind, State};
use taskbell::engine::EngineSettings;
use taskbell::store::Reach;
use taskbell::store::logs::{Append, Level, LogParams, LogStore as _, NewLine};

on_each_database! {
    a_node_takes_ended_tasks_and_their_logs_away_and_leaves_the_rest
    a_log_goes_before_its_task_where_the_task_is_kept_longer
}

const DAY_MS: i64 = 86_400_000;

/// A node that takes away successes at once and keeps everything else.
async fn node(ground: &Ground, logs_ms: i64) -> Node {
    let keep = Keep { succeeded_ms: 0, failed_ms: DAY_MS, cancelled_ms: DAY_MS, logs_ms };
    let settings = EngineSettings { keep, retain_ms: 50, ..short_settings() };
    let good = closure(|_| async { answer(json!({"done": true})) });
    let bad = closure(|_| async { Ok(Outcome::Fail(Failure::new(ErrorKind::Permanent, "no", "No."))) });
    Node::start_with(ground, vec![(action("good"), good), (action("bad"), bad)], settings).await
}

/// Puts a line into the log of a task.
async fn log(node: &Node, task: TaskId) {
    let line = NewLine {
        at: node.store.now().await.unwrap(),
        level: Level::Info,
        source: "handler",
        chunk: 1,
        message: "a line".into(),
    };
    let token = node.task(task).await.fencing_token;
    node.logs.append(vec![Append { tenant: "default".into(), task, token, lines: vec![line] }]).await.unwrap();
}

async fn a_node_takes_ended_tasks_and_their_logs_away_and_leaves_the_rest(ground: Arc<Ground>) {
    let node = node(&ground, DAY_MS).await;
    let failed = node.click(click("bad", json!({}))).await;
    node.until(failed, State::Failed).await;
    log(&node, failed).await;
    let mut good = Vec::new();
    for _ in 0..20 {
        good.push(node.click(click("good", json!({}))).await);
    }
    eventually("what succeeded is gone", SOON, async || {
        node.store.tasks(&Reach::default(), &good).await.unwrap().is_empty().then_some(())
    })
    .await;
    assert!(node.logs.newest(&good).await.unwrap().is_empty());
    assert_eq!(node.task(failed).await.state, State::Failed);
    let log = node.logs.part(failed, LogParams { limit: 10, ..LogParams::default() }).await.unwrap();
    assert!(log.items.iter().any(|line| line.message == "a line"));
    node.engine.drain().await;
}

async fn a_log_goes_before_its_task_where_the_task_is_kept_longer(ground: Arc<Ground>) {
    let node = node(&ground, 0).await;
    let failed = node.click(click("bad", json!({}))).await;
    node.until(failed, State::Failed).await;
    log(&node, failed).await;
    eventually("the log is gone", SOON, async || node.logs.newest(&[failed]).await.unwrap().is_empty().then_some(()))
        .await;
    assert_eq!(node.task(failed).await.state, State::Failed);
    node.engine.drain().await;
}
