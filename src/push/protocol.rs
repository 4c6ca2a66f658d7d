//! The frames of the subprotocol `taskbell.v1`: JSON texts, told apart by `t`.
//!
//! Unknown fields are ignored both ways. A client's frame is an object; whatever else it is becomes a [`Fault`] and never a
//! panic. Rows of items are rendered before (see `item`) and put in as they are.

use crate::core::ids::{Head, Revision, TaskId};
use crate::core::task::State;
use crate::core::time::Millis;
use crate::store::Counts;
use crate::store::logs::LogLine;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use utoipa::ToSchema;

/// The name of the protocol in the handshake.
pub const SUBPROTOCOL: &str = "taskbell.v1";
/// The topic of a connection's own notification center.
pub const ME: &str = "me";

/// What a client sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientFrame {
    /// The first frame.
    Hello(Hello),
    /// Watches a topic.
    Sub(Sub),
    /// Stops watching it.
    Unsub(Topic),
    /// Tells whether a person can see the page.
    View(View),
    /// Asks for the truth.
    Sync(Sync),
    /// Brings a new token.
    Refresh(Refresh),
    /// Answers a ping.
    Pong,
}

/// The first frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Hello {
    /// Proves who this is where neither cookie nor header did.
    pub token: Option<String>,
    /// What the client knows already.
    pub have: Option<Have>,
    /// The language of titles.
    pub lang: Option<String>,
}

/// What a client knows already.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Have {
    /// The incarnation of the database it knows it from.
    pub epoch: Option<String>,
    /// The head up to which it was told.
    pub head: Option<i64>,
}

impl Have {
    /// The head that it knows of this incarnation; what it knows of another one is worth nothing.
    #[must_use]
    pub fn head_in(&self, epoch: &str) -> Option<Head> {
        self.head.filter(|_| self.epoch.as_deref() == Some(epoch)).map(Head)
    }
}

/// A topic by name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Topic {
    /// `me`, `task:ID`, `record:TYPE:ID`, `ops`.
    pub topic: String,
}

/// Watches a topic.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Sub {
    /// `me`, `task:ID`, `record:TYPE:ID`, `ops`.
    pub topic: String,
    /// Whether the log is wanted; absent = yes.
    pub log: Option<bool>,
    /// The last seq of the log that the client has; absent = none, and it gets the last lines.
    pub after: Option<i64>,
}

/// Whether a person can see the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct View {
    /// It is so.
    pub visible: bool,
}

/// Asks for the truth.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Sync {
    /// What the client knows already; absent = it wants the snapshot.
    pub have: Option<Have>,
}

/// Brings a new token.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Refresh {
    /// Of the same user and tenant.
    pub token: String,
}

/// Why a frame could not be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No JSON object with a `t`, or a field of the wrong type.
    Malformed,
    /// A `t` that this version does not know.
    Unknown,
}

impl ClientFrame {
    /// Reads a text frame.
    pub fn read(text: &str) -> Result<Self, Fault> {
        #[derive(Deserialize)]
        struct Kind<'a> {
            #[serde(borrow)]
            t: Cow<'a, str>,
        }
        fn body<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Fault> {
            serde_json::from_str(text).map_err(|_| Fault::Malformed)
        }
        // A struct may also be written as an array; a frame may not.
        if !text.trim_start().starts_with('{') {
            return Err(Fault::Malformed);
        }
        Ok(match &*body::<Kind<'_>>(text)?.t {
            "hello" => Self::Hello(body(text)?),
            "sub" => Self::Sub(body(text)?),
            "unsub" => Self::Unsub(body(text)?),
            "view" => Self::View(body(text)?),
            "sync" => Self::Sync(body(text)?),
            "refresh" => Self::Refresh(body(text)?),
            "pong" => Self::Pong,
            _ => return Err(Fault::Unknown),
        })
    }
}

/// What the server sends. `head` is always the head of `me` up to which this connection has been told, whatever the topic:
/// it never falls while the epoch stays.
#[derive(Debug, Serialize)]
#[serde(tag = "t", rename_all = "lowercase", rename_all_fields = "camelCase")]
#[allow(missing_docs, reason = "the fields are those of the contract")]
pub enum ServerFrame<'a> {
    /// The hello was good. `tenant` and `user` are who it proved: a page that was only handed a token does not know.
    Welcome { epoch: &'a str, head: Head, server_time: Millis, ping_ms: u64, tenant: &'a str, user: &'a str },
    /// All of a topic; replaces what the client has of it.
    Snap {
        topic: &'a str,
        epoch: &'a str,
        head: Head,
        as_of: Millis,
        items: &'a [&'a RawValue],
        more: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        counts: Option<&'a CountsView>,
    },
    /// The client has it all.
    Same { topic: &'a str, head: Head },
    /// What is newer, as absolute values.
    Delta {
        topic: &'a str,
        head: Head,
        items: &'a [&'a RawValue],
        #[serde(skip_serializing_if = "Option::is_none")]
        counts: Option<&'a CountsView>,
    },
    /// A task was deleted.
    Gone { id: TaskId, revision: Revision },
    /// Lines of a subscribed task's log, in order; where `from` does not follow the last `to`, lines are missing.
    Log { task: TaskId, from: i64, to: i64, lines: &'a [LogLine] },
    /// Asks for a pong.
    Ping { head: Head },
    /// Whether what is pushed is as fresh as it should be.
    Status { live: Live, since: Millis },
    /// The identity ends soon.
    Auth { expires_in_ms: i64 },
    /// The node goes; come back after a random pause between `retryMs` and `retryMs + spreadMs`.
    Drain { retry_ms: u64, spread_ms: u64 },
    /// A frame of the client was not followed.
    Err {
        code: ErrorCode,
        retryable: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        topic: Option<&'a str>,
    },
}

