//! `submit` and `watch` against a real server: the two halves of the contract meet.

use super::{LIMIT, taskbell};
use crate::support::server::{Server, Spec};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// Five chunks that log and count; `total` leaves the total out, `fail` ends in a failure, `gap` is the pause in seconds.
const STEPS: &str = r#"
export default async function (task, cx) {
  const n = (cx.checkpoint?.n ?? 0) + 1;
  cx.log(`step ${n}`);
  if (task.params.fail && n === 3) return { fail: { code: "no-stock", message: "Nothing left", retryable: false } };
  const total = task.params.total === false ? undefined : 5;
  if (n === 5) return { hasMore: false, current: 5, total, unit: "steps", result: { n } };
  return { hasMore: true, checkpoint: { n }, current: n, total, unit: "steps", nextDelaySeconds: task.params.gap ?? 0 };
}
"#;

async fn server() -> (Server, TempDir) {
    let scripts = tempfile::tempdir().unwrap();
    let script = scripts.path().join("steps.js");
    std::fs::write(&script, STEPS).unwrap();
    let config =
        format!("[[records]]\ntype = \"order\"\n[[actions]]\nkey = \"steps\"\nhandler = {{ script = {script:?} }}\n");
    (Spec::with_config(&config).start().await, scripts)
}

struct Caller {
    url: String,
    key: String,
}

impl Caller {
    async fn new(server: &Server, user: &str) -> Self {
        Self { url: server.url(), key: server.client(user, "user").await.key }
    }

    async fn run(&self, dir: &Path, args: &[&str]) -> super::Ran {
        taskbell(dir, args, &[("TASKBELL_URL", &self.url), ("TASKBELL_KEY", &self.key)]).await
    }
}

/// The texts of the log lines in an output.
fn logged(out: &str) -> Vec<&str> {
    out.lines().filter_map(|line| line.split_once(" I ")).map(|(_, text)| text).collect()
}

#[tokio::test]
async fn a_submit_that_watches_shows_every_log_line_once_and_ends_as_the_task_ends() {
    let (server, dir) = server().await;
    let alice = Caller::new(&server, "alice").await;
    let ran = alice.run(dir.path(), &["submit", "steps", "--param", "gap=0.2", "--watch"]).await;
    assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{}", ran.out);
    assert_eq!(logged(&ran.out), ["step 1", "step 2", "step 3", "step 4", "step 5"]);
    assert!(ran.out.lines().last().unwrap().starts_with("Succeeded · 5 steps"), "{}", ran.out);

    let ran = alice.run(dir.path(), &["submit", "steps", "--param", "fail=true", "--watch"]).await;
    let last = ran.out.lines().last().unwrap();
    assert_eq!(ran.status, 1, "{}", ran.out);
    assert_eq!(last, "Failed · Nothing left (no-stock) · stopped at 2 of 5 (40%)");

    let ran = alice.run(dir.path(), &["submit", "steps", "--param", "total=false", "--watch"]).await;
    assert!(ran.status == 0 && !ran.out.contains('%'), "{}", ran.out);
}

#[tokio::test]
async fn a_task_cancelled_while_it_is_watched_is_2_and_an_ended_one_is_told_at_once() {
    let (server, dir) = server().await;
    let alice = Caller::new(&server, "alice").await;
    let client = server.client("alice", "user").await;
    let task = client.submit(json!({"action": "steps", "params": {"gap": 3600}})).await;
    let id = task["id"].as_str().unwrap();
    client.until(id, LIMIT, |task| task["progress"]["current"] == 1).await;
    let cancel = async {
        let (status, _) = client.post(&format!("/api/v1/tasks/{id}/cancel"), &json!({})).await;
        assert_eq!(status, 202);
    };
    let watch = ["watch", id];
    let (ran, ()) = tokio::join!(alice.run(dir.path(), &watch), cancel);
    assert_eq!(ran.status, 2, "{}{}", ran.out, ran.err);
    assert!(ran.out.lines().last().unwrap().starts_with("Cancelled · stopped at 1 of 5 (20%)"), "{}", ran.out);

    let again = alice.run(dir.path(), &watch).await;
    assert_eq!((again.status, logged(&again.out)), (2, vec!["step 1"]), "{}", again.out);
}

