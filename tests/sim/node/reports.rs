//! Progress between commits, as the engine keeps it: the newest report of each running chunk, stored at most every half
//! second.

use super::Node;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use taskbell::core::ids::{FencingToken, TaskId};
use taskbell::core::progress::Reported;
use taskbell::store::{Report, Store};
use tokio::sync::Notify;

/// Reports are stored at most this often, ms.
const STORE_EVERY_MS: i64 = 500;

/// The newest reports.
#[derive(Default)]
pub(super) struct Reports {
    waiting: Mutex<BTreeMap<TaskId, (FencingToken, Reported)>>,
    rung: Notify,
}

impl Reports {
    /// Takes a report.
    pub fn take(&self, id: TaskId, token: FencingToken, report: Reported) {
        let mut waiting = self.waiting.lock().unwrap();
        let report = match waiting.remove(&id) {
            Some((_, older)) => report.over(older),
            None => report,
        };
        waiting.insert(id, (token, report));
        drop(waiting);
        self.rung.notify_one();
    }

    /// What still waits of a chunk that commits now.
    pub fn withdraw(&self, id: TaskId) -> Option<Reported> {
        self.waiting.lock().unwrap().remove(&id).map(|(_, report)| report)
    }
}

/// The loop that stores them.
pub(super) async fn run(node: Arc<Node>) {
    loop {
        node.reports.rung.notified().await;
        let due = std::mem::take(&mut *node.reports.waiting.lock().unwrap());
        let due: Vec<Report> = due.into_iter().map(|(task, (token, report))| Report { task, token, report }).collect();
        if !due.is_empty()
            && let Ok(written) = node.store.report(due).await
        {
            node.announce(written);
        }
        node.sleep(STORE_EVERY_MS).await;
    }
}
