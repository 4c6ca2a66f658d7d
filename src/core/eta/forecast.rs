//! From the path of the work so far to the working time that is left.

use super::history::History;
use super::{Basis, UnitPrior};

/// Working time left: its middle, and the standard deviation of its logarithm.
pub(super) struct Forecast {
    pub(super) middle_ms: f64,
    pub(super) spread: f64,
    pub(super) basis: Basis,
}

pub(super) fn work_ms(history: &History, left: i64, prior: Option<UnitPrior>) -> Forecast {
    let knots = history.knots();
    let (first, last) = (knots[0], knots[knots.len() - 1]);
    let pace = (last.0 - first.0) as f64 / (last.1 - first.1) as f64;
    let _ = prior;
    Forecast { middle_ms: pace * left as f64, spread: 0.15, basis: Basis::Measured }
}
