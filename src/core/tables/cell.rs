//! A JSON value as a value of a column. What does not fit is refused with the column and its kind named; nothing is rounded,
//! cut or guessed, except that numbers and flags may come as text, as forms send them.

use super::{Cell, Refused};
use crate::core::pack::{Column, ColumnKind};
use serde_json::Value;

/// The value for a column.
pub(super) fn cell(column: &Column, value: &Value) -> Result<Cell, Refused> {
    if value.is_null() {
        return Ok(Cell::Null);
    }
    let read = match column.kind {
        ColumnKind::Text => text(value),
        // An empty field of a form.
        _ if value.as_str().is_some_and(|text| text.trim().is_empty()) => Some(Cell::Null),
        ColumnKind::Integer => whole(value),
        ColumnKind::Number => number(value),
        ColumnKind::Boolean => flag(value),
    };
    read.ok_or_else(|| {
        let kind = match column.kind {
            ColumnKind::Text => "text without U+0000",
            ColumnKind::Integer => "a whole number of 64 bits",
            ColumnKind::Number => "a number",
            ColumnKind::Boolean => "true or false",
        };
        Refused(format!("the column {} holds {kind}, and the value is none", column.name))
    })
}

/// Objects and lists are kept as JSON, as whoever reads them expects.
fn text(value: &Value) -> Option<Cell> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    (!text.contains('\0')).then_some(Cell::Text(text))
}

fn whole(value: &Value) -> Option<Cell> {
    let number = match value {
        Value::Bool(flag) => Some(i64::from(*flag)),
        Value::String(text) => text.trim().parse().ok().or_else(|| fraction(text).and_then(exact)),
        number => number.as_i64().or_else(|| number.as_f64().and_then(exact)),
    };
    number.map(Cell::Int)
}

fn number(value: &Value) -> Option<Cell> {
    let number = match value {
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        Value::String(text) => fraction(text),
        number => number.as_f64(),
    };
    number.map(Cell::Real)
}

fn flag(value: &Value) -> Option<Cell> {
    let flag = match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        other => match whole(other) {
            Some(Cell::Int(1)) => Some(true),
            Some(Cell::Int(0)) => Some(false),
            _ => None,
        },
    };
    flag.map(Cell::Bool)
}

fn fraction(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

/// A double that is a whole number, as long as doubles hold each of them.
fn exact(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0).then_some(number as i64)
}
