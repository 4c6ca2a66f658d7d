//! One chunk of a script, as the server sees it: send it to a process, answer what the process asks, and make an outcome or
//! a failure of how it ends.
//!
//! The clock here is the last wall: when it strikes, the process is killed, whatever it does. A process that dies is told
//! apart by what it left: past the time it is a timeout, after a refused allocation it is the memory budget, else it is
//! `script-process-died`, which is worth another attempt.

use super::limits;
use super::pool::Lent;
use super::protocol::{Fault, Found, FromChild, Run, Thrown, ToChild};
use crate::core::chunk::{Failure, Outcome};
use crate::core::json::{self, JsonFault};
use crate::core::progress::{FieldFault, Reported};
use crate::core::task::{ErrorKind, limits as core_limits};
use crate::handler::{ChunkContext, FileContent, HandlerError};
use bytes::Bytes;
use serde_json::Value;
use std::io;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// The levels of a log line.
const LEVELS: [&str; 4] = ["debug", "info", "warn", "error"];

/// A chunk and what it may use.
pub(super) struct Drive<'a> {
    pub name: &'a str,
    pub source: &'a Bytes,
    pub memory_bytes: u64,
    pub timeout: Duration,
    pub cx: &'a ChunkContext,
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
            Err(_) => Err(Fault::Time),
        };
        match said {
            Ok(answer) => self.outcome(&answer),
            Err(fault) => Err(HandlerError::Failed(Box::new(self.failure(fault)))),
        }
    }

    /// The conversation, until the process ends the chunk. An error means that it is gone, or makes no sense.
    async fn talk(&self, child: &mut Lent) -> io::Result<Ended> {
        let run = Run {
            name: self.name.to_owned(),
            chunk: self.cx.chunk_in().clone(),
            memory_bytes: self.memory_bytes,
            time_ms: u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX),
        };
        child.send(&ToChild::Run(Box::new(run)), self.source).await?;
        let mut told_to_stop = false;
        loop {
            let frame = tokio::select! {
                frame = child.next() => frame?,
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
                    Err(faults) => self.warn_of(&faults),
                },
                FromChild::Log { level } => {
                    let level = LEVELS.into_iter().find(|known| *known == level).unwrap_or("info");
                    self.cx.log_at(level, String::from_utf8_lossy(&body));
                }
                FromChild::Lease { ask } => {
                    let current = self.cx.lease_is_current().await;
                    child.send(&ToChild::Lease { ask, current }, b"").await?;
                }
                FromChild::File { ask, id } => {
                    let (found, text) = text_of(self.cx.open_file(&id).await);
                    child.send(&ToChild::File { ask, found }, &text).await?;
                }
                FromChild::Answer { last } => return Ok(Ended { said: Ok(body), last }),
                FromChild::Fault { fault, last } => return Ok(Ended { said: Err(fault), last }),
                FromChild::Ready { .. } => {
                    return Err(io::Error::other("the script process is ready in the middle of a chunk"));
                }
            }
        }
    }

    fn warn_of(&self, faults: &[FieldFault]) {
        for fault in faults {
            self.cx.log_at("warn", format!("dropped from the progress: {fault}"));
        }
    }

    fn outcome(&self, answer: &[u8]) -> Result<Outcome, HandlerError> {
        let bad =
            |reason: String| HandlerError::Failed(Box::new(Failure::new(ErrorKind::BadOutcome, "bad-outcome", reason)));
        // One level is the outcome's own. U+0000 is replaced in what is told; documents are held against it by themselves.
        match json::check(answer, "outcome", core_limits::JSON_DEPTH + 1) {
            Ok(()) | Err(JsonFault::Nul { .. }) => {}
            Err(fault) => return Err(bad(fault.to_string())),
        }
        let answer: Value = serde_json::from_slice(answer).map_err(|error| bad(format!("outcome: {error}")))?;
        if answer.is_null() {
            return Err(bad(
                "outcome: the script returned nothing; an object with `hasMore` or `fail` is needed".into()
            ));
        }
        let (mut outcome, faults) = Outcome::parse(&answer).map_err(|fault| bad(fault.0))?;
        self.warn_of(&faults);
        if let Outcome::More { told, .. } | Outcome::Done { told, .. } = &mut outcome {
            shorten(&mut told.log);
        }
        Ok(outcome)
    }

    fn failure(&self, fault: Fault) -> Failure {
        let name = self.name;
        match fault {
            Fault::Time => {
                let limit = self.timeout.as_secs_f64();
                Failure::new(
                    ErrorKind::Timeout,
                    "timeout",
                    format!("The script ran longer than its limit of {limit} s."),
                )
            }
            Fault::Memory { used_bytes, detail } => {
                let limit = self.memory_bytes;
                let message = format!("The script needed more memory than its limit of {} MiB.", limit / (1024 * 1024));
                Failure::new(ErrorKind::Budget, "memory", message)
                    .detail(format!("limit {limit} bytes, held at the end {used_bytes} bytes\n{detail}"))
            }
            Fault::Stack { detail } => {
                Failure::new(ErrorKind::Budget, "stack", "The calls of the script are nested too deep.")
                    .detail(format!("limit {} bytes\n{detail}", limits::STACK_BYTES))
            }
            Fault::Syntax { message } => Failure::new(ErrorKind::Permanent, "script-syntax", message),
            Fault::NoFunction => Failure::new(
                ErrorKind::Permanent,
                "script-no-function",
                format!("{name}: has no `export default async function (task, cx)`"),
            ),
            Fault::BadOutcome(reason) => Failure::new(ErrorKind::BadOutcome, "bad-outcome", reason),
            Fault::Thrown(thrown) => threw(&thrown),
        }
    }

    async fn died(&self, lent: Lent, after: Duration, error: &io::Error) -> HandlerError {
        let breath = lent.last_breath().await;
        let fault = if after >= self.timeout {
            Some(Fault::Time)
        } else if breath.lacked_memory() {
            Some(Fault::Memory { used_bytes: 0, detail: breath.detail() })
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

/// The text of a file for a script: UTF-8, without a byte order mark.
fn text_of(file: Result<FileContent, HandlerError>) -> (Found, Bytes) {
    let refused = |why: String| (Found::Never, Bytes::from(why));
    match file {
        Ok(file) if file.bytes.len() > limits::FILE_BYTES => refused(format!(
            "{} has {} bytes, the limit for reading it as text is {}",
            file.name,
            file.bytes.len(),
            limits::FILE_BYTES
        )),
        Ok(file) if std::str::from_utf8(&file.bytes).is_err() => refused(format!("{} is not UTF-8 text", file.name)),
        Ok(file) => {
            let mark = if file.bytes.starts_with("\u{feff}".as_bytes()) { 3 } else { 0 };
            (Found::Text, file.bytes.slice(mark..))
        }
        Err(HandlerError::Permanent { message, .. }) => refused(message),
        Err(error) => (Found::Retry, Bytes::from(error.to_string())),
    }
}

/// Holds the lines of an answer to what a chunk may log.
fn shorten(lines: &mut Vec<String>) {
    let mut bytes = 0;
    let fit = lines.iter().take(limits::LOG_LINES).take_while(|line| {
        bytes += line.len();
        bytes <= limits::LOG_BYTES
    });
    let kept = fit.count();
    let cut = lines.len() - kept;
    if cut > 0 {
        lines.truncate(kept);
        lines.push(format!("{cut} more lines of the answer were cut"));
    }
}
