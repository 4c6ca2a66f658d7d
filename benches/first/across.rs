//! How soon a click on one node is claimed by another: two server processes on one database, one that only takes in and one
//! that only works, woken by the database's LISTEN.

use crate::figures::{Figures, Unit, quantile};
use crate::support::eventually;
use crate::support::ground::Ground;
use crate::support::server::{Client, Spec};
use crate::work::open;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use taskbell::core::ids::TaskId;
use taskbell::store::Reach;

/// How long a task may take in the worst case.
const LIMIT: Duration = Duration::from_secs(10);

/// Clicks one by one on an idle queue, `count` times; tells from the begin of the click's transaction to that of its claim, both
/// by the database's clock in whole milliseconds.
pub async fn measure(figures: &mut Figures, config: &str, count: usize) {
    figures.before_each().await;
    let ground = Arc::new(Ground::postgres().await);
    let takes_in = Spec::with_config(config).role("web").start_on(ground.clone()).await;
    let works = Spec::with_config(config).role("work").start_on(ground.clone()).await;
    let (client, store) = (takes_in.client("user", "user").await, open(&ground).await);
    for server in [&takes_in, &works] {
        let there = Client::new(&server.url(), &client.key);
        eventually("the nodes wake each other", LIMIT, async || {
            (there.get("/readyz").await.1["parts"]["wake"] == "listen").then_some(())
        })
        .await;
    }
    let mut waits = Vec::with_capacity(count);
    for i in 0..count {
        // Not in step with anything of a node.
        tokio::time::sleep(Duration::from_millis(5 + (i as u64 * 7) % 23)).await;
        let id: TaskId = client.submit(json!({"action": "noop"})).await["id"].as_str().unwrap().parse().unwrap();
        let wait = eventually("it is claimed", LIMIT, async || {
            let task = store.tasks(&Reach::default(), &[id]).await.unwrap().pop()?;
            Some(task.started_at?.since(task.created_at))
        });
        waits.push(wait.await as f64);
    }
    figures.tell("pick-up across two nodes, p50", Unit::Ms, quantile(&waits, 0.5));
    figures.tell("pick-up across two nodes, p99", Unit::Ms, quantile(&waits, 0.99));
}
