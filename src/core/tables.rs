//! What a script may ask of the tables of its pack: one question at a time, checked against the manifest before any
//! database hears of it.
//!
//! A question names tables and columns by reference to the manifest, so nothing that a script wrote can become part of a
//! statement; what it wrote is in [`Cell`]s alone, which are bound. Two ways to write questions exist, that of `V8.FormEngine`
//! ([`form`]) and that of `cx.tables` ([`plain`]); both end in the same [`Ask`].

mod cell;
mod clause;
pub mod form;
pub mod plain;

use super::pack::{Column, Table};
use serde_json::{Map, Value};

/// The most rows that one question may bring; more is refused, never cut in silence.
pub const MAX_ROWS: u32 = 10_000;

/// Why a question was not asked, for the author of the script; names tables, columns and kinds, never values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

impl Refused {
    fn new<T>(why: impl Into<String>) -> Result<T, Self> {
        Err(Self(why.into()))
    }
}

/// A value for a column, already of the column's kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// NULL.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Real(f64),
    /// Characters.
    Text(String),
}

/// How a column is compared with a value that is not NULL. As in SQL, a NULL in the column compares with nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The same.
    Equal,
    /// Another.
    Differs,
    /// Below.
    Less,
    /// Below, or the same.
    AtMost,
    /// Above.
    Greater,
    /// Above, or the same.
    AtLeast,
    /// Fits a pattern of `%` and `_`, with `\` before what is meant as itself; the case of ASCII letters does not count.
    Like,
    /// Does not fit it.
    Unlike,
}

/// Which rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter<'t> {
    /// Those with such a value in a column.
    Compare(&'t Column, Op, Cell),
    /// Those with NULL in a column; with false, those without.
    Null(&'t Column, bool),
    /// Those with one of the values in a column; with false, with none of them. An empty list holds nothing.
    OneOf(&'t Column, Vec<Cell>, bool),
    /// Those of which all is so; of an empty list, every row.
    All(Vec<Filter<'t>>),
    /// Those of which something is so.
    Any(Vec<Filter<'t>>),
}

impl Filter<'_> {
    /// Whether it leaves out no row at all, whatever they hold.
    #[must_use]
    pub fn is_open(&self) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(Self::is_open),
            Self::Any(parts) => parts.iter().any(Self::is_open),
            _ => false,
        }
    }
}

/// A question to one table.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask<'t> {
    /// Which.
    pub table: &'t Table,
    /// What.
    pub act: Act<'t>,
}

/// What is done.
#[derive(Clone, Debug, PartialEq)]
pub enum Act<'t> {
    /// Rows, in an order that is the same each time.
    Read {
        /// What of them.
        columns: Vec<&'t Column>,
        /// Which.
        filter: Filter<'t>,
        /// By which columns, and whether from the last; the key comes after them.
        order: Vec<(&'t Column, bool)>,
        /// At most so many.
        limit: u32,
        /// After so many.
        offset: u64,
    },
    /// How many rows.
    Count(Filter<'t>),
    /// One more row; answers it as it is stored.
    Insert(Vec<(&'t Column, Cell)>),
    /// Other values in some rows; answers how many rows were found.
    Update(Filter<'t>, Vec<(&'t Column, Cell)>),
    /// Fewer rows; answers how many there were.
    Delete(Filter<'t>),
}

impl Act<'_> {
    /// Whether it changes something.
    #[must_use]
    pub fn writes(&self) -> bool {
        matches!(self, Self::Insert(_) | Self::Update(..) | Self::Delete(_))
    }
}

/// A row as scripts see it, by the names of the manifest.
pub type Row = Map<String, Value>;

/// The answer to an [`Ask`].
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// Rows.
    Rows(Vec<Row>),
    /// A number of rows.
    Count(u64),
}

impl Found {
    /// The rows; none for a number.
    #[must_use]
    pub fn rows(self) -> Vec<Row> {
        match self {
            Self::Rows(rows) => rows,
            Self::Count(_) => Vec::new(),
        }
    }

    /// The number of rows.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            Self::Rows(rows) => rows.len() as u64,
            Self::Count(count) => *count,
        }
    }
}

/// A column by the name that a script gave: as it stands in the manifest, or the only one that differs in case alone.
fn column<'t>(table: &'t Table, name: &str) -> Result<&'t Column, Refused> {
    let mut alike = table.columns.iter().filter(|column| column.name.eq_ignore_ascii_case(name));
    let found = table.column(name).or_else(|| alike.next().filter(|_| alike.next().is_none()));
    found.ok_or_else(|| Refused(format!("the manifest names no column {} of the table {}", shown(name), table.name)))
}

/// The column that identifies a row.
fn key(table: &Table) -> Result<&Column, Refused> {
    table.column(&table.key).ok_or_else(|| Refused(format!("the table {} has no key column", table.name)))
}

/// A table by the name that a script gave, as [`column`](fn@column).
fn table<'t>(tables: &'t [Table], name: &str) -> Result<&'t Table, Refused> {
    let mut alike = tables.iter().filter(|table| table.name.eq_ignore_ascii_case(name));
    let found = tables.iter().find(|table| table.name == name);
    let found = found.or_else(|| alike.next().filter(|_| alike.next().is_none()));
    found.ok_or_else(|| Refused(format!("the manifest of the pack names no table {}", shown(name))))
}

/// A name as a script wrote it, short enough for a message.
fn shown(name: &str) -> String {
    let short: String = name.chars().take(64).collect();
    format!("`{short}`")
}

#[cfg(test)]
mod tests;
