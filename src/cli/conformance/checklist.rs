//! The list of promises: one line each, as soon as it is known, and the exit status at the end.

use crate::cli::terminal_text::plain;
use std::io::Write as _;

/// What became of a promise: kept, with what was seen; or not, with what was wrong.
pub(super) type Verdict = Result<String, String>;

/// Counts the promises that were looked at.
#[derive(Debug, Default)]
pub(super) struct Checklist {
    kept: usize,
    faults: usize,
}

impl Checklist {
    /// Tells a promise with its verdict.
    pub(super) fn tell(&mut self, promise: &str, verdict: &Verdict) {
        let (word, seen) = match verdict {
            Ok(seen) => ("ok   ", seen),
            Err(fault) => ("FAULT", fault),
        };
        self.kept += usize::from(verdict.is_ok());
        self.faults += usize::from(verdict.is_err());
        let gap = if seen.is_empty() { "" } else { ": " };
        say(&format!("{word} {promise}{gap}{}", plain(seen)));
    }

    /// Tells how many there were; the exit status.
    pub(super) fn close(self) -> u8 {
        let (kept, faults) = (self.kept, self.faults);
        say(&format!("{kept} kept, {faults} not"));
        u8::from(faults > 0)
    }
}

/// Whoever asked may have closed the output; the exit status is the answer.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
