//! What is bound to statements: single values, lists, and tables of rows. A driver turns them into what its database takes
//! (a JSON array that SQL opens, or an array a column).

use crate::core::ids::TaskId;
use crate::core::time::Millis;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text.
    Text,
    /// A whole number.
    Int,
}

/// A value of a statement.
#[derive(Clone, Debug)]
pub enum Value {
    /// A text.
    Text(Option<String>),
    /// A whole number.
    Int(Option<i64>),
    /// A list of texts.
    Texts(Vec<String>),
    /// Rows.
    Table(Batch),
}

/// The values of a statement, in the order of its placeholders.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::store::value::Value::from($value)),*] };
}

pub(crate) use values;

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<TaskId> for Value {
    fn from(id: TaskId) -> Self {
        Self::Text(Some(id.to_string()))
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(Some(number))
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Self::Int(Some(i64::try_from(count).unwrap_or(i64::MAX)))
    }
}

impl From<Option<i64>> for Value {
    fn from(number: Option<i64>) -> Self {
        Self::Int(number)
    }
}

impl From<Millis> for Value {
    fn from(at: Millis) -> Self {
        Self::Int(Some(at.0))
    }
}

impl From<Option<Millis>> for Value {
    fn from(at: Option<Millis>) -> Self {
        Self::Int(at.map(|m| m.0))
    }
}

impl From<&[TaskId]> for Value {
    fn from(ids: &[TaskId]) -> Self {
        Self::Texts(ids.iter().map(ToString::to_string).collect())
    }
}

impl From<&[String]> for Value {
    fn from(texts: &[String]) -> Self {
        Self::Texts(texts.to_vec())
    }
}

impl<const N: usize> From<[&str; N]> for Value {
    fn from(texts: [&str; N]) -> Self {
        Self::Texts(texts.map(str::to_owned).to_vec())
    }
}

impl From<Vec<&str>> for Value {
    fn from(texts: Vec<&str>) -> Self {
        Self::Texts(texts.into_iter().map(str::to_owned).collect())
    }
}

impl From<Batch> for Value {
    fn from(batch: Batch) -> Self {
        Self::Table(batch)
    }
}

/// A column of a batch.
#[derive(Clone, Debug)]
pub enum Column {
    /// Texts.
    Text(Vec<Option<String>>),
    /// Whole numbers.
    Int(Vec<Option<i64>>),
}

/// Rows, column by column.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    columns: Vec<Column>,
    next: usize,
    rows: usize,
}

impl Batch {
    /// A row for each item; `encode` writes its columns, the same ones in the same order for each.
    pub fn of<T>(items: impl IntoIterator<Item = T>, encode: impl Fn(T, &mut Self)) -> Self {
        let mut batch = Self::default();
        for item in items {
            batch.next = 0;
            encode(item, &mut batch);
            batch.rows += 1;
        }
        batch
    }

    fn column(&mut self, kind: Kind) -> &mut Column {
        if self.next == self.columns.len() {
            self.columns.push(match kind {
                Kind::Text => Column::Text(Vec::new()),
                Kind::Int => Column::Int(Vec::new()),
            });
        }
        self.next += 1;
        &mut self.columns[self.next - 1]
    }

    /// The next column of the row is a text.
    pub fn text(&mut self, value: Option<&str>) {
        match self.column(Kind::Text) {
            Column::Text(texts) => texts.push(value.map(str::to_owned)),
            Column::Int(_) => unreachable!("a column has one kind in all rows"),
        }
    }

    /// The next column of the row is a whole number.
    pub fn int(&mut self, value: Option<i64>) {
        match self.column(Kind::Int) {
            Column::Int(numbers) => numbers.push(value),
            Column::Text(_) => unreachable!("a column has one kind in all rows"),
        }
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Its columns.
    pub fn into_columns(self) -> Vec<Column> {
        self.columns
    }

    /// It without the columns that need not be there, if that is so of all that `leave` says something of; itself otherwise.
    pub fn without(mut self, leave: impl Fn(usize, &Column) -> Option<bool>) -> Result<Self, Self> {
        let verdicts: Vec<_> = self.columns.iter().enumerate().map(|(n, column)| leave(n, column)).collect();
        if verdicts.contains(&Some(false)) {
            return Err(self);
        }
        let mut verdicts = verdicts.into_iter();
        self.columns.retain(|_| verdicts.next().is_some_and(|verdict| verdict.is_none()));
        Ok(self)
    }

    /// The columns, to take values out row by row.
    pub fn columns_mut(&mut self) -> &mut [Column] {
        &mut self.columns
    }
}
