//! One chunk of a script, as the server sees it: send it to a process, answer what the process asks, and make an outcome or
//! a failure of how it ends.
//!
//! The clock here is the last wall: when it strikes, the process is killed, whatever it does. A process that dies is told
//! apart by what it left: past the time it is a timeout, after a refused allocation it is the memory budget, else it is
//! `script-process-died`, which is worth another attempt.

use super::calls::children::NOT_PERMITTED;
use super::calls::{self, Called, Caller, Reply};
use super::library::Library;
use super::limits;
use super::pool::Lent;
use super::protocol::{Came, Fault, FromChild, Run, Thrown, ToChild, World};
use crate::core::budget::{Budget, Budgets, Spent};
use crate::core::chunk::{Failure, Outcome};
use crate::core::progress::Reported;
use crate::core::task::ErrorKind;
use crate::handler::answer::{self, bad_outcome, warn_of};
use crate::handler::tables::ChunkTables;
use crate::handler::{ChunkContext, HandlerError};
use crate::outbound::{AllowList, Outbound};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use std::borrow::Cow;
use std::io;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// The levels of a log line.
const LEVELS: [&str; 4] = ["debug", "info", "warn", "error"];

/// A chunk and what it may use.
pub(super) struct Drive<'a> {
    pub name: &'a str,
    pub source: &'a Bytes,
    pub budgets: Budgets,
    pub timeout: Duration,
    pub cx: &'a ChunkContext,
    pub library: &'a Library,
    pub outbound: Option<&'a Outbound>,
    pub hosts: Option<&'a AllowList>,
    pub tables: Option<&'a ChunkTables>,
    pub may_submit: bool,
    pub world: World,
}

/// What a process answered, and whether it can be used again.
struct Ended {
    said: Result<Bytes, Fault>,
    last: bool,
}

