//! The registry of nodes in memory.

use super::super::Result;
use super::super::nodes::{NodeList, Nodes};
use super::MemoryStore;
use crate::core::node::Node;
use crate::core::time::Millis;
use async_trait::async_trait;

#[async_trait]
impl Nodes for MemoryStore {
    async fn beat(&self, node: &Node) -> Result<Millis> {
        let now = self.database_now();
        let nodes = &mut self.tables.lock().await.nodes;
        // One process owns it: whoever comes is the only one.
        nodes.retain(|id, _| *id == node.id);
        let started_at = nodes.get(&node.id).map_or(now, |known| known.started_at);
        nodes.insert(node.id.clone(), Node { started_at, beat_at: now, ..node.clone() });
        Ok(now)
    }

    async fn leave(&self, id: &str) -> Result<()> {
        self.tables.lock().await.nodes.remove(id);
        Ok(())
    }

    async fn nodes(&self) -> Result<NodeList> {
        let nodes = self.tables.lock().await.nodes.values().cloned().collect();
        Ok(NodeList { nodes, as_of: self.database_now() })
    }
}
