//! One chunk: what a handler gets and what it answers, and how an answer that came as JSON is read.
//!
//! The shape of an answer is told by its key, looked for in this order: `fail` and `hasMore` are the canonical shape, `Code`
//! is that of [`code`], `done` that of [`step`]; anything else is the failure `bad-outcome`. All shapes become one
//! [`Outcome`], so nothing behind this file knows them apart. Unknown fields are ignored. A fault in a progress number never
//! fails the chunk's own work: the number is dropped and the fault goes to the log. A fault in what drives the work (whether
//! there is more, checkpoint, delay) fails the chunk: an answer that is half understood is never taken for an end.

mod code;
mod step;

use super::child::Child;
use super::family::{CHILDREN_PER_CHUNK, OnFailure};
use super::json;
use super::progress::{FieldFault, MAX_UNIT_CHARS, Reported, tidy};
use super::task::{ErrorKind, Rows, limits};
use serde_json::Value;

/// What a chunk answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// There is more to do.
    More {
        /// Where to go on; absent = keep the old one.
        checkpoint: Option<Value>,
        /// When the next chunk is due, ms from the commit; 0 = at once.
        delay_ms: i64,
        /// The rest.
        told: Told,
    },
    /// The work is done.
    Done {
        /// The result document.
        result: Option<Value>,
        /// The rest.
        told: Told,
    },
    /// It failed.
    Fail(Failure),
}

/// What a chunk tells beside its direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// Absolute progress.
    pub report: Reported,
    /// Lines for the task's log.
    pub log: Vec<String>,
    /// Row counts of this chunk.
    pub rows: Rows,
    /// Children that are written in the chunk's commit.
    pub submit: Vec<Child>,
    /// The next chunk is due when all children have ended, and not before; only where there is more to do.
    pub wait: Option<OnFailure>,
}

/// A failed chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The class.
    pub kind: ErrorKind,
    /// A stable code.
    pub code: String,
    /// Safe to show to the user.
    pub message: String,
    /// For operators only.
    pub detail: Option<String>,
    /// Whether trying again makes sense.
    pub retryable: bool,
    /// Not before this long, ms.
    pub retry_after_ms: Option<i64>,
}

impl Failure {
    /// A failure of a class, with a code and a message for the user.
    pub fn new(kind: ErrorKind, code: &str, message: impl Into<String>) -> Self {
        let retryable =
            !matches!(kind, ErrorKind::Permanent | ErrorKind::Deadline | ErrorKind::BadOutcome | ErrorKind::NoProgress);
        Self {
            kind,
            code: tidy(code, limits::WORD_CHARS),
            message: tidy(&message.into(), limits::MESSAGE_CHARS),
            detail: None,
            retryable,
            retry_after_ms: None,
        }
    }

    /// The same with something under it for operators.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(tidy(&detail.into(), limits::MESSAGE_CHARS));
        self
    }
}

/// The answer of a handler could not be understood; the text names the field and the limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadOutcome(pub String);

impl Outcome {
    /// There is more to do, at once: the next chunk goes on at this checkpoint.
    #[must_use]
    pub fn more(checkpoint: Value) -> Self {
        Self::More { checkpoint: Some(checkpoint), delay_ms: 0, told: Told::default() }
    }

    /// There is more to do once all children have ended: the next chunk goes on at this checkpoint then. Until then the task
    /// holds neither a place nor a lease.
    #[must_use]
    pub fn when_children_ended(checkpoint: Value, on_failure: OnFailure) -> Self {
        let told = Told { wait: Some(on_failure), ..Told::default() };
        Self::More { checkpoint: Some(checkpoint), delay_ms: 0, told }
    }

    /// The work is done, with a result document; `null` = without one.
    #[must_use]
    pub fn done(result: Value) -> Self {
        Self::Done { result: Some(result).filter(|r| !r.is_null()), told: Told::default() }
    }

    /// What it tells beside its direction; nothing of a failure.
    #[must_use]
    pub fn told(&self) -> Option<&Told> {
        match self {
            Self::More { told, .. } | Self::Done { told, .. } => Some(told),
            Self::Fail(_) => None,
        }
    }

    /// The same, to change it.
    pub fn told_mut(&mut self) -> Option<&mut Told> {
        match self {
            Self::More { told, .. } | Self::Done { told, .. } => Some(told),
            Self::Fail(_) => None,
        }
    }

