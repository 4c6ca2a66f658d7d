//! What the database keeps of packs: which there are, and which are switched off. Every node and every restart reads it from
//! here; what a pack holds is read from its folder by each node.

use crate::core::time::Millis;

/// A pack as the database knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackRow {
    /// Its name.
    pub name: String,
    /// The version that was loaded last, on any node.
    pub version: String,
    /// At most one chunk of it runs at any instant.
    pub serial: bool,
    /// Switched off: no chunk of it starts.
    pub paused: bool,
    /// When it was switched last.
    pub changed_at: Option<Millis>,
    /// By whom.
    pub changed_by: Option<String>,
}

/// A pack that a node has loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackLoaded {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// At most one chunk of it runs at any instant.
    pub serial: bool,
}

/// Switches a pack on or off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackSwitch {
    /// Its name.
    pub name: String,
    /// Off.
    pub paused: bool,
    /// Who asks.
    pub by: String,
}

/// A pack with what waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackStanding {
    /// The pack.
    pub row: PackRow,
    /// Unfinished tasks of it without a chunk under way.
    pub waiting: i64,
}
