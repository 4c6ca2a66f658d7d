//! What nodes hold when they have nothing to do (invariant 12): handles, sockets, places of chunks, memory, connections. The limits
//! are far above what an idle node may hold: each kill, cut or task that leaves one of them behind comes to more.

use super::PATIENCE;
use super::nodes::Nodes;
use crate::support::eventually;

/// Handles above those at the start that a node may keep: its pools are full by then, and files stay open.
const MORE_HANDLES: usize = 64;
/// Connections that a node may keep to a database server: two pools and who listens.
const CONNECTIONS: i64 = 16;
/// Memory that a node may have, bytes.
const MOST_BYTES: u64 = 400 << 20;

/// What nodes held at the start.
pub struct Base(Vec<usize>);

impl Base {
    /// Looks at nodes that have done nothing yet.
    pub async fn of(nodes: &Nodes) -> Self {
        Self(handles(nodes).await)
    }

    /// Waits until they hold no more than that again, when nothing is left to do.
    pub async fn is_reached(&self, nodes: &Nodes) {
        eventually("nodes without work hold nothing", PATIENCE, async || {
            let idle = nodes.metrics().await.iter().all(|text| {
                let zero = |name: &str| !text.lines().any(|l| l.starts_with(name) && !l.ends_with(" 0"));
                zero("taskbell_running_chunks") && zero("taskbell_sockets") && zero("taskbell_worker_polls")
            });
            let now = handles(nodes).await;
            let handles = now.iter().zip(&self.0).all(|(now, base)| *now <= base + MORE_HANDLES);
            let memory = nodes.memory().await.iter().all(|bytes| *bytes <= MOST_BYTES);
            let connections = connections(nodes).await <= CONNECTIONS * nodes.servers.len() as i64;
            (idle && handles && memory && connections).then_some(())
        })
        .await;
    }
}

/// Open handles of each node.
async fn handles(nodes: &Nodes) -> Vec<usize> {
    let mut counts = Vec::new();
    for server in &nodes.servers {
        let folder = format!("/proc/{}/fd", server.lock().await.pid());
        counts.push(std::fs::read_dir(folder).unwrap().count());
    }
    counts
}

/// Connections of all nodes together, where the database is a server.
async fn connections(nodes: &Nodes) -> i64 {
    let held = "SELECT COUNT(*) FROM pg_stat_activity \
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
    if nodes.ground.database().is_none() { 0 } else { nodes.numbers(held).await[0] }
}
