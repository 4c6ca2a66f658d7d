//! One chunk: what a handler gets and what it answers, and how an answer that came as JSON is read.
//!
//! The shape of an answer is told by its key. This version knows the canonical shape (`hasMore`, `fail`); anything else
//! is the failure `bad-outcome`. Unknown fields are ignored. A fault in a progress number never fails the chunk's own
//! work: the number is dropped and the fault goes to the log. A fault in what drives the work (hasMore, checkpoint, delay)
//! fails the chunk.

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

    /// The work is done, with a result document; `null` = without one.
    #[must_use]
    pub fn done(result: Value) -> Self {
        Self::Done { result: Some(result).filter(|r| !r.is_null()), told: Told::default() }
    }

    /// Tells how far the work is when this chunk is committed: units done, units in all if known, and their name. A
    /// failure tells no progress and stays as it is.
    #[must_use]
    pub fn counted(mut self, current: i64, total: Option<i64>, unit: &str) -> Self {
        if let Self::More { told, .. } | Self::Done { told, .. } = &mut self {
            told.report.current = Some(current);
            told.report.total = Some(total);
            told.report.unit = Some(Some(tidy(unit, MAX_UNIT_CHARS)));
        }
        self
    }

    /// Reads an answer that came as JSON. Beside the outcome come the faults of dropped progress fields.
    pub fn parse(answer: &Value) -> Result<(Self, Vec<FieldFault>), BadOutcome> {
        let Some(fields) = answer.as_object() else {
            return Err(BadOutcome("outcome: must be an object with `hasMore` or `fail`".into()));
        };
        if let Some(fail) = fields.get("fail") {
            return Ok((Self::Fail(parse_fail(fail)?), Vec::new()));
        }
        let Some(has_more) = fields.get("hasMore") else {
            return Err(BadOutcome("outcome: has neither `hasMore` nor `fail`".into()));
        };
        let Some(has_more) = has_more.as_bool() else {
            return Err(BadOutcome("hasMore: must be true or false".into()));
        };
        let (report, mut faults) = match Reported::parse(answer) {
            Ok(report) => (report, Vec::new()),
            Err(faults) => (Reported::default(), faults),
        };
        let told = Told { report, log: lines(fields.get("log")), rows: rows(fields.get("rows"), &mut faults) };
        let outcome = if has_more {
            let checkpoint = fields.get("checkpoint").filter(|c| !c.is_null()).cloned();
            let delay_ms = delay(fields.get("nextDelaySeconds"))?;
            Self::More { checkpoint, delay_ms, told }
        } else {
            Self::Done { result: fields.get("result").filter(|r| !r.is_null()).cloned(), told }
        };
        outcome.check()?;
        Ok((outcome, faults))
    }

    /// Holds the documents of an outcome against their limits.
    pub fn check(&self) -> Result<(), BadOutcome> {
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

fn delay(value: Option<&Value>) -> Result<i64, BadOutcome> {
    match value {
        None | Some(Value::Null) => Ok(0),
        Some(v) => match v.as_f64() {
            Some(s) if (0.0..=limits::DELAY_SECONDS).contains(&s) => Ok((s * 1000.0).round() as i64),
            _ => Err(BadOutcome("nextDelaySeconds: must be a number between 0 and 86,400".into())),
        },
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
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn more_with_a_fractional_delay_and_no_checkpoint_keeps_the_old_one() {
        let (outcome, faults) =
            Outcome::parse(&json!({"hasMore": true, "nextDelaySeconds": 0.25, "current": 3, "later": 1})).unwrap();
        assert!(faults.is_empty());
        assert!(matches!(outcome, Outcome::More { checkpoint: None, delay_ms: 250, .. }));
    }

    #[test]
    fn an_answer_without_a_known_key_is_a_bad_outcome() {
        for answer in [json!(null), json!([]), json!("x"), json!({}), json!({"done": true}), json!({"hasMore": "yes"})]
        {
            assert!(Outcome::parse(&answer).is_err(), "{answer}");
        }
    }

    #[test]
    fn an_outcome_that_is_built_is_the_one_that_is_read() {
        for (built, read) in [
            (
                Outcome::more(json!({"row": 9})).counted(9, Some(20), "rows"),
                json!({"hasMore": true, "checkpoint": {"row": 9}, "current": 9, "total": 20, "unit": "rows"}),
            ),
            (
                Outcome::done(json!({"written": 20})).counted(20, Some(20), "rows"),
                json!({"hasMore": false, "result": {"written": 20}, "current": 20, "total": 20, "unit": "rows"}),
            ),
            (Outcome::done(Value::Null), json!({"hasMore": false})),
        ] {
            assert_eq!(Outcome::parse(&read), Ok((built, Vec::new())));
        }
        let failed = Outcome::Fail(Failure::new(ErrorKind::Handler, "x", "no"));
        assert_eq!(failed.clone().counted(9, None, "rows"), failed);
    }

    #[test]
    fn a_delay_outside_a_day_is_a_bad_outcome_that_names_field_and_limit() {
        for delay in [json!(-1), json!(86_401), json!("5"), json!(f64::MAX)] {
            let e = Outcome::parse(&json!({"hasMore": true, "nextDelaySeconds": delay})).unwrap_err();
            assert!(e.0.contains("nextDelaySeconds") && e.0.contains("86,400"), "{e}");
        }
        assert!(Outcome::parse(&json!({"hasMore": true, "nextDelaySeconds": 86_400})).is_ok());
    }

    #[test]
    fn a_checkpoint_is_taken_at_its_cap_and_refused_one_above() {
        let at = "x".repeat(limits::CHECKPOINT_BYTES - 2);
        assert!(Outcome::parse(&json!({"hasMore": true, "checkpoint": at})).is_ok());
        let above = "x".repeat(limits::CHECKPOINT_BYTES - 1);
        let e = Outcome::parse(&json!({"hasMore": true, "checkpoint": above})).unwrap_err();
        assert!(e.0.contains("262145") && e.0.contains("262144"), "{e}");
    }

    #[test]
    fn a_bad_progress_number_is_dropped_and_named_but_the_work_counts() {
        let (outcome, faults) =
            Outcome::parse(&json!({"hasMore": true, "current": "7", "checkpoint": {"n": 1}})).unwrap();
        assert_eq!(faults.len(), 1);
        assert!(matches!(outcome, Outcome::More { checkpoint: Some(_), .. }));
    }

    #[test]
    fn an_error_text_is_cut_between_characters_and_marked() {
        let long = format!("a{}", "界".repeat(65_535 / 3));
        let failure = Failure::new(ErrorKind::Handler, "x", long);
        assert_eq!(failure.message.chars().count(), limits::MESSAGE_CHARS);
        assert!(failure.message.ends_with('…'));
    }
}
