//! Records the demo's actions: each is clicked on a real server with several batch sizes and pauses, some at the same
//! time, and looked at over the API as often as that answers. What two looks in a row see alike is written once.

use crate::set::recorded::folder;
use crate::support::server::{Client, Spec};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;
use tokio::task::JoinSet;

/// Between two looks; the pauses of the actions are far longer, so no commit that a pause follows is missed.
const LOOK: Duration = Duration::from_millis(5);
/// The longest that one task may take.
const LIMIT: Duration = Duration::from_secs(400);

/// What is clicked: waves of tasks that run side by side. The tables they write differ within a wave.
fn waves() -> [Vec<(&'static str, Value)>; 4] {
    [
        vec![
            ("import-customers", json!({"batch": 200, "pause": 0.25})),
            ("recalculate-totals", json!({"batch": 625, "pause": 0.3})),
            ("sync-catalogue", json!({"pageSize": 80, "pause": 0.3})),
            ("reconcile-payments", json!({"batch": 75, "pause": 0.15})),
            ("clean-contacts", json!({"count": 5_000, "batch": 250, "pause": 1.5})),
        ],
        vec![
            ("import-customers", json!({"batch": 50, "pause": 0.05})),
            ("recalculate-totals", json!({"batch": 2_500, "pause": 2})),
            ("sync-catalogue", json!({"pageSize": 25, "pause": 0.1})),
            ("reconcile-payments", json!({"batch": 300, "pause": 1})),
            ("rebuild-index", json!({"batch": 50, "pause": 0.4})),
        ],
        vec![
            ("import-customers", json!({"batch": 1_000, "pause": 3})),
            ("recalculate-totals", json!({"batch": 100, "pause": 0.05})),
            ("sync-catalogue", json!({"pageSize": 200, "pause": 2})),
            ("reconcile-payments", json!({"batch": 40, "pause": 0.1})),
            ("clean-contacts", json!({"count": 100_000, "batch": 1_000, "pause": 0.2})),
        ],
        vec![
            ("import-customers", json!({"batch": 10, "pause": 0})),
            ("recalculate-totals", json!({"batch": 40, "pause": 0})),
            ("reconcile-payments", json!({"batch": 8, "pause": 0})),
            ("rebuild-index", json!({"batch": 10, "pause": 0.05})),
        ],
    ]
}

/// Records everything anew.
pub async fn all() {
    let server = Spec::demo().start().await;
    let client = server.client("user", "user").await;
    for (number, wave) in waves().into_iter().enumerate() {
        let mut tasks = JoinSet::new();
        for (action, params) in wave {
            let client = client.clone();
            tasks.spawn(async move {
                let text = record(&client, action, &params).await;
                std::fs::write(folder().join(format!("{action}-{}.csv", number + 1)), text).unwrap();
            });
        }
        tasks.join_all().await;
    }
}

/// Clicks, looks until it succeeded, and answers the file's text. A task that fails is resumed at once.
async fn record(client: &Client, action: &str, params: &Value) -> String {
    let task = client.submit(json!({"action": action, "params": params})).await;
    let path = format!("/api/v1/tasks/{}", task["id"].as_str().unwrap());
    let mut text = format!("# {action} {params}\nms,current,total,then\n");
    let (mut before, mut stopped) = (String::new(), false);
    let followed = async {
        loop {
            let (_, task) = client.get(&path).await;
            let line = look(&task, &mut stopped);
            // While the next chunk runs, the numbers of the last one are still there, without its delay.
            if let Some(line) = line.filter(|line| !before.starts_with(line.as_str())) {
                writeln!(text, "{line}").unwrap();
                before = line;
            }
            match task["state"].as_str().unwrap() {
                "succeeded" => return,
                "failed" => drop(client.post(&format!("{path}/resume"), &json!({})).await),
                _ => tokio::time::sleep(LOOK).await,
            }
        }
    };
    tokio::time::timeout(LIMIT, followed).await.unwrap_or_else(|_| panic!("{action} {params} takes too long"));
    text
}

/// The line of what a look saw; none before the first claim.
fn look(task: &Value, stopped: &mut bool) -> Option<String> {
    let started = instant(&task["startedAt"])?;
    let progress = &task["progress"];
    let state = task["state"].as_str().unwrap();
    let reported = instant(&progress["updatedAt"]).unwrap_or(started);
    let (mut at, mut then) = (reported, String::new());
    let waiting = &task["waiting"];
    if state == "failed" {
        (*stopped, at, then) = (true, instant(&task["finishedAt"])?, "stop".to_owned());
    } else if std::mem::take(stopped) {
        if state != "running" {
            *stopped = true;
            return None;
        }
        (at, then) = (instant(&task["updatedAt"])?, "go".to_owned());
    } else if state == "succeeded" {
        at = instant(&task["finishedAt"])?;
    } else if waiting["reason"] == "delay" {
        then = format!("wait {}", (instant(&waiting["until"])? - reported).max(0));
    }
    let number = |value: &Value| value.as_i64().map(|n| n.to_string()).unwrap_or_default();
    let (current, total) = (number(&progress["current"]), number(&progress["total"]));
    Some(format!("{},{current},{total},{then}", (at - started).max(0)))
}

/// An instant of the API, ms.
fn instant(value: &Value) -> Option<i64> {
    let instant: jiff::Timestamp = value.as_str()?.parse().unwrap();
    Some(instant.as_millisecond())
}
