//! The statements over task logs: `sql/logs/` where all databases take the same text, `sql/logs/<db>/` where they do not.

use crate::store::sql::{Dialect, IN_POSTGRES, IN_SQLITE};
use std::sync::LazyLock;

/// The statements of one database; each text opens with its purpose.
pub struct LogStatements {
    pub(super) drop_head: String,
    pub(super) drop_lines: String,
    pub(super) head: String,
    pub(super) heads: String,
    pub(super) lines_after: String,
    pub(super) lines_before: String,
    pub(super) oldest: String,
    pub(super) put_heads: String,
    pub(super) put_lines: String,
    pub(super) put_tenants: String,
    pub(super) tenants: String,
}

macro_rules! own {
    ($db:literal, $name:literal) => {
        include_str!(concat!("../sql/logs/", $db, "/", $name, ".sql"))
    };
}

/// SQLite's.
pub static SQLITE: LazyLock<LogStatements> = LazyLock::new(|| {
    let own = [own!("sqlite", "put_heads"), own!("sqlite", "put_lines"), own!("sqlite", "put_tenants")];
    LogStatements::of(&IN_SQLITE, own)
});

/// PostgreSQL's.
pub static POSTGRES: LazyLock<LogStatements> = LazyLock::new(|| {
    let own = [own!("postgres", "put_heads"), own!("postgres", "put_lines"), own!("postgres", "put_tenants")];
    LogStatements::of(&IN_POSTGRES, own)
});

impl LogStatements {
    fn of(dialect: &Dialect, own: [&str; 3]) -> Self {
        let [put_heads, put_lines, put_tenants] = own.map(|text| dialect.fill(text));
        Self {
            drop_head: dialect.fill(include_str!("../sql/logs/drop_head.sql")),
            drop_lines: dialect.fill(include_str!("../sql/logs/drop_lines.sql")),
            head: dialect.fill(include_str!("../sql/logs/head.sql")),
            heads: dialect.fill(include_str!("../sql/logs/heads.sql")),
            lines_after: dialect.fill(include_str!("../sql/logs/lines_after.sql")),
            lines_before: dialect.fill(include_str!("../sql/logs/lines_before.sql")),
            oldest: dialect.fill(include_str!("../sql/logs/oldest.sql")),
            put_heads,
            put_lines,
            put_tenants,
            tenants: dialect.fill(include_str!("../sql/logs/tenants.sql")),
        }
    }

    /// All of them with their names, for the test that prepares each.
    #[must_use]
    pub fn all(&self) -> Vec<(&'static str, &str)> {
        vec![
            ("drop_head", &self.drop_head),
            ("drop_lines", &self.drop_lines),
            ("head", &self.head),
            ("heads", &self.heads),
            ("lines_after", &self.lines_after),
            ("lines_before", &self.lines_before),
            ("oldest", &self.oldest),
            ("put_heads", &self.put_heads),
            ("put_lines", &self.put_lines),
            ("put_tenants", &self.put_tenants),
            ("tenants", &self.tenants),
        ]
    }
}
