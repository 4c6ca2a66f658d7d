//! Values into SQLite's statements and out of its rows. A list is bound as a JSON array, a table as an array of arrays, which
//! the statement opens by `json_each`.

use super::super::value::{Batch, Column, Value};
use super::{Result, fault};
use crate::core::effect::SqlValue;
use serde_json::json;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments as _, Column as _, Encode, Row as _, Sqlite, Type, TypeInfo as _, ValueRef as _};
use std::ops::Range;

fn add<'v>(to: &mut SqliteArguments, value: impl Encode<'v, Sqlite> + Type<Sqlite>) {
    to.add(value).expect("a text or a number can always be bound");
}

/// The values of a statement.
pub(super) fn bound(values: Vec<Value>) -> SqliteArguments {
    let mut bound = SqliteArguments::default();
    for value in values {
        match value {
            Value::Text(text) => add(&mut bound, text),
            Value::Int(number) => add(&mut bound, number),
            Value::Texts(texts) => add(&mut bound, json!(texts).to_string()),
            Value::Table(batch) => add(&mut bound, json_rows(batch)),
        }
    }
    bound
}

fn json_rows(batch: Batch) -> String {
    let rows = batch.rows();
    let columns = batch.into_columns();
    let cell = |column: &Column, i: usize| match column {
        Column::Text(texts) => json!(texts[i]),
        Column::Int(numbers) => json!(numbers[i]),
    };
    let rows = (0..rows).map(|i| columns.iter().map(|c| cell(c, i)).collect());
    serde_json::Value::Array(rows.collect()).to_string()
}

/// Some rows of a batch, value by value.
pub(super) fn of_rows(batch: &mut Batch, rows: Range<usize>) -> SqliteArguments {
    let mut bound = SqliteArguments::default();
    for i in rows {
        for column in batch.columns_mut() {
            match column {
                Column::Text(texts) => add(&mut bound, texts[i].take()),
                Column::Int(numbers) => add(&mut bound, numbers[i]),
            }
        }
    }
    bound
}

/// The values of a business statement.
pub(super) fn of_business(values: &[SqlValue]) -> SqliteArguments {
    let mut bound = SqliteArguments::default();
    for value in values {
        match value {
            SqlValue::Null => add(&mut bound, None::<String>),
            SqlValue::Int(number) => add(&mut bound, *number),
            SqlValue::Real(fraction) => add(&mut bound, *fraction),
            SqlValue::Text(text) => add(&mut bound, text.clone()),
        }
    }
    bound
}

/// The values of a business row.
pub(super) fn business_row(row: &SqliteRow) -> Result<Vec<SqlValue>> {
    row.columns()
        .iter()
        .map(|column| {
            let i = column.ordinal();
            let raw = row.try_get_raw(i).map_err(fault)?;
            if raw.is_null() {
                return Ok(SqlValue::Null);
            }
            let kind = raw.type_info().name().to_owned();
            match kind.as_str() {
                "INTEGER" | "BOOLEAN" => row.try_get(i).map(SqlValue::Int),
                "REAL" => row.try_get(i).map(SqlValue::Real),
                _ => row.try_get(i).map(SqlValue::Text),
            }
            .map_err(fault)
        })
        .collect()
}