impl Drive<'_> {
    /// Runs the chunk. When this is not waited for to its end, the process is killed.
    pub async fn run(&self, mut lent: Lent) -> Result<Outcome, HandlerError> {
        let began_at = Instant::now();
        let talked = timeout(self.timeout.saturating_add(limits::GRACE), self.talk(&mut lent)).await;
        let said = match talked {
            Ok(Ok(Ended { said, last: true })) => said,
            Ok(Ok(Ended { said, last: false })) => {
                lent.give_back();
                said
            }
            Ok(Err(error)) => return Err(self.died(lent, began_at.elapsed(), &error).await),
            Err(_) => Err(Fault::Budget(self.spent(Budget::Timeout, millis(began_at.elapsed()), String::new()))),
        };
        match said {
            Ok(answer) => self.settled(&answer).await,
            Err(fault) => Err(HandlerError::Failed(Box::new(self.failure(fault)))),
        }
    }

    /// The conversation, until the process ends the chunk. An error means that it is gone, or makes no sense.
    async fn talk(&self, child: &mut Lent) -> io::Result<Ended> {
        let run = Run {
            name: self.name.to_owned(),
            chunk: self.cx.chunk_in().clone(),
            budgets: self.budgets,
            time_ms: millis(self.timeout),
            world: self.world.clone(),
        };
        child.send(&ToChild::Run(Box::new(run)), self.source).await?;
        let now = Instant::now();
        let caller = Caller {
            cx: self.cx,
            until: now.checked_add(self.timeout).unwrap_or(now),
            library: self.library,
            outbound: self.outbound,
            hosts: self.hosts,
            tables: self.tables,
            may_submit: self.may_submit,
        };
        let mut calls = FuturesUnordered::new();
        let mut logged_bytes = 0;
        let mut told_to_stop = false;
        loop {
            let frame = tokio::select! {
                frame = child.next(), if calls.len() < limits::CALLS_AT_ONCE => frame?,
                Some((ask, called)) = calls.next() => {
                    let (came, body) = told(called);
                    child.send(&ToChild::Returned { ask, came }, &body).await?;
                    continue;
                }
                () = self.cx.stopped(), if !told_to_stop => {
                    told_to_stop = true;
                    child.send(&ToChild::Stop, b"").await?;
                    continue;
                }
            };
            let (head, body) = frame.ok_or(io::ErrorKind::UnexpectedEof)?;
            match head {
                FromChild::Progress(fields) => match Reported::parse(&Value::Object(fields)) {
                    Ok(report) => self.cx.report(report),
                    Err(faults) => warn_of(self.cx, &faults),
                },
                FromChild::Log { level } => {
                    logged_bytes += body.len();
                    if logged_bytes > limits::LOG_BYTES + limits::FRAME_BYTES {
                        return Err(io::Error::other("the script process logs more than it may"));
                    }
                    let level = LEVELS.into_iter().find(|known| *known == level).unwrap_or("info");
                    self.cx.log_at(level, String::from_utf8_lossy(&body));
                }
                FromChild::Call { ask, name } => {
                    let caller = &caller;
                    calls.push(async move { (ask, calls::answer(caller, &name, &body).await) });
                }
                FromChild::Answer { last } => return Ok(Ended { said: Ok(body), last }),
                FromChild::Fault { fault, last } => return Ok(Ended { said: Err(fault), last }),
                FromChild::Ready { .. } => {
                    return Err(io::Error::other("the script process is ready in the middle of a chunk"));
                }
            }
        }
    }

    /// The outcome of an answer, after what the chunk changed in tables is committed with it. A failure commits nothing.
    async fn settled(&self, answer: &[u8]) -> Result<Outcome, HandlerError> {
        let answer = &self.with_children(answer)?[..];
        let outcome = self.outcome(answer)?;
        if let Some(told) = outcome.told() {
            // What the tables keep cannot be taken back when the chunk turns out to be none.
            self.cx.check_children(&told.submit)?;
        }
        let Some(tables) = self.tables.filter(|_| !matches!(outcome, Outcome::Fail(_))) else { return Ok(outcome) };
        match tables.commit(self.cx.chunk_in(), &String::from_utf8_lossy(answer)).await? {
            None => Ok(outcome),
            // The same chunk has ended elsewhere; what it said there counts.
            Some(answer) => self.outcome(answer.as_bytes()),
        }
    }

    /// The answer with the children that the chunk submitted on its way: what is kept beside the tables of a pack has to tell
    /// everything, for a repeated chunk is answered from it.
    fn with_children<'b>(&self, answer: &'b [u8]) -> Result<Cow<'b, [u8]>, HandlerError> {
        let submitted = self.cx.take_children();
        let parsed = serde_json::from_slice::<Value>(answer).ok().filter(|_| !submitted.is_empty());
        let Some(Value::Object(mut fields)) = parsed else { return Ok(Cow::Borrowed(answer)) };
        let children = submitted.into_iter().map(|(_, child)| serde_json::to_value(child));
        let children: Result<Vec<Value>, _> = children.collect();
        match (children, fields.entry("submit").or_insert(Value::Null)) {
            (Ok(mut children), list @ (Value::Null | Value::Array(_))) => {
                if let Value::Array(more) = list.take() {
                    children.extend(more);
                }
                *list = Value::Array(children);
                Ok(Cow::Owned(Value::Object(fields).to_string().into_bytes()))
            }
            // What is no list is told as a fault of the outcome.
            _ => Ok(Cow::Borrowed(answer)),
        }
    }

    /// The outcome of an answer that this chunk, or an earlier run of it, has given.
    pub fn outcome(&self, answer: &[u8]) -> Result<Outcome, HandlerError> {
        let failed = |failure| HandlerError::Failed(Box::new(failure));
        if answer == b"null" {
            let what = "an object with `hasMore`, `fail`, `Code` or `done` is needed";
            return Err(failed(bad_outcome(format!("outcome: the script returned nothing; {what}"))));
        }
        let (outcome, faults) = answer::parse(answer).map_err(failed)?;
        warn_of(self.cx, &faults);
        if let Some(told) = outcome.told()
            && !self.may_submit
            && !told.submit.is_empty()
        {
            return Err(HandlerError::permanent("not-permitted", NOT_PERMITTED));
        }
        Ok(outcome)
    }

    fn failure(&self, fault: Fault) -> Failure {
        let name = self.name;
        match fault {
            Fault::Budget(spent) => {
                // The time of a chunk is a limit that every kind of handler has, and has a kind of its own.
                let kind = if spent.code == Budget::Timeout { ErrorKind::Timeout } else { ErrorKind::Budget };
                Failure::new(kind, spent.code.code(), spent.message()).detail(spent.detail())
            }
            Fault::Syntax { message } => Failure::new(ErrorKind::Permanent, "script-syntax", message),
            Fault::NoFunction => Failure::new(
                ErrorKind::Permanent,
                "script-no-function",
                format!("{name}: has neither `export default async function (task, cx)` nor a `return` at its top"),
            ),
            Fault::BadOutcome(reason) => bad_outcome(reason),
            Fault::Thrown(thrown) => threw(&thrown),
        }
    }

    /// A budget of time or memory that the process could not tell of itself any more.
    fn spent(&self, code: Budget, used: u64, at: String) -> Spent {
        let limit = if code == Budget::Timeout { millis(self.timeout) } else { self.budgets.memory_bytes };
        Spent::new(code, limit, used, &[self.name.to_owned()], &at)
    }

    async fn died(&self, lent: Lent, after: Duration, error: &io::Error) -> HandlerError {
        let breath = lent.last_breath().await;
        let fault = if after >= self.timeout {
            Some(Fault::Budget(self.spent(Budget::Timeout, millis(after), String::new())))
        } else if breath.lacked_memory() {
            Some(Fault::Budget(self.spent(Budget::Memory, 0, breath.detail())))
        } else {
            None
        };
        let failure = fault.map_or_else(
            || {
                let message = "The process that ran the script ended unexpectedly.";
                Failure::new(ErrorKind::Handler, "script-process-died", message)
                    .detail(format!("{error}; {}", breath.detail()))
            },
            |fault| self.failure(fault),
        );
        HandlerError::Failed(Box::new(failure))
    }
}

/// What a script threw, as a failure: its first line is for the user, all of it for operators.
fn threw(thrown: &Thrown) -> Failure {
    let kind = if thrown.permanent { ErrorKind::Permanent } else { ErrorKind::Handler };
    let first = thrown.message.lines().find(|line| !line.trim().is_empty());
    let message = first.unwrap_or("The script threw an error without a message.");
    Failure::new(kind, thrown.code.as_deref().unwrap_or("script-error"), message)
        .detail(format!("{}: {}\n{}", thrown.name, thrown.message, thrown.stack))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The answer to a call, as it goes over the pipe.
fn told(called: Called) -> (Came, Bytes) {
    match called {
        Ok(Reply::Json(value)) => (Came::Json, value.to_string().into()),
        Ok(Reply::Text(text)) => (Came::Text, text),
        Err(refusal) => (Came::Refused, serde_json::to_vec(&refusal).expect("texts and a flag").into()),
    }
}