impl ServerFrame<'_> {
    /// The word that tells it apart: its `t`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Welcome { .. } => "welcome",
            Self::Snap { .. } => "snap",
            Self::Same { .. } => "same",
            Self::Delta { .. } => "delta",
            Self::Gone { .. } => "gone",
            Self::Log { .. } => "log",
            Self::Ping { .. } => "ping",
            Self::Status { .. } => "status",
            Self::Auth { .. } => "auth",
            Self::Drain { .. } => "drain",
            Self::Err { .. } => "err",
        }
    }

    /// The text of the frame.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("frames hold only texts, numbers and lists")
    }
}

/// How fresh what is pushed is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Live {
    /// As it should be.
    Ok,
    /// The database does not answer, or what other nodes do comes late; what was shown may be old.
    Degraded,
}

/// Why a frame was not followed. Stable, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorCode {
    /// It is no frame of this protocol.
    BadFrame,
    /// This version does not know its `t`.
    UnknownFrame,
    /// The first frame has to be hello, and only that.
    HelloExpected,
    /// No token, or one that proves nothing.
    Unauthorized,
    /// The token is not one for this connection.
    Forbidden,
    /// No such topic for this caller.
    NotFound,
    /// Too many topics on one connection.
    TooManyTopics,
    /// Too many frames in a short time.
    TooManyCommands,
    /// Too many connections of one user, or on this node.
    TooManyConnections,
    /// The database does not answer.
    Unavailable,
}

impl ErrorCode {
    /// All codes, in the order of docs/push.md.
    pub const ALL: [Self; 10] = [
        Self::BadFrame,
        Self::UnknownFrame,
        Self::HelloExpected,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::TooManyTopics,
        Self::TooManyCommands,
        Self::TooManyConnections,
        Self::Unavailable,
    ];

    /// Whether the same frame may succeed later.
    #[must_use]
    pub fn retryable(self) -> bool {
        matches!(self, Self::TooManyCommands | Self::TooManyTopics | Self::TooManyConnections | Self::Unavailable)
    }
}

/// The close codes of the contract.
pub mod close {
    /// The node restarts.
    pub const RESTART: u16 = 1012;
    /// The node has too much to do.
    pub const OVERLOAD: u16 = 1013;
    /// The identity has ended or was never proven.
    pub const NEW_TOKEN: u16 = 4001;
    /// The peer does not read what is sent.
    pub const TOO_SLOW: u16 = 4008;
    /// The peer does not answer.
    pub const NO_PONG: u16 = 4010;
    /// The identity may not connect.
    pub const FORBIDDEN: u16 = 4403;
    /// The peer does not speak the protocol.
    pub const PROTOCOL: u16 = 4409;
    /// Too many connections of one user, or from one address.
    pub const TOO_MANY: u16 = 4429;
    /// All of them, in the order of docs/push.md.
    pub const ALL: [u16; 8] = [RESTART, OVERLOAD, NEW_TOKEN, TOO_SLOW, NO_PONG, FORBIDDEN, PROTOCOL, TOO_MANY];
}

/// Counts as clients see them: one number a state, `unseen` and `attention`. The unfinished states are always there.
#[derive(Clone, Debug, PartialEq, Eq, ToSchema)]
#[schema(as = Counts, value_type = std::collections::HashMap<String, i64>)]
pub struct CountsView(pub Counts);

impl Serialize for CountsView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for state in State::ALL {
            match self.0.by_state.get(&state) {
                Some(count) => map.serialize_entry(state.as_str(), count)?,
                None if !state.is_final() => map.serialize_entry(state.as_str(), &0)?,
                None => {}
            }
        }
        if let Some(count) = self.0.by_state.get(&State::Unknown) {
            map.serialize_entry(State::Unknown.as_str(), count)?;
        }
        map.serialize_entry("unseen", &self.0.unseen)?;
        map.serialize_entry("attention", &self.0.attention)?;
        map.end()
    }
}

#[cfg(test)]
mod tests;
