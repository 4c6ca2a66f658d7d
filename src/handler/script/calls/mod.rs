//! What a script may ask of the server, by name: one file for each family of calls, one table.
//!
//! A call is a name and a JSON value; its answer is JSON, a text, or a refusal. The script's process is taken for hostile:
//! a name that is not in the table and a value of the wrong shape are refusals, and a call reaches nothing but the chunk it
//! belongs to ([`Caller`]). The same calls serve `cx`, as promises, and the synchronous forms.
//!
//! To add one: a function `async fn(&Caller, Value) -> Called` in the file of its family, a line in [`answer`], a
//! function in `js/prelude.js` (`later(name, value)` for a promise, `now(name, value)` for an answer at once), a test.

pub(super) mod children;
mod chunk;
mod fetch;
mod run;
mod tables;

use super::library::Library;
use crate::handler::tables::ChunkTables;
use crate::handler::{ChunkContext, HandlerError};
use crate::outbound::{AllowList, Outbound};
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use std::time::Instant;

/// What an answer is made of.
pub(super) enum Reply {
    /// A value.
    Json(Value),
    /// A text of any length, which is not wrapped in JSON on its way.
    Text(Bytes),
}

/// Why there is none: thrown in the script as an error with these fields.
#[derive(Debug, Serialize)]
pub(super) struct Refusal {
    /// A stable word.
    pub code: String,
    /// What is wrong, for whoever reads the task.
    pub message: String,
    /// Trying again is useless.
    pub permanent: bool,
}

impl Refusal {
    /// Trying again is useless.
    pub fn permanent(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), permanent: true }
    }

    /// Trying again may help.
    pub fn retry(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), permanent: false }
    }
}

impl From<HandlerError> for Refusal {
    fn from(error: HandlerError) -> Self {
        match error {
            HandlerError::Permanent { code, message } => Self::permanent(&code, message),
            HandlerError::Retry { code, message } => Self::retry(&code, message),
            HandlerError::Failed(failure) => {
                Self { code: failure.code, message: failure.message, permanent: !failure.retryable }
            }
            HandlerError::HandedBack => Self::retry("handed-back", "the chunk was told to stop"),
        }
    }
}

/// How a call ends.
pub(super) type Called = Result<Reply, Refusal>;

/// The chunk that asks, and what its calls may reach.
pub(super) struct Caller<'a> {
    /// The chunk.
    pub cx: &'a ChunkContext,
    /// When its time is over.
    pub until: Instant,
    /// The scripts that it may run.
    pub library: &'a Library,
    /// The way to other hosts; none when there is none for scripts.
    pub outbound: Option<&'a Outbound>,
    /// Of the hosts that the node lists, those that its pack does; all of them when there is no pack.
    pub hosts: Option<&'a AllowList>,
    /// The tables of its pack, if it has some.
    pub tables: Option<&'a ChunkTables>,
    /// Whether it may submit children.
    pub may_submit: bool,
}

/// Answers one call.
pub(super) async fn answer(caller: &Caller<'_>, name: &str, asked: &[u8]) -> Called {
    let Ok(asked) = serde_json::from_slice::<Value>(asked) else {
        return Err(Refusal::permanent(
            "bad-argument",
            format!("what `{name}` was given is nested too deep or is no JSON"),
        ));
    };
    match name {
        "lease" => chunk::lease(caller).await,
        "file" => chunk::file(caller, &asked).await,
        "submit" => children::submit(caller, &asked),
        "children" => children::children(caller, &asked).await,
        "fetch" => fetch::fetch(caller, asked).await,
        "script" => run::script(caller, &asked).await,
        "form" => tables::form(caller, &asked).await,
        "table" => tables::table(caller, &asked).await,
        _ => Err(Refusal::permanent("unknown-call", format!("there is no call `{name}`"))),
    }
}