    /// Tells how far the work is when this chunk is committed: units done, units in all if known, and their name. A
    /// failure tells no progress and stays as it is.
    #[must_use]
    pub fn counted(mut self, current: i64, total: Option<i64>, unit: &str) -> Self {
        if let Some(told) = self.told_mut() {
            told.report.current = Some(current);
            told.report.total = Some(total);
            told.report.unit = Some(Some(tidy(unit, MAX_UNIT_CHARS)));
        }
        self
    }

    /// Reads an answer that came as JSON, in any of the shapes. Beside the outcome come the faults of dropped progress
    /// fields, named as the answer names them.
    pub fn parse(answer: &Value) -> Result<(Self, Vec<FieldFault>), BadOutcome> {
        let Some(fields) = answer.as_object() else {
            return Err(BadOutcome("outcome: must be an object with `hasMore`, `fail`, `Code` or `done`".into()));
        };
        // Typed clients write null for what they do not say.
        let key = |name: &str| fields.get(name).filter(|value| !value.is_null());
        let (mut outcome, faults) = if let Some(fail) = key("fail") {
            (Self::Fail(parse_fail(fail)?), Vec::new())
        } else if let Some(has_more) = key("hasMore") {
            canonical(has_more, answer)?
        } else if let Some(code) = key("Code") {
            code::read(code, answer)?
        } else if let Some(done) = key("done") {
            step::read(done, answer)?
        } else {
            return Err(BadOutcome("outcome: has none of `hasMore`, `fail`, `Code` and `done`".into()));
        };
        outcome.take_children(answer)?;
        outcome.check()?;
        Ok((outcome, faults))
    }

    /// Reads `submit` and `wait`, which stand beside the keys of any shape.
    fn take_children(&mut self, answer: &Value) -> Result<(), BadOutcome> {
        let ends = matches!(self, Self::Done { .. });
        if let Some(told) = self.told_mut() {
            told.submit = Child::parse_all(answer.get("submit"))?;
            told.wait = wait(answer.get("wait"))?;
            if ends && told.wait.is_some() {
                return Err(BadOutcome("wait: needs a further chunk, so `hasMore` must be true".into()));
            }
        }
        Ok(())
    }

    /// Holds the documents and children of an outcome against their limits.
    pub fn check(&self) -> Result<(), BadOutcome> {
        if let Some(told) = self.told()
            && told.submit.len() > CHILDREN_PER_CHUNK
        {
            let count = told.submit.len();
            return Err(BadOutcome(format!(
                "submit: has {count} children, the limit of a chunk is {CHILDREN_PER_CHUNK}"
            )));
        }
        match self {
            Self::More { checkpoint, delay_ms, .. } => {
                if !(0..=(limits::DELAY_SECONDS * 1000.0) as i64).contains(delay_ms) {
                    return Err(BadOutcome("nextDelaySeconds: must lie between 0 and 86,400".into()));
                }
                document("checkpoint", checkpoint.as_ref(), limits::CHECKPOINT_BYTES)
            }
            Self::Done { result, .. } => document("result", result.as_ref(), limits::RESULT_BYTES),
            Self::Fail(_) => Ok(()),
        }
    }
}

/// Holds one document against its size in bytes, its depth and the characters that no database keeps.
fn document(name: &str, value: Option<&Value>, cap_bytes: usize) -> Result<(), BadOutcome> {
    let Some(value) = value else { return Ok(()) };
    let text = value.to_string();
    if text.len() > cap_bytes {
        return Err(BadOutcome(format!("{name}: has {} bytes, the limit is {cap_bytes}", text.len())));
    }
    json::check(text.as_bytes(), name, limits::JSON_DEPTH).map_err(|e| BadOutcome(e.to_string()))
}

/// `{"children": true, "onFailure": "fail"}`; a wait that is only half understood is a fault, for the task would go on too
/// early.
fn wait(value: Option<&Value>) -> Result<Option<OnFailure>, BadOutcome> {
    let Some(value) = value.filter(|wait| !wait.is_null()) else { return Ok(None) };
    match (value.get("children").and_then(Value::as_bool), value.get("onFailure")) {
        (Some(false), _) => Ok(None),
        (Some(true), None | Some(Value::Null)) => Ok(Some(OnFailure::default())),
        (Some(true), Some(word)) => match word.as_str().and_then(OnFailure::parse) {
            Some(word) => Ok(Some(word)),
            None => Err(BadOutcome("wait.onFailure: must be `fail`, `ignore` or `collect`".into())),
        },
        (None, _) => Err(BadOutcome("wait: must be an object with `children`: true".into())),
    }
}

