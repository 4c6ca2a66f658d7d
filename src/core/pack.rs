//! A pack: a folder of scripts with a manifest that says what they may do. What the loader read, as everybody else sees it.
//!
//! A [`Pack`] never changes: a folder that changed becomes another value, and whoever holds the older one (a running chunk)
//! ends on it. What handlers of a pack may do is in here alone, never in the rights of whoever clicked.

use super::time::Millis;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// A right that a manifest asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// `tasks:submit`: its scripts may submit children.
    SubmitTasks,
}

/// What a column of a pack's table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Characters.
    Text,
    /// A whole number of 64 bits.
    Integer,
    /// A number with a fraction.
    Number,
    /// True or false.
    Boolean,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// A plain identifier.
    pub name: String,
    /// What it holds.
    pub kind: ColumnKind,
}

/// A table that the pack's scripts may read and write, in the pack's own database. Names are plain identifiers of at most 63
/// characters, so that they can stand in a statement between quotes; they come from the manifest and from nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// The column that identifies a row; one of `columns`.
    pub key: String,
    /// In the order of the manifest.
    pub columns: Vec<Column>,
    /// Columns that no two rows share the values of; the key is unique without being listed.
    pub unique: Vec<Vec<String>>,
}

impl Table {
    /// A column of it.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }
}

/// A script of a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Its path from the pack's folder, such as `import/rows.js`; what it is called in messages.
    pub file: String,
    /// Its text, as it was when the pack was read.
    pub source: String,
}

/// A pack, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pack {
    /// `[a-z0-9][a-z0-9._-]{0,63}`, the name of its folder.
    pub name: String,
    /// What its makers call this state of it, 1 to 64 characters.
    pub version: String,
    /// What its scripts may do beside computing.
    pub permissions: Vec<Permission>,
    /// Hosts, or host:port, that its scripts may fetch from, of those that `outbound.allow` lists.
    pub hosts: Vec<String>,
    /// At most one chunk of the pack runs at any instant, on any node.
    pub serial: bool,
    /// Its tables; names are unique.
    pub tables: Vec<Table>,
    /// Its scripts by their keys: the path of the file from the folder, without `.js`.
    pub scripts: BTreeMap<String, Script>,
}

impl Pack {
    /// Whether the manifest asks for a right.
    #[must_use]
    pub fn may(&self, permission: Permission) -> bool {
        self.permissions.contains(&permission)
    }

    /// A table that the manifest names.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// The key of the script in a file, given by its path from the folder.
    #[must_use]
    pub fn key_of(file: &str) -> &str {
        file.strip_suffix(".js").unwrap_or(file)
    }
}

/// One fault of a pack's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackFault {
    /// The file, from the folder of packs: `import/pack.toml`.
    pub file: String,
    /// Its line, from 1, where that is known.
    pub line: Option<usize>,
    /// What is wrong; begins with the key of the manifest where it is about one. Never a line of the file.
    pub reason: String,
}

impl PackFault {
    /// A fault of a file as a whole.
    #[must_use]
    pub fn of_file(file: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, reason: reason.into() }
    }
}

impl fmt::Display for PackFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.reason),
            None => write!(f, "{}: {}", self.file, self.reason),
        }
    }
}

/// How a node stands to the folder of a pack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackSeen {
    /// The version that this node runs.
    pub loaded: Option<String>,
    /// Why the folder as it is now is not what runs: the faults, and when they were met. Empty when it is.
    pub faults: Vec<PackFault>,
    /// When the folder was read last.
    pub at: Option<Millis>,
}

/// What a node has seen of the folders of packs, by their names: written by whoever loads them, read by whoever tells it.
#[derive(Clone, Debug, Default)]
pub struct PackBoard(Arc<RwLock<BTreeMap<String, PackSeen>>>);

impl PackBoard {
    /// Writes what was seen of a folder; none: it is gone.
    pub fn set(&self, name: &str, seen: Option<PackSeen>) {
        let mut board = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match seen {
            Some(seen) => board.insert(name.to_owned(), seen),
            None => board.remove(name),
        };
    }

    /// All that was seen.
    #[must_use]
    pub fn all(&self) -> BTreeMap<String, PackSeen> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
