//! Migrations: numbered texts, the same numbers and names for all databases, each applied once and remembered with its
//! checksum. Each step is one transaction; two processes that migrate at once do not hurt each other.
//!
//! # Two versions on one database
//! While nodes are replaced one by one, the version before runs on the schema of the new one. So a migration *expands*: it adds
//! tables, indexes, and columns that may be empty or have a default, and takes nothing away that the version before uses. What
//! is not used by anybody any more is taken away a version later by a migration that *contracts*, whose text begins with
//! [`CONTRACTS`]. A database with migrations that this version does not know was made by a newer one: as long as they expand, this
//! version works with it; where one contracts, it is refused in words. A test holds each text against this rule.

use super::{Result, StoreError};
use async_trait::async_trait;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// Whether to change the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Bring it up to date.
    #[default]
    Apply,
    /// Refuse when it is behind.
    Check,
}

/// A step of a migration, before it runs: (i of n, its name). `i` = `n` + 1 never comes.
pub type Told<'a> = dyn FnMut(usize, usize, &str) + Send + 'a;

/// One numbered step.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// Its number, from 1, without gaps.
    pub number: i64,
    /// Its name.
    pub name: &'static str,
    /// Its statements.
    pub text: &'static str,
}

impl Migration {
    /// SHA-256 of the text, hex; of one that contracts, its beginning behind a word that says so.
    #[must_use]
    pub fn checksum(&self) -> String {
        let mut sum = hex::encode(Sha256::digest(self.text.as_bytes()));
        if self.contracts() {
            sum.insert_str(0, CONTRACTED);
            sum.truncate(CHECKSUM_CHARS);
        }
        sum
    }

    /// Whether a version that does not know it cannot work with what it leaves.
    #[must_use]
    pub fn contracts(&self) -> bool {
        self.text.starts_with(CONTRACTS)
    }
}

/// How the text of a migration begins that takes something away which an older version uses.
pub const CONTRACTS: &str = "-- Contracts:";
/// How the checksum of such a one begins, so that a version that has not got its text knows.
const CONTRACTED: &str = "contract:";
/// Characters of a checksum.
const CHECKSUM_CHARS: usize = 64;

const SQLITE: &[Migration] = &[
    Migration { number: 1, name: "tasks", text: include_str!("../../migrations/sqlite/0001_tasks.sql") },
    Migration { number: 2, name: "users", text: include_str!("../../migrations/sqlite/0002_users.sql") },
    Migration { number: 3, name: "pictures", text: include_str!("../../migrations/sqlite/0003_pictures.sql") },
    Migration { number: 4, name: "change_log", text: include_str!("../../migrations/sqlite/0004_change_log.sql") },
    Migration { number: 5, name: "children", text: include_str!("../../migrations/sqlite/0005_children.sql") },
    Migration { number: 6, name: "packs", text: include_str!("../../migrations/sqlite/0006_packs.sql") },
    Migration { number: 7, name: "workers", text: include_str!("../../migrations/sqlite/0007_workers.sql") },
    Migration { number: 8, name: "nodes", text: include_str!("../../migrations/sqlite/0008_nodes.sql") },
    Migration { number: 9, name: "in_place", text: include_str!("../../migrations/sqlite/0009_in_place.sql") },
    Migration { number: 10, name: "vacuum", text: include_str!("../../migrations/sqlite/0010_vacuum.sql") },
    Migration { number: 11, name: "families", text: include_str!("../../migrations/sqlite/0011_families.sql") },
];
const POSTGRES: &[Migration] = &[
    Migration { number: 1, name: "tasks", text: include_str!("../../migrations/postgres/0001_tasks.sql") },
    Migration { number: 2, name: "users", text: include_str!("../../migrations/postgres/0002_users.sql") },
    Migration { number: 3, name: "pictures", text: include_str!("../../migrations/postgres/0003_pictures.sql") },
    Migration { number: 4, name: "change_log", text: include_str!("../../migrations/postgres/0004_change_log.sql") },
    Migration { number: 5, name: "children", text: include_str!("../../migrations/postgres/0005_children.sql") },
    Migration { number: 6, name: "packs", text: include_str!("../../migrations/postgres/0006_packs.sql") },
    Migration { number: 7, name: "workers", text: include_str!("../../migrations/postgres/0007_workers.sql") },
    Migration { number: 8, name: "nodes", text: include_str!("../../migrations/postgres/0008_nodes.sql") },
    Migration { number: 9, name: "in_place", text: include_str!("../../migrations/postgres/0009_in_place.sql") },
    Migration { number: 10, name: "vacuum", text: include_str!("../../migrations/postgres/0010_vacuum.sql") },
    Migration { number: 11, name: "families", text: include_str!("../../migrations/postgres/0011_families.sql") },
];
const POSTGRES_LOGS: &[Migration] =
    &[Migration { number: 1, name: "logs", text: include_str!("../../migrations/postgres-logs/0001_logs.sql") }];

