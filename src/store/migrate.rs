//! Migrations: numbered texts, the same numbers and names for all databases, each applied once and remembered with its
//! checksum. Each step is one transaction; two processes that migrate at once do not hurt each other.
//!
//! A database with migrations that this version does not know was made by a newer version; it is refused in words.

use super::{Result, StoreError};
use async_trait::async_trait;
use sha2::{Digest, Sha256};

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
}

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
    /// SHA-256 of the text, hex.
    #[must_use]
    pub fn checksum(&self) -> String {
        hex::encode(Sha256::digest(self.text.as_bytes()))
    }
}

/// Remembers what was applied.
pub(super) const CREATE_TABLE: &str = "CREATE TABLE IF NOT EXISTS taskbell_migrations \
     (number BIGINT NOT NULL PRIMARY KEY, checksum VARCHAR(64) NOT NULL)";
pub(super) const APPLIED: &str = "SELECT number, checksum FROM taskbell_migrations ORDER BY number";
pub(super) const IS_APPLIED: &str = "SELECT number FROM taskbell_migrations WHERE number = $1";
pub(super) const RECORD: &str = "INSERT INTO taskbell_migrations (number, checksum) VALUES ($1, $2)";

const SQLITE: &[Migration] =
    &[Migration { number: 1, name: "tasks", text: include_str!("../../migrations/sqlite/0001_tasks.sql") }];

/// A database that can be migrated.
#[async_trait]
pub(super) trait Target: Send {
    /// What was applied: number and checksum. Makes the table that remembers it.
    async fn applied(&mut self) -> Result<Vec<(i64, String)>>;
    /// Applies one step, unless another process has done so meanwhile.
    async fn apply(&mut self, migration: &Migration) -> Result<()>;
}

/// The migrations of a database.
pub struct Migrations(&'static [Migration]);

impl Migrations {
    /// Those of a dialect.
    #[must_use]
    pub fn of(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Sqlite => Self(SQLITE),
        }
    }

    pub(super) async fn run(&self, target: &mut dyn Target, mode: Mode, told: &mut Told<'_>) -> Result<()> {
        let applied = target.applied().await?;
        for (number, checksum) in &applied {
            match self.0.iter().find(|m| m.number == *number) {
                None => {
                    return Err(StoreError::Corrupt(format!(
                        "the database has migration {number}, which this version does not know: a newer taskbell made it"
                    )));
                }
                Some(m) if m.checksum() != *checksum => {
                    return Err(StoreError::Corrupt(format!(
                        "migration {number} ({}) was applied with another text than this version carries",
                        m.name
                    )));
                }
                Some(_) => {}
            }
        }
        let pending: Vec<&Migration> = self.0.iter().filter(|m| !applied.iter().any(|(n, _)| *n == m.number)).collect();
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
