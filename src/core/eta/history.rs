//! The path of a task's work so far, count against working time, in at most [`MAX_KNOTS`] points.
//!
//! Each growth adds a point. When they are too many, the one whose neighbours are closest to each other goes: the path
//! stays exact at its ends and keeps its shape at any length, from seconds to weeks. Closeness is measured in time and
//! count alike, so a phase that is quick keeps its points as well as one that is slow. Nothing is lost by reports in
//! quick succession, because a point is a sum and not a rate.

use serde::{Deserialize, Serialize};

/// Points kept.
const MAX_KNOTS: usize = 20;

/// Working ms and count.
pub(super) type Knot = (f64, f64);

/// Points (working ms, count), both growing. The first is the start, the last the newest growth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct History {
    knots: Vec<(i64, i64)>,
}

impl History {
    pub(super) fn from(work_ms: i64, current: i64) -> Self {
        Self { knots: vec![(work_ms, current)] }
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
        self.knots.push((work_ms, current));
        if self.knots.len() > MAX_KNOTS {
            self.thin();
        }
    }

    /// Drops one inner point, an older one rather than a newer. The first growth stays a point of its own.
    fn thin(&mut self) {
        let last = self.knots.len() - 1;
        let span = |from: (i64, i64), to: (i64, i64)| ((to.0 - from.0) as f64, (to.1 - from.1) as f64);
        let (all_ms, all_units) = span(self.knots[0], self.knots[last]);
        let loss = |i: usize| {
            let (ms, units) = span(self.knots[i - 1], self.knots[i + 1]);
            (ms / all_ms.max(1.0) + units / all_units.max(1.0)) * (1.0 + i as f64 / last as f64)
        };
        let least = (2..last).min_by(|a, b| loss(*a).total_cmp(&loss(*b)));
        self.knots.remove(least.expect("more than MAX_KNOTS points have inner ones"));
    }

    /// The path to forecast from. Once there is enough of it, it begins at the first growth: what came before may have
    /// been preparation, and says nothing about the rest.
    pub(super) fn path(&self) -> Vec<Knot> {
        let from = usize::from(self.knots.len() > 5);
        self.knots[from.min(self.knots.len())..].iter().map(|knot| (knot.0 as f64, knot.1 as f64)).collect()
    }
}

/// Working ms per unit over the last `share` of a path, measured in time and count alike. The path has two points or
/// more.
pub(super) fn pace(path: &[Knot], share: f64) -> f64 {
    let (first, last) = (path[0], path[path.len() - 1]);
    let (all_ms, all_units) = ((last.0 - first.0).max(1e-9), last.1 - first.1);
    let reaches = |knot: &&Knot| (last.0 - knot.0) / all_ms + (last.1 - knot.1) / all_units >= 2.0 * share - 1e-9;
    let from = path[..path.len() - 1].iter().rev().find(reaches).unwrap_or(&first);
    (last.0 - from.0).max(1e-3) / (last.1 - from.1)
}
