//! Families on running nodes: a parent waits without a place, goes on at once, shows what its children have done, and what a
//! killed node leaves behind is each child exactly once.

use crate::support::eventually;
use crate::support::ground::Ground;
use crate::support::node::{Answer, Node, SOON, action, answer, click, closure, short_settings};
use crate::support::server::Spec;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use taskbell::core::action::Action;
use taskbell::core::child::Child;
use taskbell::core::chunk::Outcome;
use taskbell::core::family::{CHILDREN_PER_CHUNK, OnFailure};
use taskbell::core::ids::TaskId;
use taskbell::core::task::{State, Task};
use taskbell::engine::EngineSettings;
use taskbell::handler::{ChunkContext, Handler};

const END: Duration = Duration::from_secs(120);

/// Submits parts, waits for them, and joins what they left.
struct Join(OnFailure);

#[async_trait]
impl Handler for Join {
    async fn run(&self, cx: &ChunkContext) -> Answer {
        if cx.checkpoint().is_none() {
            for n in 0..cx.params()["parts"].as_i64().unwrap_or(3) {
                cx.submit(Child::new("part", json!({"n": n})).titled(format!("Part {n}")))?;
            }
            return Ok(Outcome::when_children_ended(json!("join"), self.0));
        }
        let mut page = cx.children().await?;
        let mut sum = 0;
        loop {
            for child in &page.items {
                sum += child.result.as_ref().and_then(|r| r["n"].as_i64()).unwrap_or(0);
            }
            let Some(next) = page.next else { break };
            page = cx.children_after(Some(next)).await?;
        }
        Ok(Outcome::done(json!({"sum": sum, "counts": page.counts})))
    }
}

fn parts() -> (Action, Arc<dyn Handler>) {
    let run = closure(|call| async move {
        let n = call.params["n"].as_i64().unwrap();
        answer(json!({"hasMore": false, "result": {"n": n}, "current": 1, "total": 1}))
    });
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    (Action { params: schema, ..action("part") }, run)
}

fn join(policy: OnFailure) -> (Action, Arc<dyn Handler>) {
    (action("join"), Arc::new(Join(policy)))
}

