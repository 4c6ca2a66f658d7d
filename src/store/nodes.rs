//! The registry of nodes. A part of the port.
//!
//! Must never decide about a task or a lease: it is what nodes say of themselves. The database's clock says when they said it.
//!
//! A database server knows nodes by their sessions, too. One that stands still in the middle of a transaction keeps its locks,
//! and so holds up those who would take its work over; they may have the server end what it has left open.

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

/// A node that stood still, and what it had open at the database server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Still {
    /// The node's name, as far as the server keeps it.
    pub node: String,
    /// How many sessions were ended.
    pub sessions: i64,
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
    /// Ends the transactions of nodes that have asked nothing of the database server for so long, ms, while one of these waits
    /// for its node. Whoever lives on is told that the connection was lost, and tries again. Where one process owns the
    /// database there are no others.
    async fn end_still(&self, _silent_ms: i64) -> Result<Vec<Still>> {
        Ok(Vec::new())
    }
    /// Has the database server count the tables that have more than doubled since it last did, so that it plans for what is
    /// there; their names. Only where plans follow from the count.
    async fn analyze_grown(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}
