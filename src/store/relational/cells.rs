//! A driver's row, read column after column.

use super::super::row::Columns;
use super::super::{Result, StoreError};
use sqlx::{ColumnIndex, Decode, Row, Type};

/// A row and the place in it.
pub struct Cells<R> {
    row: R,
    next: usize,
    fault: fn(sqlx::Error) -> StoreError,
}

impl<R> Cells<R> {
    /// The rows of an answer; `fault` tells what is wrong with one of them.
    pub fn of(rows: Vec<R>, fault: fn(sqlx::Error) -> StoreError) -> Vec<Self> {
        rows.into_iter().map(|row| Self { row, next: 0, fault }).collect()
    }
}

impl<R: Row> Cells<R>
where
    usize: ColumnIndex<R>,
{
    fn next<T>(&mut self) -> Result<T>
    where
        T: for<'r> Decode<'r, R::Database> + Type<R::Database>,
    {
        self.next += 1;
        self.row.try_get(self.next - 1).map_err(self.fault)
    }
}

impl<R: Row> Columns for Cells<R>
where
    usize: ColumnIndex<R>,
    Option<String>: for<'r> Decode<'r, R::Database> + Type<R::Database>,
    Option<i64>: for<'r> Decode<'r, R::Database> + Type<R::Database>,
{
    fn text(&mut self) -> Result<Option<String>> {
        self.next()
    }

    fn int(&mut self) -> Result<Option<i64>> {
        self.next()
    }
}
