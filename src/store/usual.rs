//! What an action usually takes, from what its last successes took. Lengths of time are milliseconds.

use crate::core::eta::UnitPrior;

/// What an action usually takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usual {
    /// Median duration of the last 20 successes, ms.
    pub duration_ms: Option<i64>,
    /// The same per unit of progress, for the ETA.
    pub prior: Option<UnitPrior>,
}

/// What one success took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Took {
    /// From the first claim to the end, ms.
    pub duration_ms: i64,
    /// Work and planned gaps alone, ms: without queues, pauses and retries.
    pub active_ms: i64,
    /// Progress at the end.
    pub units: i64,
}

impl Usual {
    /// From the last successes, newest first.
    #[must_use]
    pub fn of(took: &[Took]) -> Self {
        let median = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied()
        };
        let per_unit: Vec<f64> = took
            .iter()
            .filter(|t| t.active_ms > 0 && t.units > 0)
            .map(|t| t.active_ms as f64 / t.units as f64)
            .collect();
        let successes = per_unit.len() as u32;
        Self {
            duration_ms: median(took.iter().map(|t| t.duration_ms as f64).collect()).map(|ms| ms as i64),
            prior: median(per_unit).map(|ms_per_unit| UnitPrior { ms_per_unit, successes }),
        }
    }
}
