//! An answer that came as bytes from outside of the process, read into an outcome: the same limits for every kind of
//! handler that is not Rust.

use super::ChunkContext;
use crate::core::chunk::{Failure, Outcome};
use crate::core::json::{self, JsonFault};
use crate::core::progress::FieldFault;
use crate::core::task::{ErrorKind, limits};
use serde_json::Value;

/// The longest answer, bytes.
pub const ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// Lines of log in one answer, and the bytes of all.
const LOG_LINES: usize = 2_000;
const LOG_BYTES: usize = 1024 * 1024;

/// The failure of an answer that is no outcome.
#[must_use]
pub fn bad_outcome(reason: impl Into<String>) -> Failure {
    Failure::new(ErrorKind::BadOutcome, "bad-outcome", reason)
}

/// The outcome of an answer, and what was dropped from its progress.
///
/// # Errors
/// The failure `bad-outcome`, which names what is wrong.
pub fn parse(answer: &[u8]) -> Result<(Outcome, Vec<FieldFault>), Failure> {
    // One level is the outcome's own. U+0000 is replaced in what is told; documents are held against it by themselves.
    match json::check(answer, "outcome", limits::JSON_DEPTH + 1) {
        Ok(()) | Err(JsonFault::Nul { .. }) => {}
        Err(fault) => return Err(bad_outcome(fault.to_string())),
    }
    let answer: Value = serde_json::from_slice(answer).map_err(|e| bad_outcome(format!("outcome: {e}")))?;
    let (mut outcome, faults) = Outcome::parse(&answer).map_err(|fault| bad_outcome(fault.0))?;
    if let Some(told) = outcome.told_mut() {
        shorten(&mut told.log);
    }
    Ok((outcome, faults))
}

/// Tells the task's log what was dropped from a report.
pub fn warn_of(cx: &ChunkContext, faults: &[FieldFault]) {
    for fault in faults {
        cx.log_at("warn", format!("dropped from the progress: {fault}"));
    }
}

fn shorten(lines: &mut Vec<String>) {
    let mut bytes = 0;
    let fit = lines.iter().take(LOG_LINES).take_while(|line| {
        bytes += line.len();
        bytes <= LOG_BYTES
    });
    let kept = fit.count();
    let cut = lines.len() - kept;
    if cut > 0 {
        lines.truncate(kept);
        lines.push(format!("{cut} more lines of the answer were cut"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_log_of_an_answer_is_cut_with_a_line_that_says_so() {
        let many = json!({"hasMore": false, "log": vec!["x"; LOG_LINES + 5]});
        let long = json!({"hasMore": false, "log": ["x".repeat(LOG_BYTES), "y"]});
        for (answer, kept, last) in [(many, LOG_LINES, "5 more lines"), (long, 1, "1 more lines")] {
            let Ok((Outcome::Done { told, .. }, _)) = parse(answer.to_string().as_bytes()) else { panic!("done") };
            assert_eq!(told.log.len(), kept + 1);
            assert!(told.log[kept].starts_with(last), "{}", told.log[kept]);
        }
    }

    #[test]
    fn what_is_no_outcome_is_told_by_what_is_wrong_with_it() {
        let deep = format!("{{\"hasMore\":true,\"checkpoint\":{}1{}}}", "[".repeat(70), "]".repeat(70));
        for (answer, told) in [
            ("", "JSON"),
            ("{\"hasMore\":tru", "JSON"),
            ("<html>", "JSON"),
            ("[]", "outcome"),
            ("null", "outcome"),
            ("{}", "hasMore"),
            ("{\"hasMore\":1}", "hasMore"),
            ("{\"hasMore\":true,\"hasMore\":false}", "hasMore"),
            (&deep, "deeper"),
        ] {
            let failure = parse(answer.as_bytes()).unwrap_err();
            assert!(failure.kind == ErrorKind::BadOutcome && !failure.retryable, "{answer}");
            assert!(failure.message.contains(told), "{answer}: {}", failure.message);
        }
    }
}