fn canonical(has_more: &Value, answer: &Value) -> Result<(Outcome, Vec<FieldFault>), BadOutcome> {
    let Some(has_more) = has_more.as_bool() else {
        return Err(BadOutcome("hasMore: must be true or false".into()));
    };
    let (mut told, mut faults) = told(answer, answer.get("log"));
    told.rows = rows(answer.get("rows"), &mut faults);
    let outcome = if has_more {
        let delay_ms = delay("nextDelaySeconds", answer.get("nextDelaySeconds"), 1_000.0)?;
        Outcome::More { checkpoint: present(answer.get("checkpoint")), delay_ms, told }
    } else {
        Outcome::Done { result: present(answer.get("result")), told }
    };
    Ok((outcome, faults))
}

/// What is told beside the direction: a report in the names of [`Reported::parse`], and lines of log.
fn told(report: &Value, log: Option<&Value>) -> (Told, Vec<FieldFault>) {
    let (report, faults) = match Reported::parse(report) {
        Ok(report) => (report, Vec::new()),
        Err(faults) => (Reported::default(), faults),
    };
    (Told { report, log: lines(log), ..Told::default() }, faults)
}

/// A value that is there and not null.
fn present(value: Option<&Value>) -> Option<Value> {
    value.filter(|v| !v.is_null()).cloned()
}

/// A planned gap in a unit of so many ms; absent = 0. Nothing is taken for a gap that is not one.
fn delay(field: &str, value: Option<&Value>, unit_ms: f64) -> Result<i64, BadOutcome> {
    let Some(value) = value.filter(|v| !v.is_null()) else { return Ok(0) };
    match value.as_f64().map(|n| n * unit_ms) {
        Some(ms) if (0.0..=limits::DELAY_SECONDS * 1_000.0).contains(&ms) => Ok(ms.round() as i64),
        _ => {
            let most = if unit_ms == 1.0 { "86,400,000" } else { "86,400" };
            Err(BadOutcome(format!("{field}: must be a number between 0 and {most}")))
        }
    }
}

fn lines(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(items)) => {
            items.iter().map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)).collect()
        }
        Some(Value::String(line)) => vec![line.clone()],
        _ => Vec::new(),
    }
}

fn rows(value: Option<&Value>, faults: &mut Vec<FieldFault>) -> Rows {
    let Some(value) = value.filter(|v| !v.is_null()) else { return Rows::default() };
    match serde_json::from_value::<Rows>(value.clone()) {
        Ok(rows) if rows.ok >= 0 && rows.skipped >= 0 && rows.failed >= 0 => rows,
        _ => {
            faults.push(FieldFault { field: "rows", reason: "must hold whole numbers of 0 or more" });
            Rows::default()
        }
    }
}

fn parse_fail(fail: &Value) -> Result<Failure, BadOutcome> {
    if !fail.is_object() {
        return Err(BadOutcome("fail: must be an object with `code` and `message`".into()));
    }
    let text = |key: &str| fail.get(key).and_then(Value::as_str).map(str::to_owned);
    let retryable = fail.get("retryable").and_then(Value::as_bool).unwrap_or(false);
    let kind = if retryable { ErrorKind::Handler } else { ErrorKind::Permanent };
    let code = text("code").unwrap_or_else(|| "failed".into());
    let message = text("message").unwrap_or_else(|| "The handler reported a failure without a message.".into());
    let mut failure = Failure::new(kind, &code, message);
    failure.retryable = retryable;
    failure.detail = text("detail").map(|d| tidy(&d, limits::MESSAGE_CHARS));
    failure.retry_after_ms = fail
        .get("retryAfterSeconds")
        .and_then(Value::as_f64)
        .filter(|s| (0.0..=limits::DELAY_SECONDS).contains(s))
        .map(|s| (s * 1000.0).round() as i64);
    Ok(failure)
}

#[cfg(test)]
mod tests;
