//! Values into PostgreSQL's statements and out of its rows. A list is bound as an array, a table as an array a column.

use super::super::row::{self, Columns};
use super::super::tx::SlotKey;
use super::super::value::{Column, Value};
use super::super::{Result, StoreError};
use super::fault::fault;
use crate::core::effect::SqlValue;
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgRow, PgTypeInfo};
use sqlx::{Arguments as _, Column as _, Encode, Postgres, Row as _, Type, TypeInfo as _, ValueRef as _};

/// A row of (tenant, key).
pub(super) fn pair(mut row: impl Columns) -> Result<SlotKey> {
    Ok((row.text()?.ok_or_else(|| row::corrupt("tenant"))?, row.text()?.ok_or_else(|| row::corrupt("key"))?))
}

fn add<'v>(to: &mut PgArguments, value: impl Encode<'v, Postgres> + Type<Postgres>) {
    to.add(value).expect("texts and numbers can always be bound");
}

/// The values of a statement.
pub(super) fn bound(values: Vec<Value>) -> PgArguments {
    let mut bound = PgArguments::default();
    for value in values {
        match value {
            Value::Text(text) => add(&mut bound, text),
            Value::Int(number) => add(&mut bound, number),
            Value::Texts(texts) => add(&mut bound, texts),
            Value::Table(batch) => {
                for column in batch.into_columns() {
                    match column {
                        Column::Text(texts) => add(&mut bound, texts),
                        Column::Int(numbers) => add(&mut bound, numbers),
                    }
                }
            }
        }
    }
    bound
}

/// NULL of the type that its place in the statement asks for.
struct Untyped;

impl Type<Postgres> for Untyped {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(0))
    }
}

impl Encode<'_, Postgres> for Untyped {
    fn encode_by_ref(&self, _: &mut PgArgumentBuffer) -> std::result::Result<IsNull, BoxDynError> {
        Ok(IsNull::Yes)
    }
}

/// A business statement with its values. A statement stays prepared for the types it was first bound with, so its text
/// carries them in a comment: the same statement with a number in place of a fraction is another one.
pub(super) fn of_business(sql: &str, values: &[SqlValue]) -> (String, PgArguments) {
    let mut bound = PgArguments::default();
    let mut kinds = String::with_capacity(values.len());
    for value in values {
        match value {
            SqlValue::Null => add(&mut bound, Untyped),
            SqlValue::Int(number) => add(&mut bound, *number),
            SqlValue::Real(fraction) => add(&mut bound, *fraction),
            SqlValue::Text(text) => add(&mut bound, text.as_str()),
        }
        kinds.push(match value {
            SqlValue::Null => 'n',
            SqlValue::Int(_) => 'i',
            SqlValue::Real(_) => 'r',
            SqlValue::Text(_) => 't',
        });
    }
    (format!("{sql} /* {kinds} */"), bound)
}

/// The values of a business row.
pub(super) fn business_row(row: &PgRow) -> Result<Vec<SqlValue>> {
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
                "INT8" => row.try_get(i).map(SqlValue::Int),
                "INT4" => row.try_get::<i32, _>(i).map(|n| SqlValue::Int(n.into())),
                "INT2" => row.try_get::<i16, _>(i).map(|n| SqlValue::Int(n.into())),
                "BOOL" => row.try_get::<bool, _>(i).map(|b| SqlValue::Int(b.into())),
                "FLOAT8" => row.try_get(i).map(SqlValue::Real),
                "FLOAT4" => row.try_get::<f32, _>(i).map(|f| SqlValue::Real(f.into())),
                "TEXT" | "VARCHAR" | "CHAR" | "BPCHAR" | "NAME" => row.try_get(i).map(SqlValue::Text),
                other => {
                    return Err(StoreError::Limit(format!(
                        "column {} has the type {other}; CAST it to TEXT, BIGINT or DOUBLE PRECISION",
                        column.name()
                    )));
                }
            }
            .map_err(fault)
        })
        .collect()
}