#[tokio::test]
async fn a_watch_outlives_the_crash_of_the_server() {
    let (mut server, dir) = server().await;
    let alice = Caller::new(&server, "alice").await;
    let client = server.client("alice", "user").await;
    let task = client.submit(json!({"action": "steps", "params": {"gap": 1}})).await;
    let id = task["id"].as_str().unwrap().to_owned();
    let watch = tokio::spawn({
        let (id, folder) = (id.clone(), dir.path().to_owned());
        async move { alice.run(&folder, &["watch", &id]).await }
    });
    client.until(&id, LIMIT, |task| task["progress"]["current"].as_i64() >= Some(2)).await;
    server.kill().await;
    server.start_again().await;
    let ran = watch.await.unwrap();
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.lines().last().unwrap().starts_with("Succeeded · 5 steps"), "{}", ran.out);
    // Lines of the last moment before a crash may be lost with the process; what came after it is all there.
    assert!(logged(&ran.out).ends_with(&["step 4", "step 5"]), "{}", ran.out);
}

#[tokio::test]
async fn files_records_and_keys_reach_the_task_and_a_replay_is_said() {
    let (server, dir) = server().await;
    let alice = Caller::new(&server, "alice").await;
    std::fs::write(dir.path().join("a.csv"), "x\n").unwrap();
    let args = [
        "submit",
        "steps",
        "--param",
        "file=@a.csv",
        "--record",
        "order:7",
        "--idempotency-key",
        "k1",
        "--param",
        "n=3",
    ];
    let ran = alice.run(dir.path(), &args).await;
    assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{}", ran.out);
    let client = server.client("alice", "user").await;
    let (_, task) = client.get(&format!("/api/v1/tasks/{}", ran.out.trim())).await;
    assert_eq!(
        (&task["params"]["n"], &task["record"]["id"], &task["idempotencyKey"]),
        (&json!(3), &json!("7"), &json!("k1"))
    );
    assert!(task["params"]["file"].is_string());

    let plain = ["submit", "steps", "--idempotency-key", "k2"];
    let first = alice.run(dir.path(), &plain).await;
    let second = alice.run(dir.path(), &plain).await;
    assert_eq!((second.status, &second.out), (0, &first.out));
    assert!(second.err.starts_with("already submitted by alice"), "{}", second.err);
}

#[tokio::test]
async fn what_the_caller_may_not_see_or_do_is_3_with_the_servers_own_words() {
    let (server, dir) = server().await;
    let alice = Caller::new(&server, "alice").await;
    let client = server.client("bob", "user").await;
    let task = client.submit(json!({"action": "steps"})).await;
    let id = task["id"].as_str().unwrap();
    let ran = alice.run(dir.path(), &["watch", id]).await;
    assert!(ran.status == 3 && ran.err.contains("(404 ") && ran.err.contains("request id: "), "{}", ran.err);
    let ran = alice.run(dir.path(), &["submit", "no-such-action"]).await;
    assert!(ran.status == 3 && ran.err.contains("(404 ") && ran.out.is_empty(), "{}", ran.err);
    let nobody = Caller { url: server.url(), key: "tb_wrong".to_owned() };
    let ran = nobody.run(dir.path(), &["watch", id]).await;
    assert!(ran.status == 3 && ran.err.contains("(401 ") && ran.err.contains("TASKBELL_KEY"), "{}", ran.err);
}

#[tokio::test]
async fn a_stopping_server_lets_a_watch_come_back() {
    let (mut server, dir) = server().await;
    let alice = Caller::new(&server, "alice").await;
    let client = server.client("alice", "user").await;
    let task = client.submit(json!({"action": "steps", "params": {"gap": 1}})).await;
    let id = task["id"].as_str().unwrap().to_owned();
    let watch = tokio::spawn({
        let (id, folder) = (id.clone(), dir.path().to_owned());
        async move { alice.run(&folder, &["watch", &id]).await }
    });
    client.until(&id, LIMIT, |task| task["progress"]["current"].as_i64() >= Some(2)).await;
    let status = tokio::time::timeout(Duration::from_secs(30), server.terminate()).await.expect("the drain ends");
    assert!(status.success());
    server.start_again().await;
    let ran = watch.await.unwrap();
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
}
