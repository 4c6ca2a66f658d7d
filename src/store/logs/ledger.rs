//! What becomes of appended lines: numbers, tokens, caps. Decided once, for every kind of log store.
//!
//! Pure: works on a head that was loaded under the writer's lock and is written back by it. Invariant of a head:
//! `newest` = lines stored + `dropped`, so each lost line is a number that is missing.

use super::{Append, Appended, LogLimits, NewLine};
use crate::core::ids::TaskId;
use crate::core::logline;

/// What a line costs beside its text, so that empty lines are bounded too.
const ROW_BYTES: i64 = 64;

/// What is known of one task's log. Sizes in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// Whose; empty until the first line.
    pub tenant: String,
    /// The newest fencing token that wrote.
    pub token: i64,
    /// The newest number given out.
    pub newest: i64,
    /// What its lines hold.
    pub bytes: i64,
    /// Lines dropped by a cap or lost by a fault.
    pub dropped: i64,
}

/// A line with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub task: TaskId,
    pub seq: i64,
    pub bytes: i64,
    pub line: NewLine,
}

impl Head {
    /// Takes lines in, as far as the tenant has room: `rows` gets those that are to be stored.
    pub(super) fn admit(
        &mut self,
        tenant_bytes: &mut i64,
        limits: &LogLimits,
        append: Append,
        rows: &mut Vec<Row>,
    ) -> Appended {
        if append.token.0 < self.token {
            return Appended::Stale;
        }
        self.token = append.token.0;
        self.tenant = append.tenant;
        let first = self.newest + 1;
        for mut line in append.lines {
            self.newest += 1;
            line.message = logline::fit(line.message);
            let bytes = bytes_of(&line.message);
            if *tenant_bytes + bytes > limits.tenant_bytes {
                self.dropped += 1;
                continue;
            }
            self.bytes += bytes;
            *tenant_bytes += bytes;
            rows.push(Row { task: append.task, seq: self.newest, bytes, line });
        }
        Appended::From(first)
    }

    /// How many bytes of the oldest lines have to go; 0 = none. A little more than is needed goes at once, so that a task
    /// at its cap does not pay for a deletion with each append.
    pub(super) fn excess(&self, limits: &LogLimits) -> i64 {
        if self.bytes <= limits.task_bytes { 0 } else { self.bytes - limits.task_bytes + limits.task_bytes / 64 }
    }

    /// Lets go of lines that were stored.
    pub(super) fn let_go(&mut self, tenant_bytes: &mut i64, lines: i64, bytes: i64) {
        self.dropped += lines;
        self.bytes -= bytes;
        *tenant_bytes -= bytes;
    }

    /// Counts lines that never arrived.
    pub(super) fn lose(&mut self, count: i64) {
        self.newest += count.max(0);
        self.dropped += count.max(0);
    }
}

/// What a line holds.
pub(super) fn bytes_of(message: &str) -> i64 {
    ROW_BYTES + i64::try_from(message.len()).expect("a line is capped")
}
