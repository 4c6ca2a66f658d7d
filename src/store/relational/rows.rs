//! Rows of an answer as what they mean, written once for all databases.

use super::super::row::{self, Columns};
use super::super::tx::{KeyName, KeyRow};
use super::super::{Aged, PackRow, Renewed, Result, StoreError, Took, Usual};
use crate::core::eta::Estimator;
use crate::core::ids::{FencingToken, TaskId};
use crate::core::metric;
use crate::core::picture::Point;
use crate::core::retention::End;
use crate::core::submit::KeyKind;
use crate::core::task::{State, Task, TimelineEvent};
use crate::core::time::Millis;
use crate::core::view::Documents;
use metrics::counter;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Once;

/// Rows as tasks that may be changed, without those that this version does not understand, which a newer one wrote: what
/// others wait for must not fail with them, and nobody changes them. Counted, and told once.
pub(super) fn understood(rows: Vec<impl Columns>) -> Result<Vec<Task>> {
    known(rows, row::decode)
}

/// Rows as tasks for whoever only shows them: one that this version does not understand is there, in the state
/// [`State::Unknown`].
pub(super) fn shown(rows: Vec<impl Columns>) -> Result<Vec<Task>> {
    known(rows, row::decode_shown)
}

/// The same of timelines.
pub(super) fn shown_events(rows: Vec<impl Columns>) -> Result<Vec<TimelineEvent>> {
    known(rows, row::decode_event)
}

fn known<C: Columns, T>(rows: Vec<C>, decode: impl Fn(&mut C) -> Result<T>) -> Result<Vec<T>> {
    static TOLD: Once = Once::new();
    let mut found = Vec::with_capacity(rows.len());
    for mut r in rows {
        match decode(&mut r) {
            Ok(one) => found.push(one),
            Err(StoreError::Corrupt(reason)) => {
                counter!(metric::ROWS_LEFT_OUT).increment(1);
                TOLD.call_once(|| {
                    tracing::warn!("rows are left alone, a newer version may have written them: {reason}")
                });
            }
            Err(other) => return Err(other),
        }
    }
    Ok(found)
}

/// A row of (task, state, accepted, ended, the longest time for a key).
pub(super) fn aged(r: &mut impl Columns) -> Result<Aged> {
    let id = row::task_id(&r.text()?.unwrap_or_default())?;
    let state = r.text()?.as_deref().and_then(State::parse);
    let (created_at, ended_at) = (Millis(r.int()?.unwrap_or_default()), r.int()?.map(Millis));
    let end = state.filter(|state| state.is_final()).zip(ended_at).map(|(state, at)| End { state, at });
    Ok(Aged { id, created_at, end, key_ms: r.int()?.unwrap_or_default() })
}

/// Rows of (task, kind, body) as documents.
pub(super) fn documents(rows: Vec<impl Columns>) -> Result<BTreeMap<TaskId, Documents>> {
    let mut found: BTreeMap<TaskId, Documents> = BTreeMap::new();
    for mut r in rows {
        let (Some(id), Some(kind), Some(body)) = (r.text()?, r.text()?, r.text()?) else { continue };
        let documents = found.entry(row::task_id(&id)?).or_insert_with(no_documents);
        let body: Value = row::from_json(&body, "body")?;
        match kind.as_str() {
            "params" => documents.params = body,
            "checkpoint" => documents.checkpoint = Some(body),
            _ => documents.result = Some(body),
        }
    }
    Ok(found)
}

/// Rows of one id.
pub(super) fn task_ids(rows: Vec<impl Columns>) -> Result<Vec<TaskId>> {
    rows.into_iter().map(|mut r| row::task_id(&r.text()?.unwrap_or_default())).collect()
}

/// Rows as the points of a picture.
pub(super) fn points(rows: Vec<impl Columns>) -> Result<Vec<Point>> {
    rows.into_iter().map(|mut r| row::decode_point(&mut r)).collect()
}

/// Rows of (duration, units, estimator) as what an action usually takes.
pub(super) fn usual(rows: Vec<impl Columns>) -> Result<Usual> {
    let took = rows.into_iter().map(|mut r| {
        let duration_ms = r.int()?.unwrap_or_default();
        let units = r.int()?.unwrap_or_default();
        let estimator: Estimator = row::from_json(r.text()?.as_deref().unwrap_or("{}"), "estimator")?;
        Ok(Took { duration_ms, active_ms: estimator.active_ms(), units })
    });
    Ok(Usual::of(&took.collect::<Result<Vec<Took>>>()?))
}

/// What a task without stored documents has: empty params.
pub(super) fn no_documents() -> Documents {
    Documents { params: json!({}), checkpoint: None, result: None }
}

/// The answer for each lease that was to be lengthened, from the rows of those that are held; one without a state was locked
/// by somebody else. By id and token: a holder may still
/// hold a chunk of a task that it has lost and claimed anew.
pub(super) fn renewed<C: Columns>(rows: Vec<C>, held: &[(TaskId, FencingToken)]) -> Result<Vec<Renewed>> {
    let mut renewed = BTreeMap::new();
    for mut r in rows {
        let id = row::task_id(&r.text()?.unwrap_or_default())?;
        let token = FencingToken(r.int()?.unwrap_or_default());
        let answer = match r.text()?.as_deref().map(State::parse) {
            None => Renewed::Busy,
            Some(Some(State::Pausing | State::Cancelling)) => Renewed::Stop,
            Some(_) => Renewed::Ok,
        };
        renewed.insert((id, token), answer);
    }
    Ok(held.iter().map(|held| renewed.get(held).copied().unwrap_or(Renewed::Stale)).collect())
}

pub(super) fn pack_row(r: &mut impl Columns) -> Result<PackRow> {
    Ok(PackRow {
        name: r.text()?.ok_or_else(|| row::corrupt("name"))?,
        version: r.text()?.unwrap_or_default(),
        serial: r.int()? == Some(1),
        paused: r.int()? == Some(1),
        changed_at: r.int()?.map(Millis),
        changed_by: r.text()?,
    })
}

pub(super) fn key_row(r: &mut impl Columns) -> Result<KeyRow> {
    let mut text = || r.text()?.ok_or_else(|| row::corrupt("key"));
    let (tenant, action, kind, key, task) = (text()?, text()?, text()?, text()?, text()?);
    let kind = if kind == KeyKind::Fields.as_str() { KeyKind::Fields } else { KeyKind::Caller };
    Ok(KeyRow {
        name: KeyName { tenant, action, kind, key },
        task: row::task_id(&task)?,
        keep_ms: r.int()?.unwrap_or_default(),
        fingerprint: r.text()?.unwrap_or_default(),
    })
}
