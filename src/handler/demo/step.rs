//! What the steps of the demo's handlers have in common: reading params and checkpoint, reading numbers out of rows, and
//! answering with the next place after a pause.

use crate::core::chunk::{Outcome, Told};
use crate::core::effect::SqlValue;
use crate::core::progress::Reported;
use crate::core::task::Rows;
use crate::handler::{ChunkContext, HandlerError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The params of the task. They were checked against the schema when the task was accepted; a configuration that changed
/// since is the only way to a fault here.
pub(super) fn params<T: DeserializeOwned>(cx: &ChunkContext) -> Result<T, HandlerError> {
    T::deserialize(cx.params())
        .map_err(|error| HandlerError::permanent("bad-params", format!("The params do not fit this action: {error}.")))
}

/// Where to go on; `None` at the start.
pub(super) fn place<T: DeserializeOwned>(cx: &ChunkContext) -> Result<Option<T>, HandlerError> {
    cx.checkpoint().map(T::deserialize).transpose().map_err(|error| {
        HandlerError::permanent("bad-checkpoint", format!("The checkpoint is none of this action: {error}."))
    })
}

/// What a step tells. Rates and times follow from `current`, so that nothing is told twice.
#[derive(Default)]
pub(super) struct Said {
    pub current: i64,
    pub total: Option<i64>,
    pub unit: &'static str,
    pub phase: &'static str,
    pub message: String,
    pub rows: Rows,
    pub log: Vec<String>,
}

impl Said {
    fn into_told(self) -> Told {
        let report = Reported {
            current: Some(self.current),
            total: Some(self.total),
            unit: Some(Some(self.unit.to_owned())),
            phase: Some(Some(self.phase.to_owned())),
            message: Some(Some(self.message)),
        };
        Told { report, log: self.log, rows: self.rows, ..Told::default() }
    }
}

/// There is more: go on at `place` after a pause.
pub(super) fn more(place: &impl Serialize, pause_seconds: f64, said: Said) -> Outcome {
    let checkpoint = serde_json::to_value(place).expect("a checkpoint of the demo is plain data");
    Outcome::More {
        checkpoint: Some(checkpoint),
        delay_ms: (pause_seconds * 1000.0).round() as i64,
        told: said.into_told(),
    }
}

/// The work is done.
pub(super) fn done(result: Value, said: Said) -> Outcome {
    Outcome::Done { result: Some(result), told: said.into_told() }
}

/// A whole number of a row; NULL counts as 0, as in a sum over nothing.
pub(super) fn int(row: &[SqlValue], column: usize) -> Result<i64, HandlerError> {
    match row.get(column) {
        Some(SqlValue::Int(n)) => Ok(*n),
        Some(SqlValue::Null) => Ok(0),
        other => Err(unexpected(column, other)),
    }
}

/// A text of a row.
pub(super) fn text(row: &[SqlValue], column: usize) -> Result<&str, HandlerError> {
    match row.get(column) {
        Some(SqlValue::Text(text)) => Ok(text),
        other => Err(unexpected(column, other)),
    }
}

/// One whole number, from a statement that answers with one row.
pub(super) async fn count(cx: &ChunkContext, sql: &'static str, values: Vec<SqlValue>) -> Result<i64, HandlerError> {
    let rows = cx.query(sql, values).await?;
    int(rows.first().map_or(&[], Vec::as_slice), 0)
}

fn unexpected(column: usize, found: Option<&SqlValue>) -> HandlerError {
    let found = match found {
        None => "nothing",
        Some(SqlValue::Null) => "NULL",
        Some(SqlValue::Int(_)) => "a whole number",
        Some(SqlValue::Real(_)) => "a fraction",
        Some(SqlValue::Text(_)) => "a text",
    };
    HandlerError::permanent("bad-table", format!("A table of the demo has {found} in column {}.", column + 1))
}
