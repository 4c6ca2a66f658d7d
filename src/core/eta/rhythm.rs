//! The beat of a task: how long it is usually silent, and which planned gaps lie between its chunks.

use serde::{Deserialize, Serialize};

/// No silence below this is called a stall.
const MIN_QUIET_MS: f64 = 5_000.0;
/// Silences of this many usual gaps are.
const QUIET_GAPS: f64 = 3.0;
/// What one more sample leaves of the weight of those before it.
const KEEP: f64 = 0.9;

/// Sums that fade with each sample; all in ms or units.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Rhythm {
    /// Σ of silences, and Σ of their squares.
    quiet: f64,
    quiet_squares: f64,
    /// Planned gaps: how many, how long in all, and the units worked before them.
    gaps: f64,
    gap_ms: f64,
    gap_units: f64,
    /// The last planned gap: how long, and the count when it began.
    last_gap_ms: i64,
    gap_at: i64,
}

impl Rhythm {
    pub(super) fn from(current: i64) -> Self {
        Self { gap_at: current, ..Self::default() }
    }

    pub(super) fn grew(&mut self, quiet_ms: i64) {
        let quiet_ms = quiet_ms as f64;
        self.quiet = (self.quiet * KEEP + quiet_ms).round();
        self.quiet_squares = (self.quiet_squares * KEEP + quiet_ms * quiet_ms).round();
    }

    pub(super) fn gap_planned(&mut self, ms: i64, current: i64) {
        self.gaps = rounded(self.gaps * KEEP + 1.0);
        self.gap_ms = rounded(self.gap_ms * KEEP + ms as f64);
        self.gap_units = rounded(self.gap_units * KEEP + (current - self.gap_at).max(0) as f64);
        self.gap_at = current;
        self.last_gap_ms = ms;
    }

    /// The silence in which a watcher finds the task at a random moment: long gaps count by their length, so that the
    /// pause after a burst is usual although most reports of the burst follow each other closely.
    pub(super) fn usual_gap_ms(&self) -> f64 {
        if self.quiet > 0.0 { self.quiet_squares / self.quiet } else { 0.0 }
    }

    /// The usual planned gap; 0 without any.
    pub(super) fn mean_gap_ms(&self) -> f64 {
        if self.gaps > 0.0 { self.gap_ms / self.gaps } else { 0.0 }
    }

    pub(super) fn quiet_limit_ms(&self) -> i64 {
        (QUIET_GAPS * self.usual_gap_ms().max(self.last_gap_ms as f64)).max(MIN_QUIET_MS).round() as i64
    }

    /// Planned time per unit.
    pub(super) fn gap_ms_per_unit(&self) -> f64 {
        if self.gap_units > 0.0 { self.gap_ms / self.gap_units } else { 0.0 }
    }

    /// The planned gaps that lie ahead until `left` more units are done; none follows the last chunk.
    pub(super) fn gaps_ms(&self, current: i64, left: i64) -> f64 {
        if self.gaps <= 0.0 || self.gap_units <= 0.0 {
            return 0.0;
        }
        let chunk = self.gap_units / self.gaps;
        let chunks_left = ((current - self.gap_at + left) as f64 / chunk - 0.05).ceil();
        (chunks_left - 1.0).max(0.0) * self.mean_gap_ms()
    }
}

/// Short in JSON, exact enough.
fn rounded(x: f64) -> f64 {
    (x * 1_000.0).round() / 1_000.0
}
