//! What is kept beside a task's row as columns and back: the lines of its timeline and the points of its picture.

use super::super::Result;
use super::super::value::Batch;
use super::super::value::Kind::{self, Int, Text};
use super::{Columns, count32, from_json, json_text, need, task_id};
use crate::core::ids::TaskId;
use crate::core::picture::Point;
use crate::core::task::{State, TimelineEvent};
use crate::core::time::Millis;

/// The columns of a timeline entry.
pub(crate) const EVENT_COLUMNS: &[(&str, Kind)] = &[
    ("task_id", Text),
    ("seq", Int),
    ("at", Int),
    ("from_state", Text),
    ("to_state", Text),
    ("reason", Text),
    ("actor", Text),
    ("node", Text),
    ("attempt", Int),
    ("chunk", Int),
    ("failure", Text),
];

/// Writes a timeline entry.
pub(crate) fn encode_event(event: &TimelineEvent, to: &mut Batch) {
    to.text(Some(&event.task.to_string()));
    to.int(Some(event.seq));
    to.int(Some(event.at.0));
    to.text(event.from.map(State::as_str));
    to.text(Some(event.to.as_str()));
    to.text(Some(&event.reason));
    to.text(event.actor.as_deref());
    to.text(event.node.as_deref());
    to.int(Some(event.attempt.into()));
    to.int(Some(event.chunk));
    to.text(event.failure.as_ref().map(json_text).as_deref());
}

/// Reads a timeline entry, in the same order. It is only shown, so a word of a newer version leaves the rest of it readable.
pub(crate) fn decode_event(row: &mut impl Columns) -> Result<TimelineEvent> {
    Ok(TimelineEvent {
        task: task_id(&need(row.text()?, "task_id")?)?,
        seq: need(row.int()?, "seq")?,
        at: Millis(need(row.int()?, "at")?),
        from: row.text()?.as_deref().map(read_state),
        to: read_state(&need(row.text()?, "to_state")?),
        reason: need(row.text()?, "reason")?,
        actor: row.text()?,
        node: row.text()?,
        attempt: count32(row.int()?, "attempt")?,
        chunk: need(row.int()?, "chunk")?,
        failure: row.text()?.and_then(|t| from_json(&t, "failure").ok()),
    })
}

/// The columns of a point of a picture.
pub(crate) const POINT_COLUMNS: &[(&str, Kind)] = &[
    ("task_id", Text),
    ("at", Int),
    ("progress_current", Int),
    ("progress_total", Int),
    ("low_at", Int),
    ("finish_at", Int),
    ("high_at", Int),
    ("attempt", Int),
];

/// Writes a point of a task's picture.
pub(crate) fn encode_point((task, point): &(TaskId, Point), to: &mut Batch) {
    let ms = |at: Option<Millis>| at.map(|m| m.0);
    to.text(Some(&task.to_string()));
    to.int(Some(point.at.0));
    to.int(Some(point.current));
    to.int(point.total);
    to.int(ms(point.low_at));
    to.int(ms(point.finish_at));
    to.int(ms(point.high_at));
    to.int(Some(point.attempt.into()));
}

/// Reads a point, in the same order without the task.
pub(crate) fn decode_point(row: &mut impl Columns) -> Result<Point> {
    Ok(Point {
        at: Millis(need(row.int()?, "at")?),
        current: need(row.int()?, "progress_current")?,
        total: row.int()?,
        low_at: row.int()?.map(Millis),
        finish_at: row.int()?.map(Millis),
        high_at: row.int()?.map(Millis),
        attempt: count32(row.int()?, "attempt")?,
    })
}

/// A state as it is shown.
fn read_state(word: &str) -> State {
    State::parse(word).unwrap_or(State::Unknown)
}
