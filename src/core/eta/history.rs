//! The path of a task's work so far, count against working time, in at most [`MAX_KNOTS`] points.
//!
//! Each growth adds a point. When they are too many, every second one goes and later points that come closer than the
//! spacing replace the last one: the path stays exact at its ends and keeps its shape at any length, from seconds to
//! weeks. Nothing is lost by reports in quick succession, because a point is a sum and not a rate.

use serde::{Deserialize, Serialize};

/// Points kept; at least half as many stay after thinning.
const MAX_KNOTS: usize = 24;

/// Points (working ms, count), both growing. The first is the start, the last the newest growth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct History {
    knots: Vec<(i64, i64)>,
    spacing_ms: i64,
}

impl History {
    pub(super) fn from(work_ms: i64, current: i64) -> Self {
        Self { knots: vec![(work_ms, current)], spacing_ms: 0 }
    }

    /// The count after the newest growth.
    pub(super) fn current(&self) -> i64 {
        self.knots.last().map_or(0, |knot| knot.1)
    }

    /// The working time at the newest growth.
    pub(super) fn moved_ms(&self) -> i64 {
        self.knots.last().map_or(0, |knot| knot.0)
    }

    pub(super) fn push(&mut self, work_ms: i64, current: i64) {
        if self.knots.is_empty() {
            self.knots.push((0, 0));
        }
        let n = self.knots.len();
        // The first growth stays a point of its own: what came before it may have been preparation.
        if n > 2 && self.knots[n - 1].0 - self.knots[n - 2].0 < self.spacing_ms {
            self.knots[n - 1] = (work_ms, current);
        } else {
            self.knots.push((work_ms, current));
        }
        if self.knots.len() > MAX_KNOTS {
            let last = self.knots.len() - 1;
            let mut i = 0;
            self.knots.retain(|_| {
                i += 1;
                i <= 2 || i == last + 1 || i % 2 == 0
            });
            self.spacing_ms = (work_ms - self.knots[1].0) / (MAX_KNOTS as i64 / 2);
        }
    }

    pub(super) fn knots(&self) -> &[(i64, i64)] {
        &self.knots
    }

    /// Working ms per unit over the last half of the working time.
    pub(super) fn recent_ms_per_unit(&self) -> f64 {
        let (Some(first), Some(last)) = (self.knots.first(), self.knots.last()) else {
            return f64::INFINITY;
        };
        let half = first.0.midpoint(last.0);
        let from = self.knots.iter().rev().find(|k| k.0 <= half).unwrap_or(first);
        (last.0 - from.0) as f64 / (last.1 - from.1) as f64
    }
}
