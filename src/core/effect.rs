//! Bound statements on business tables in taskbell's own database: what a handler puts into the commit of its chunk.
//!
//! The text is static, so nothing of a request can become part of it.

/// A value bound to a statement of [`Effect`], or read from a business table.
#[derive(Clone, Debug, PartialEq)]
pub enum SqlValue {
    /// NULL.
    Null,
    /// A whole number.
    Int(i64),
    /// A fraction.
    Real(f64),
    /// A text.
    Text(String),
}

impl From<i64> for SqlValue {
    fn from(v: i64) -> Self {
        Self::Int(v)
    }
}

impl From<f64> for SqlValue {
    fn from(v: f64) -> Self {
        Self::Real(v)
    }
}

impl From<&str> for SqlValue {
    fn from(v: &str) -> Self {
        Self::Text(v.to_owned())
    }
}

impl From<String> for SqlValue {
    fn from(v: String) -> Self {
        Self::Text(v)
    }
}

/// One bound statement on business tables in taskbell's own database.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// The statement, with `$1`, `$2` … for its values. Static: nothing of a request can become part of it.
    pub sql: &'static str,
    /// The values, one list a run of the statement.
    pub rows: Vec<Vec<SqlValue>>,
}
