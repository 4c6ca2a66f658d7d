//! The registry of nodes. A part of the port.
//!
//! Must never decide about a task or a lease: it is what nodes say of themselves. The database's clock says when they said it.

use super::Result;
use crate::core::node::Node;
use crate::core::time::Millis;
use async_trait::async_trait;

/// The nodes that were heard of within [`crate::core::node::SHOWN_MS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeList {
    /// By id.
    pub nodes: Vec<Node>,
    /// The database's now.
    pub as_of: Millis,
}

impl NodeList {
    /// Those that are not stale.
    pub fn living(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| !node.is_stale(self.as_of))
    }
}

/// Who shares the database.
#[async_trait]
pub trait Nodes {
    /// Writes the row of a node with the database's now as its beat, which is the answer, and as its start where it is new.
    /// Takes away rows of nodes that have been silent for too long; where one process owns the database, those of all others.
    async fn beat(&self, node: &Node) -> Result<Millis>;
    /// Takes the row of a node away.
    async fn leave(&self, id: &str) -> Result<()>;
    /// All rows.
    async fn nodes(&self) -> Result<NodeList>;
}
