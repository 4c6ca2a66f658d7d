//! How the database server knows a node: by the name of its sessions (`application_name`), which lists of sessions show. By
//! it other nodes tell a node that stands still, and have the server end what it has open.
//!
//! A node that is alive asks something at least every heartbeat. One that has asked nothing for a lease while a transaction of
//! its own waits for it holds locks that nobody needs, and all that its other sessions wait for would be held in turn, each
//! until the server's own limit. Must never end anything of a node that speaks, however long one of its transactions takes.

use super::super::relational::driver::Driver as _;
use super::super::row::Columns as _;
use super::super::sql::POSTGRES_OWN;
use super::super::{Result, Still};
use super::PostgresDriver;
use crate::store::value::values as bind;
use std::borrow::Cow;

/// What the sessions of all processes of ours are called, and those of nodes begin with.
const OURS: &str = "taskbell";
/// The longest name that a server keeps, bytes.
const LONGEST: usize = 63;
/// How long a transaction has to wait for its node, ms: longer than a line takes.
const WAITS_MS: i64 = 1_000;

/// The name of the sessions of a node, or of somebody who is none. The end of a node's name is what tells it from others.
pub(super) fn name(node: Option<&str>) -> Cow<'static, str> {
    let Some(node) = node else { return Cow::Borrowed(OURS) };
    let plain = |c: char| if c.is_ascii_graphic() { c } else { '?' };
    let node: Vec<char> = node.chars().map(plain).collect();
    let from = node.len().saturating_sub(LONGEST - OURS.len() - 1);
    Cow::Owned(format!("{OURS} {}", node[from..].iter().collect::<String>()))
}

/// Ends the transactions of nodes that have said nothing for so long.
pub(super) async fn end_still(driver: &PostgresDriver, silent_ms: i64) -> Result<Vec<Still>> {
    let rows = driver.rows(&POSTGRES_OWN.end_still, bind![silent_ms.max(WAITS_MS), WAITS_MS]).await?;
    rows.into_iter()
        .map(|mut r| Ok(Still { node: r.text()?.unwrap_or_default(), sessions: r.int()?.unwrap_or_default() }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_named_after_their_node_in_what_a_server_keeps() {
        assert_eq!(name(None), "taskbell");
        assert_eq!(name(Some("büro:17:00ff")), "taskbell b?ro:17:00ff");
        let long = format!("{}:17:00ff", "machine".repeat(20));
        let kept = name(Some(&long));
        assert!(kept.len() == LONGEST && kept.ends_with("machine:17:00ff"), "{kept}");
    }
}
