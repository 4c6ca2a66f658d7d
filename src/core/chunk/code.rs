//! The shape told by `Code`: `{Code, Msg, Data, DataAppend}`, as scripts of the V8 form and services in their style answer.
//!
//! `Code` 1 is a success. Whether there is more stands in an object `BackgroundTask`, looked for in the answer itself, in
//! `Data` and in `DataAppend`: `{HasMore, Checkpoint, Current, Total, Progress, NextDelaySeconds, Msg, Log}`. Without it, or
//! without more, the work is done and what else `Data` holds is the result. Any other `Code` is a failure, whatever stands
//! beside it. Such answers come from systems that write numbers as text here and there, so `"1"` is a number where one
//! is due; what is no number at all is never read as one.

use super::{BadOutcome, Failure, FieldFault, Outcome, Told, delay, present, told};
use crate::core::progress::tidy;
use crate::core::task::{ErrorKind, limits};
use serde_json::{Map, Value, json};

/// A field of a report in the names of this shape.
const NAMES: [(&str, &str); 3] = [("current", "Current"), ("total", "Total"), ("message", "Msg")];

/// Reads an answer that has a `Code`.
pub(super) fn read(code: &Value, answer: &Value) -> Result<(Outcome, Vec<FieldFault>), BadOutcome> {
    if !is_one(code) {
        return Ok((Outcome::Fail(failure(code, answer)), Vec::new()));
    }
    let places = [Some(answer), answer.get("Data"), answer.get("DataAppend")];
    let task = places.into_iter().flatten().find_map(|place| place.get("BackgroundTask")).filter(|t| t.is_object());
    let nothing = Value::Null;
    let task = task.unwrap_or(&nothing);
    let (told, faults) = said(task, answer);
    let outcome = if is_set(task.get("HasMore"))? {
        let gap = task.get("NextDelaySeconds").map(number);
        let delay_ms = delay("NextDelaySeconds", gap.as_ref(), 1_000.0)?;
        Outcome::More { checkpoint: present(task.get("Checkpoint")), delay_ms, told }
    } else {
        Outcome::Done { result: result(answer.get("Data")), told }
    };
    Ok((outcome, faults))
}

/// The progress, the words and the lines of an answer.
fn said(task: &Value, answer: &Value) -> (Told, Vec<FieldFault>) {
    let mut report = Map::new();
    let counts = [("current", task.get("Current")), ("total", task.get("Total"))];
    for (name, count) in counts {
        report.extend(present(count).map(|count| (name.to_owned(), number(&count))));
    }
    if report.is_empty()
        && let Some(percent) = present(task.get("Progress"))
    {
        report.insert("current".into(), number(&percent));
        report.insert("total".into(), json!(100));
        report.insert("unit".into(), json!("percent"));
    }
    let words = [task.get("Msg"), answer.get("Msg")];
    let message = words.into_iter().flatten().find(|m| m.as_str().is_some_and(|m| !m.is_empty()));
    report.extend(message.map(|message| ("message".to_owned(), message.clone())));
    let (told, mut faults) = told(&Value::Object(report), task.get("Log").or_else(|| task.get("AppendLog")));
    for fault in &mut faults {
        let own = NAMES.iter().find(|(canonical, _)| *canonical == fault.field);
        fault.field = own.map_or(fault.field, |(_, own)| own);
    }
    (told, faults)
}

/// `Data` without what was for taskbell; none when nothing is left.
fn result(data: Option<&Value>) -> Option<Value> {
    let mut data = present(data)?;
    if let Some(fields) = data.as_object_mut()
        && fields.remove("BackgroundTask").is_some()
        && fields.is_empty()
    {
        return None;
    }
    Some(data)
}

/// A failure. Trying again is for answers that say `Retryable`, in themselves or in their `Data` or `DataAppend`; a limit
/// that a nested script has hit and that is passed on keeps its own code.
fn failure(code: &Value, answer: &Value) -> Failure {
    let (data, append) = (answer.get("Data"), answer.get("DataAppend"));
    let places = [Some(answer), data, append];
    let retryable = places.iter().flatten().any(|place| is_set(place.get("Retryable")) == Ok(true));
    let shown = code.as_str().map_or_else(|| code.to_string(), str::to_owned);
    let message = answer.get("Msg").and_then(Value::as_str).filter(|m| !m.is_empty());
    let message =
        message.map_or_else(|| format!("The handler answered Code {shown} without a message."), str::to_owned);
    let limit = append.and_then(|a| a.get("V8Limit")).and_then(|l| l.get("Code")).and_then(Value::as_str);
    let kind = match (limit, retryable) {
        (Some(_), _) => ErrorKind::Budget,
        (None, true) => ErrorKind::Handler,
        (None, false) => ErrorKind::Permanent,
    };
    let mut failure = Failure::new(kind, limit.unwrap_or(&format!("code-{shown}")), message);
    failure.retryable = retryable;
    failure.detail = places[1..]
        .iter()
        .flatten()
        .find(|place| !place.is_null())
        .map(|place| tidy(&place.to_string(), limits::MESSAGE_CHARS));
    failure
}

fn is_one(code: &Value) -> bool {
    number(code).as_f64() == Some(1.0)
}

/// Whether a flag is set. An answer that says neither yes nor no is not taken for an end.
fn is_set(flag: Option<&Value>) -> Result<bool, BadOutcome> {
    match flag {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(Value::String(text)) if text.is_empty() || text.eq_ignore_ascii_case("false") => Ok(false),
        Some(other) => match number(other).as_f64() {
            Some(1.0) => Ok(true),
            Some(0.0) => Ok(false),
            _ => Err(BadOutcome("HasMore: must be true or false".into())),
        },
    }
}

/// A number that may have come as text; everything else stays what it is.
fn number(value: &Value) -> Value {
    let read = value.as_str().map(str::trim).filter(|text| text.starts_with(|c: char| c.is_ascii_digit() || c == '-'));
    match read.and_then(|text| serde_json::from_str::<serde_json::Number>(text).ok()) {
        Some(number) => Value::Number(number),
        None => value.clone(),
    }
}
