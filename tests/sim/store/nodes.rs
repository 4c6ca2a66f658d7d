//! The registry of nodes over the connection, as it is: no node of the simulated world decides anything by it.

use super::FaultyStore;
use async_trait::async_trait;
use taskbell::core::node::Node;
use taskbell::core::time::Millis;
use taskbell::store::{NodeList, Nodes, Result};

#[async_trait]
impl Nodes for FaultyStore {
    async fn beat(&self, node: &Node) -> Result<Millis> {
        self.world.memory.beat(node).await
    }

    async fn leave(&self, id: &str) -> Result<()> {
        self.world.memory.leave(id).await
    }

    async fn nodes(&self) -> Result<NodeList> {
        self.world.memory.nodes().await
    }
}
