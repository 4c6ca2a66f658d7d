//! The registry of nodes in a database.

use super::super::nodes::{NodeList, Nodes, Still};
use super::super::retry::until_settled;
use super::super::row::{Columns, from_json};
use super::super::value::values;
use super::super::{Result, StoreError};
use super::SqlStore;
use super::driver::{Driver, Session as _};
use crate::core::node::{Node, SHOWN_MS};
use crate::core::time::Millis;
use async_trait::async_trait;
use serde::Serialize;

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("our own types are plain data")
}

fn node(r: &mut impl Columns) -> Result<Node> {
    let mut text = || r.text().map(Option::unwrap_or_default);
    let (id, role, version) = (text()?, text()?, text()?);
    let mut int = || r.int().map(Option::unwrap_or_default);
    let (parallelism, lease_ms) = (int()?, int()?);
    let mut text = || r.text().map(Option::unwrap_or_default);
    let (tenants, actions, packs) = (text()?, text()?, text()?);
    let mut int = || r.int().map(|at| Millis(at.unwrap_or_default()));
    let (started_at, beat_at) = (int()?, int()?);
    let standing = r.text()?.unwrap_or_default();
    Ok(Node {
        id,
        role,
        version,
        parallelism,
        lease_ms,
        tenants: from_json(&tenants, "tenants")?,
        actions: from_json(&actions, "actions")?,
        packs: from_json(&packs, "packs")?,
        started_at,
        beat_at,
        // What a newer version says of itself in another way is not understood; that it is there still is.
        standing: serde_json::from_str(&standing).unwrap_or_default(),
    })
}

impl<D: Driver> SqlStore<D> {
    async fn beat_once(&self, node: &Node) -> Result<Millis> {
        let s = self.driver.statements();
        let mut session = self.driver.begin().await?;
        let now = session.now().await?;
        let row = values![
            node.id.as_str(),
            node.role.as_str(),
            node.version.as_str(),
            node.parallelism,
            node.lease_ms,
            json(&node.tenants),
            json(&node.actions),
            json(&node.packs),
            now,
            now,
            json(&node.standing),
        ];
        session.run(&s.put_node, row).await?;
        let alone = i64::from(self.driver.capabilities().single_process);
        session.run(&s.prune_nodes, values![node.id.as_str(), alone, now.plus(-SHOWN_MS)]).await?;
        session.commit().await?;
        Ok(now)
    }
}

#[async_trait]
impl<D: Driver> Nodes for SqlStore<D> {
    async fn beat(&self, node: &Node) -> Result<Millis> {
        until_settled!(budget, self.beat_once(node).await)
    }

    async fn leave(&self, id: &str) -> Result<()> {
        self.write(&self.driver.statements().remove_node, values![id]).await.map(drop)
    }

    async fn nodes(&self) -> Result<NodeList> {
        let mut rows = self.driver.rows(&self.driver.statements().nodes, values![]).await?;
        let mut nodes = Vec::with_capacity(rows.len());
        for r in &mut rows {
            match node(r) {
                Ok(node) => nodes.push(node),
                // Of a newer version, which tells it in another way.
                Err(StoreError::Corrupt(reason)) => tracing::debug!("a node is left out: {reason}"),
                Err(other) => return Err(other),
            }
        }
        Ok(NodeList { nodes, as_of: self.driver.now().await? })
    }

    async fn end_still(&self, silent_ms: i64) -> Result<Vec<Still>> {
        self.driver.end_still(silent_ms).await
    }

    async fn analyze_grown(&self) -> Result<Vec<String>> {
        self.driver.analyze_grown().await
    }
}