async fn ended(node: &Node, id: TaskId) -> Task {
    eventually("it has ended", END, async || Some(node.task(id).await).filter(|t| t.state.is_final())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_one_place_runs_a_parent_and_its_children() {
    let ground = Ground::usual().await;
    // Nothing is found by a poll: each step has to wake the next one.
    let settings = EngineSettings { parallelism: 1, poll_ms: 60_000, ..short_settings() };
    let node = Node::start_with(&ground, vec![join(OnFailure::Fail), parts()], settings).await;
    let id = node.click(click("join", json!({"parts": 250}))).await;
    let task = ended(&node, id).await;
    assert_eq!(task.state, State::Succeeded, "{task:?}");
    let result = node.store.documents(id).await.unwrap().result.unwrap();
    let sum: i64 = (0..250).sum();
    assert_eq!(result, json!({"sum": sum, "counts": {"succeeded": 250}}));
    assert_eq!((task.progress.current, task.progress.total), (25_000, Some(25_000)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_of_a_child_fails_the_chunk_and_names_the_child_and_its_field() {
    let ground = Ground::usual().await;
    let run = closure(|call| async move {
        let children = call.params["children"].clone();
        answer(json!({"hasMore": false, "submit": children}))
    });
    let node = Node::start(&ground, vec![(action("lists"), run), parts()]).await;
    let many: Vec<Value> = (0..CHILDREN_PER_CHUNK).map(|n| json!({"action": "part", "params": {"n": n}})).collect();
    for (children, code, names) in [
        (json!([{"action": "part", "params": {"n": 1}}, {"action": "part"}]), "child-invalid", "submit[1].params"),
        (json!([{"action": "nobody"}]), "child-invalid", "submit[0].action"),
        (json!([{"action": "part", "params": {"n": 1}, "weight": 0}]), "child-invalid", "submit[0].weight"),
        (json!([{"action": "part", "params": {"n": 1}, "priority": 101}]), "child-invalid", "submit[0].priority"),
    ] {
        let id = node.click(click("lists", json!({"children": children}))).await;
        let task = ended(&node, id).await;
        let error = task.error.expect("it failed");
        assert_eq!((task.state, error.code.as_str()), (State::Failed, code), "{error:?}");
        assert!(error.message.contains(names), "{error:?}");
        assert!(node.store.family_counts(&[id]).await.unwrap().is_empty());
    }
    let id = node.click(click("lists", json!({"children": many}))).await;
    assert_eq!(ended(&node, id).await.state, State::Succeeded);
    assert_eq!(node.store.children(id, None, 5_000).await.unwrap().len(), CHILDREN_PER_CHUNK);
}

/// Submits one more than a chunk may have.
struct TooMany;

#[async_trait]
impl Handler for TooMany {
    async fn run(&self, cx: &ChunkContext) -> Answer {
        for n in 0..=CHILDREN_PER_CHUNK {
            cx.submit(Child::new("part", json!({"n": n})))?;
        }
        Ok(Outcome::done(Value::Null))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_native_handler_is_told_the_limit_of_a_chunk() {
    let ground = Ground::usual().await;
    let node = Node::start(&ground, vec![(action("many"), Arc::new(TooMany)), parts()]).await;
    let id = node.click(click("many", json!({}))).await;
    let error = ended(&node, id).await.error.unwrap();
    assert_eq!(error.code, "too-many-children");
    assert!(error.message.contains("1000"), "{error:?}");
    assert!(node.store.family_counts(&[id]).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_of_children_reaches_the_parent_while_they_run() {
    let ground = Ground::usual().await;
    let half = closure(|call| async move {
        match call.checkpoint {
            None => answer(json!({"hasMore": true, "checkpoint": 1, "current": 1, "total": 2})),
            Some(_) => answer(json!({"hasMore": true, "nextDelaySeconds": 60})),
        }
    });
    let node = Node::start(&ground, vec![join(OnFailure::Fail), (action("part"), half)]).await;
    let id = node.click(click("join", json!({"parts": 2}))).await;
    let shown = eventually("half of it is done", SOON, async || {
        Some(node.task(id).await.progress).filter(|p| p.current == 100)
    });
    assert_eq!(shown.await.total, Some(200));
    let task = node.task(id).await;
    assert!(task.awaits.is_some() && !task.under_way(), "{task:?}");
}

const SERVER: &str = r#"
[database]
url = "sqlite://data/taskbell.db"
[engine]
lease_ms = 1500
heartbeat_ms = 500
sweep_ms = 200
poll_ms = 200
[[actions]]
key = "fan"
handler = { script = "fan.js" }
retry = { max_attempts = 20, base = "50ms", cap = "100ms" }
[[actions]]
key = "part"
handler = { script = "part.js" }
retry = { max_attempts = 20, base = "50ms", cap = "100ms" }
params = { type = "object", properties = { n = { type = "integer" } }, required = ["n"] }
"#;

const FAN: &str = r#"
export default async function (task, cx) {
  const from = cx.checkpoint?.next ?? 0;
  if (from < 60) {
    for (let n = from; n < from + 10; n++) cx.submit({ action: "part", params: { n }, title: `Part ${n}` });
    return { hasMore: true, checkpoint: { next: from + 10 } };
  }
  if (!cx.checkpoint.waited) {
    return { hasMore: true, checkpoint: { next: from, waited: true }, wait: { children: true, onFailure: "fail" } };
  }
  const seen = [];
  let page = await cx.children();
  for (;;) {
    for (const child of page.items) seen.push(child.result.n);
    if (!page.next) break;
    page = await cx.children(page.next);
  }
  return { hasMore: false, result: { seen: seen.sort((a, b) => a - b), counts: page.counts } };
}
"#;

const PART: &str = "export default (task) => ({ hasMore: false, result: { n: task.params.n } });";

/// Proves: G18.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_again_and_again_a_fan_out_has_each_child_exactly_once() {
    let ground = Arc::new(Ground::usual().await);
    for (name, text) in [("fan.js", FAN), ("part.js", PART)] {
        fs::write(ground.path().join(name), text).unwrap();
    }
    let mut server = Spec::with_config(SERVER).start_on(ground.clone()).await;
    let client = server.client("olga", "operator").await;
    let task = client.submit(json!({"action": "fan"})).await;
    let id = task["id"].as_str().unwrap().to_owned();
    for kills in 1..=4 {
        // At another place of the work each time: a number of children are there, whichever they are.
        let there = "SELECT COUNT(*) FROM taskbell_tasks WHERE parent IS NOT NULL";
        eventually("the work has moved", END, async || {
            (ground.numbers("data/taskbell.db", there).await[0] >= 10 * kills).then_some(())
        })
        .await;
        server.kill().await;
        server.start_again().await;
    }
    let task = client.until(&id, END, |t| t["finishedAt"].is_string()).await;
    assert_eq!(task["state"], "succeeded", "{task}");
    let seen: Vec<i64> = (0..60).collect();
    assert_eq!(task["result"], json!({"seen": seen, "counts": {"succeeded": 60}}));
}
