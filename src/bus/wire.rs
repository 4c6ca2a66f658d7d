//! Signals as they travel between nodes: one JSON object a message, `{"node": "…", "events": […]}`.
//!
//! Each event is read by itself: one that this version does not know (another kind, a state that it has never heard of) is
//! passed over, and what it told of is found in the change log at the next look. Unknown fields are ignored. Nothing that
//! arrives can end a node.
//!
//! Sizes are bytes. A task without its documents is small by the limits of its fields; one that is larger than
//! [`EVENT_BYTES`] all the same is told of and not told. Messages are at most [`MESSAGE_BYTES`] and one event.

use super::Signal;
use crate::core::change::Change;
use crate::core::ids::TaskId;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The largest event that carries its item.
const EVENT_BYTES: usize = 32 * 1024;
/// Events go together into one message up to this.
const MESSAGE_BYTES: usize = 64 * 1024;

/// One event on its way.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "e", rename_all = "lowercase")]
enum Event<'a> {
    /// A task changed, or is gone.
    Change { change: Cow<'a, Change> },
    /// Something changed that is too large to be told.
    Moved,
    /// A log has grown.
    Log { task: TaskId, newest: i64 },
    /// Marks of an owner changed.
    Marked { tenant: Cow<'a, str>, owner: Cow<'a, str> },
    /// The node could not tell something.
    Lost,
    /// The node listens to itself.
    Beat { n: u64 },
}

#[derive(Serialize)]
struct Sent<'a> {
    node: &'a str,
    events: &'a [Box<RawValue>],
}

#[derive(Deserialize)]
struct Received<'a> {
    #[serde(borrow)]
    node: Cow<'a, str>,
    #[serde(borrow)]
    events: Vec<&'a RawValue>,
}

/// What a message brought.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Of another node, in its order.
    pub signals: Vec<Signal>,
    /// The newest beat of this node itself.
    pub beat: Option<u64>,
}

/// The events of a signal.
pub(super) fn events(signal: &Signal) -> Vec<Box<RawValue>> {
    match signal {
        Signal::Changes(changes) => {
            changes.iter().map(|change| bounded(&Event::Change { change: Cow::Borrowed(change) })).collect()
        }
        Signal::LogGrew { task, newest } => vec![raw(&Event::Log { task: *task, newest: *newest })],
        Signal::Marked { tenant, owner } => {
            vec![bounded(&Event::Marked { tenant: tenant.into(), owner: owner.into() })]
        }
        Signal::Elsewhere => vec![raw(&Event::Moved)],
        Signal::Missed => vec![lost()],
    }
}

/// That this node could not tell something.
pub(super) fn lost() -> Box<RawValue> {
    raw(&Event::Lost)
}

/// A sign by which a node hears that it hears.
pub(super) fn beat(n: u64) -> Box<RawValue> {
    raw(&Event::Beat { n })
}

fn bounded(event: &Event<'_>) -> Box<RawValue> {
    let text = raw(event);
    if text.get().len() > EVENT_BYTES { raw(&Event::Moved) } else { text }
}

fn raw(event: &Event<'_>) -> Box<RawValue> {
    serde_json::value::to_raw_value(event).expect("an event holds only texts, numbers and lists")
}

/// How many of these events are at most so many bytes together; one at least, where there is one.
pub(super) fn fitting(events: &[Box<RawValue>], most: usize) -> usize {
    let mut bytes = 0;
    let sizes = events.iter().map(|event| event.get().len() + 1);
    let count = sizes.take_while(|size| {
        bytes += size;
        bytes <= most
    });
    count.count().max(1).min(events.len())
}

/// Events as messages of this node, in order.
pub(super) fn messages(node: &str, events: &[Box<RawValue>]) -> Vec<String> {
    let (mut messages, mut rest) = (Vec::new(), events);
    while !rest.is_empty() {
        let (now, later) = rest.split_at(fitting(rest, MESSAGE_BYTES));
        rest = later;
        messages.push(serde_json::to_string(&Sent { node, events: now }).expect("events are JSON already"));
    }
    messages
}

/// What a message brings to this node; one that is none brings nothing.
pub(super) fn hear(node: &str, message: &[u8]) -> Heard {
    let Ok(Received { node: from, events }) = serde_json::from_slice(message) else { return Heard::default() };
    let own = from == node;
    let mut heard = Heard::default();
    let mut changes = Vec::new();
    for event in events {
        match serde_json::from_str(event.get()) {
            Ok(Event::Beat { n }) if own => heard.beat = heard.beat.max(Some(n)),
            Ok(_) if own => {}
            Ok(Event::Change { change }) => changes.push(change.into_owned()),
            Ok(Event::Moved) => heard.signals.push(Signal::Elsewhere),
            Ok(Event::Log { task, newest }) => heard.signals.push(Signal::LogGrew { task, newest }),
            Ok(Event::Marked { tenant, owner }) => {
                heard.signals.push(Signal::Marked { tenant: tenant.into_owned(), owner: owner.into_owned() });
            }
            Ok(Event::Lost) => heard.signals.push(Signal::Missed),
            Ok(Event::Beat { .. }) | Err(_) => {}
        }
    }
    if !changes.is_empty() {
        heard.signals.insert(0, Signal::Changes(changes.into()));
    }
    heard
}

#[cfg(test)]
mod tests;
