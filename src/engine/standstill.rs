//! Looks for nodes that stand still in the middle of a transaction, and has the database server end what they have open: their
//! locks hold up the sweep that would take their work over, and the work of everybody who shares an owner with it.
//!
//! A loop of its own, for the sweep may be the one that waits. It decides nothing about a task: whose transaction was ended
//! never wrote, and is fenced off by the token of the next claim. Where the database user may not end sessions, the server's
//! own limit for silent transactions is what is left, and it is said once.

use super::measure;
use crate::core::metric;
use crate::store::Store;
use std::time::Duration;

/// Looks again and again; a node is silent that has asked nothing for a lease.
pub(super) async fn end_still(every: Duration, lease_ms: i64, store: &dyn Store) {
    let mut told = false;
    loop {
        tokio::time::sleep(every).await;
        match store.end_still(lease_ms).await {
            Ok(nodes) => {
                told = false;
                for node in nodes {
                    let (node, sessions) = (node.node, node.sessions);
                    tracing::warn!(node, sessions, "ended the transactions of a node that stands still");
                    measure::more(metric::SESSIONS_ENDED, usize::try_from(sessions).unwrap_or_default());
                }
            }
            Err(e) if !std::mem::replace(&mut told, true) => {
                tracing::warn!(error = %e, "a node that stands still in a transaction cannot be told from others, or not be ended; the database server does it after some seconds");
            }
            Err(_) => {}
        }
    }
}