/// A database that can be migrated.
#[async_trait]
pub(super) trait Target: Send {
    /// What was applied: number and checksum. Makes the table that remembers it.
    async fn applied(&mut self) -> Result<Vec<(i64, String)>>;
    /// Applies one step, unless another process has done so meanwhile.
    async fn apply(&mut self, migration: &Migration) -> Result<()>;
}

/// The migrations of a database, and the table that remembers which were applied.
#[derive(Clone, Copy)]
pub struct Migrations {
    steps: &'static [Migration],
    table: &'static str,
}

impl Migrations {
    /// Those of a SQLite file.
    #[must_use]
    pub fn of_sqlite() -> Self {
        Self { steps: SQLITE, table: "taskbell_migrations" }
    }

    /// Those of a PostgreSQL database.
    #[must_use]
    pub fn of_postgres() -> Self {
        Self { steps: POSTGRES, table: "taskbell_migrations" }
    }

    /// Those of task logs in a PostgreSQL database, which may be the same one.
    #[must_use]
    pub fn of_postgres_logs() -> Self {
        Self { steps: POSTGRES_LOGS, table: "taskbell_log_migrations" }
    }

    /// The steps, in order.
    #[must_use]
    pub fn steps(&self) -> &'static [Migration] {
        self.steps
    }

    pub(super) fn table(&self) -> &'static str {
        self.table
    }

    pub(super) fn create_table(&self) -> String {
        format!(
            "CREATE TABLE IF NOT EXISTS {} (number BIGINT NOT NULL PRIMARY KEY, checksum VARCHAR(64) NOT NULL)",
            self.table
        )
    }

    pub(super) fn applied(&self) -> String {
        format!("SELECT number, checksum FROM {} ORDER BY number", self.table)
    }

    pub(super) fn is_applied(&self) -> String {
        format!("SELECT number FROM {} WHERE number = $1", self.table)
    }

    pub(super) fn record(&self) -> String {
        format!("INSERT INTO {} (number, checksum) VALUES ($1, $2)", self.table)
    }

    /// The names of all indexes that the steps leave.
    pub(super) fn indexes(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for line in self.steps.iter().flat_map(|step| step.text.lines()) {
            let words: Vec<&str> = line.trim_end_matches(';').split_whitespace().collect();
            match words[..] {
                ["CREATE", "INDEX", name, ..] | ["CREATE", "UNIQUE", "INDEX", name, ..] => {
                    names.insert(name.to_owned());
                }
                ["DROP", "INDEX", name] => {
                    names.remove(name);
                }
                _ => {}
            }
        }
        names
    }

    /// The steps that a database lacks which has applied these; or why this version cannot work with it.
    pub(super) fn judge(&self, applied: &[(i64, String)]) -> Result<Vec<&'static Migration>> {
        for (number, checksum) in applied {
            match self.steps.iter().find(|m| m.number == *number) {
                None if checksum.starts_with(CONTRACTED) => {
                    return Err(StoreError::Unavailable(format!(
                        "the database has migration {number}, after which this version cannot use it any more: a newer taskbell made it"
                    )));
                }
                Some(m) if m.checksum() != *checksum => {
                    return Err(StoreError::Unavailable(format!(
                        "migration {number} ({}) was applied with another text than this version carries",
                        m.name
                    )));
                }
                Some(_) | None => {}
            }
        }
        Ok(self.steps.iter().filter(|m| !applied.iter().any(|(n, _)| *n == m.number)).collect())
    }

    pub(super) async fn run(&self, target: &mut dyn Target, mode: Mode, told: &mut Told<'_>) -> Result<()> {
        let applied = target.applied().await?;
        for (number, _) in applied.iter().filter(|(n, _)| !self.steps.iter().any(|m| m.number == *n)) {
            tracing::info!("the database has migration {number} of a newer version");
        }
        let pending = self.judge(&applied)?;
        if mode == Mode::Check && !pending.is_empty() {
            return Err(StoreError::Unavailable(format!(
                "the database is {} step(s) behind this version: run `taskbell migrate`, or set database.migrate = \"auto\"",
                pending.len()
            )));
        }
        let count = pending.len();
        for (i, migration) in pending.into_iter().enumerate() {
            told(i + 1, count, migration.name);
            target.apply(migration).await?;
        }
        Ok(())
    }
}
