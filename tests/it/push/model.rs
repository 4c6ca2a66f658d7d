//! What a page knows, kept by the rules of the protocol: a snapshot replaces, deltas merge, versions only rise.

use serde_json::Value;
use std::collections::BTreeMap;
use taskbell::store::Center;

#[derive(Default)]
pub struct Model {
    pub epoch: Value,
    pub head: i64,
    pub revisions: BTreeMap<String, i64>,
    pub counts: Value,
    /// The first rule that was broken.
    pub fault: Option<String>,
}

impl Model {
    /// What it has, for a hello.
    pub fn have(&self) -> Value {
        serde_json::json!({"epoch": self.epoch, "head": self.head})
    }

    pub fn take(&mut self, frame: &Value) {
        let known = match frame["t"].as_str().unwrap() {
            "snap" => {
                self.epoch = frame["epoch"].clone();
                std::mem::take(&mut self.revisions)
            }
            "delta" => self.revisions.clone(),
            "gone" => {
                self.revisions.remove(frame["id"].as_str().unwrap());
                return;
            }
            "same" | "ping" | "welcome" | "drain" | "status" | "auth" => return,
            other => return self.broken(format!("{other}: {frame}")),
        };
        let head = frame["head"].as_i64().unwrap();
        if head < self.head {
            self.broken(format!("the head fell from {} to {head}", self.head));
        }
        self.head = head;
        for item in frame["items"].as_array().unwrap() {
            let (id, revision) = (item["id"].as_str().unwrap(), item["revision"].as_i64().unwrap());
            let before = known.get(id).copied().unwrap_or(0);
            // A snapshot may show again what is known; a delta is news.
            if revision < before || (frame["t"] == "delta" && revision == before) {
                self.broken(format!("revision {revision} of {id} after {before}: {}", frame["t"]));
            }
            self.revisions.insert(id.to_owned(), revision);
        }
        if let Some(counts) = frame.get("counts") {
            self.counts = counts.clone();
        }
    }

    fn broken(&mut self, rule: String) {
        self.fault.get_or_insert(rule);
    }

    /// Whether it shows what the database holds.
    pub fn is(&self, center: &Center) -> bool {
        let stored = center.tasks.iter().map(|task| (task.id.to_string(), task.revision.0));
        self.head == center.head.0
            && self.counts["unseen"] == center.counts.unseen
            && self
                .revisions
                .iter()
                .map(|(id, revision)| (id.clone(), *revision))
                .eq(stored.collect::<BTreeMap<_, _>>())
    }
}
