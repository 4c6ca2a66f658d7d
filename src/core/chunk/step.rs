//! The shape told by `done`: `{done, cursor, progress, message, delayMS, result}`, as step functions answer that are called
//! with their last cursor until they are done.
//!
//! `cursor` is the checkpoint. `progress` is a percentage: n counts as n of 100, unit "percent". `delayMS` is in
//! milliseconds, up to a day.

use super::{BadOutcome, FieldFault, Outcome, delay, present, told};
use serde_json::{Map, Value, json};

/// Reads an answer that has a `done`.
pub(super) fn read(done: &Value, answer: &Value) -> Result<(Outcome, Vec<FieldFault>), BadOutcome> {
    let Some(done) = done.as_bool() else {
        return Err(BadOutcome("done: must be true or false".into()));
    };
    let mut report = Map::new();
    if let Some(percent) = present(answer.get("progress")) {
        report.insert("current".into(), percent);
        report.insert("total".into(), json!(100));
        report.insert("unit".into(), json!("percent"));
    }
    report.extend(answer.get("message").map(|message| ("message".to_owned(), message.clone())));
    let (told, mut faults) = told(&Value::Object(report), answer.get("log"));
    for fault in &mut faults {
        fault.field = if fault.field == "current" { "progress" } else { fault.field };
    }
    let outcome = if done {
        Outcome::Done { result: present(answer.get("result")), told }
    } else {
        let delay_ms = delay("delayMS", answer.get("delayMS"), 1.0)?;
        Outcome::More { checkpoint: present(answer.get("cursor")), delay_ms, told }
    };
    Ok((outcome, faults))
}
