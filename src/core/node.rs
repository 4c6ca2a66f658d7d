//! Nodes as all of them know each other: who is there, what each can run, and how it is.
//!
//! A node writes its row with every beat, and the database's clock says when. Nothing is decided here about tasks: which node
//! runs what is the affair of claims and leases, and a row that is wrong shows a wrong word and loses nothing. What a newer
//! version tells beyond this is passed over.

use super::task::Task;
use super::time::Millis;
use serde::{Deserialize, Serialize};

/// How long a node that was not heard of any more is still shown, ms.
pub const SHOWN_MS: i64 = 3_600_000;
/// The longest text of a fault that is kept, characters.
pub const FAULT_CHARS: usize = 300;

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name, unique among the living.
    pub id: String,
    /// `all`, `web` or `work`.
    pub role: String,
    /// The version of the binary.
    pub version: String,
    /// Chunks at once; 0 where it runs none.
    pub parallelism: i64,
    /// How long its leases last without renewal, ms; silent for longer, it counts as gone.
    pub lease_ms: i64,
    /// Only these tenants; empty = all.
    pub tenants: Vec<String>,
    /// The actions that it can run.
    pub actions: Vec<String>,
    /// Of tasks that belong to a pack, only those of these packs.
    pub packs: Vec<String>,
    /// When it started, by the database's clock.
    pub started_at: Millis,
    /// Its last beat, by the database's clock.
    pub beat_at: Millis,
    /// How it is.
    pub standing: Standing,
}

/// How a node is, as it says itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Standing {
    /// It takes nothing new and is about to end.
    pub draining: bool,
    /// Chunks under way.
    pub running: i64,
    /// Chunks that it claimed since its start.
    pub claimed: i64,
    /// Chunks that it brought to an end since its start.
    pub executed: i64,
    /// When it last claimed something, by its own clock.
    pub last_claim_at: Option<Millis>,
    /// The last claim that failed.
    pub last_claim_error: Option<Fault>,
    /// Its loops.
    pub loops: Vec<LoopHealth>,
    /// `off`, `ok`, `down` or `refused`.
    pub redis: String,
    /// What wakes it for work of others: `redis`, `listen`, `poll` or `local`.
    pub wake: String,
}

/// Something that went wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fault {
    /// When, by the clock of the node.
    pub at: Millis,
    /// What, at most [`FAULT_CHARS`] characters.
    pub message: String,
}

/// A loop of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LoopHealth {
    /// `claim`, `heartbeat` or `sweep`.
    pub name: String,
    /// It turned as often as it should.
    pub ok: bool,
    /// When it last began a turn, by the clock of the node.
    pub turned_at: Option<Millis>,
    /// How often it broke down and was started again.
    pub breakdowns: i64,
}

impl Node {
    /// Whether it was silent for so long that it holds no lease any more. `now` is the database's.
    #[must_use]
    pub fn is_stale(&self, now: Millis) -> bool {
        now.since(self.beat_at) > self.lease_ms
    }

    /// Whether it could run the next chunk of a task.
    #[must_use]
    pub fn can_run(&self, task: &Task) -> bool {
        let has = |list: &[String], one: &String| list.contains(one);
        !self.standing.draining
            && has(&self.actions, &task.action)
            && (self.tenants.is_empty() || has(&self.tenants, &task.tenant))
            && task.pack.as_ref().is_none_or(|pack| has(&self.packs, pack))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> Node {
        Node {
            id: "a".into(),
            role: "all".into(),
            version: "0.1.0".into(),
            parallelism: 4,
            lease_ms: 30_000,
            tenants: Vec::new(),
            actions: vec!["import".into()],
            packs: vec!["month-end".into()],
            started_at: Millis(0),
            beat_at: Millis(1_000),
            standing: Standing::default(),
        }
    }

    #[test]
    fn a_node_is_stale_once_its_leases_have_ended() {
        assert!(!node().is_stale(Millis(31_000)));
        assert!(node().is_stale(Millis(31_001)));
        assert!(!node().is_stale(Millis(0)), "a beat of a moment later is no silence");
    }

    #[test]
    fn what_a_newer_version_tells_of_a_node_is_passed_over() {
        let told = r#"{"running":2,"mood":"fine","loops":[{"name":"claim","ok":true,"pace":7}],"redis":"ok"}"#;
        let standing: Standing = serde_json::from_str(told).unwrap();
        assert_eq!((standing.running, standing.loops.len(), standing.draining), (2, 1, false));
        assert_eq!(serde_json::from_str::<Standing>("{}").unwrap(), Standing::default());
    }
}
