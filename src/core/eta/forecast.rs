//! From the path of the work so far to the working time that is left.
//!
//! Four models each make a guess. How far each is believed is tested on the task's own past: standing at an earlier
//! point and knowing only what came before, how well would it have foretold the time from there to now?
//! The middle is the geometric mean of the guesses by belief. The spread adds what the models missed by on that past,
//! how much they disagree, and how much one stretch of work differs from the next. For the spread those tests count
//! most whose way to now was about as long, relative to what lay behind, as the way ahead is today.

use super::history::{Knot, pace};
use super::{Basis, UnitPrior};

/// Time left: its middle, the standard deviation of its logarithm, and what it stands on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forecast {
    pub(super) middle_ms: f64,
    pub(super) spread: f64,
    pub(super) basis: Basis,
}

/// ln 9, by what the standard deviation of a normal distribution that leaves as much below and above its middle 80 % is
/// to be divided.
const STEEPNESS: f64 = 2.1972 / 1.2816;
/// Wider ranges say nothing more.
const MAX_SPREAD: f64 = 1.5;

impl Forecast {
    /// Low, middle and high of what is left when `passed_ms` of it went by without an end.
    ///
    /// Not simply the difference: a task that is still at work after the time it was given was given too little, and how
    /// much more it needs follows from how sure that was. The time is taken to be log-logistic, so that the quantiles of
    /// what is longer than `passed_ms` have a closed form.
    pub(super) fn rest_ms(&self, passed_ms: f64) -> [f64; 3] {
        let steep = STEEPNESS / self.spread.min(MAX_SPREAD);
        let over = 1.0 / (1.0 + (passed_ms / self.middle_ms).powf(-steep));
        [0.1, 0.5, 0.9].map(|share| {
            // The odds of `over + share · (1 − over)`, without its loss of digits near 1.
            let odds = (over / (1.0 - over).max(1e-12) + share) / (1.0 - share);
            (self.middle_ms * odds.powf(1.0 / steep) - passed_ms).max(0.0)
        })
    }
}

const MODELS: usize = 4;
/// Belief in the models before any test: the mean, the last half, the last eighth, the trend.
const BELIEF: [f64; MODELS] = [1.0, 0.4, 0.3, 0.8];
/// A miss of this size (in the logarithm) begins to count against a model. Far larger ones count hardly more: when the
/// speed itself changed, every model missed, and that says nothing about which one is right now.
const MISS: f64 = 0.06;
/// How sharply tests decide between the models.
const SHARPNESS: f64 = 1.2;
/// How quickly a test loses weight for the spread as its way to now differs, relatively, from the way ahead; in the logarithm.
const RELEVANCE: f64 = 1.5;
/// What a step back in the path leaves of the weight of a miss, so that an old change of speed is forgiven.
const FORGIVE: f64 = 0.85;
/// No estimate claims to be better than this.
const LEAST_SPREAD: f64 = 0.03;
/// The doubt of a single sample; shrinks with their number.
const SMALL_SAMPLE: f64 = 0.2;
/// The factor by which the trend may change the pace from now to the end.
const MAX_DRIFT: f64 = 3.0;

/// What the measured path alone says about `left` more units (above 0). `path` has at least two points.
pub(super) fn measured(path: &[Knot], left: f64, samples: u32) -> Forecast {
    let last = path.len() - 1;
    let done = path[last].1 - path[0].1;
    let (mut loss, mut missed, mut weight) = ([0.0; MODELS], [0.0; MODELS], 0.0);
    for i in 2..last {
        let (way, behind) = (path[last].1 - path[i].1, path[i].1 - path[0].1);
        let actual_ms = path[last].0 - path[i].0;
        if actual_ms <= 0.0 {
            continue;
        }
        let unlike = ((way / behind) / (left / done)).ln() / RELEVANCE;
        let relevant = (-unlike * unlike / 2.0).exp().max(0.02);
        let fresh = relevant * FORGIVE.powf((last - i) as f64);
        for (model, guess_ms) in guesses(&path[..=i], way).into_iter().enumerate() {
            let error = (guess_ms / actual_ms).ln();
            loss[model] += (error / MISS).powi(2).ln_1p();
            missed[model] += fresh * error.abs();
        }
        weight += fresh;
    }
    let least = loss.iter().copied().fold(f64::INFINITY, f64::min);
    let mut belief = BELIEF;
    for (belief, loss) in belief.iter_mut().zip(loss) {
        *belief *= (-SHARPNESS * (loss - least)).exp();
    }
    let all: f64 = belief.iter().sum();
    let logs = guesses(path, left).map(f64::ln);
    let middle: f64 = (0..MODELS).map(|m| belief[m] / all * logs[m]).sum();
    let variance: f64 = (0..MODELS)
        .map(|m| {
            // A mean absolute error as a standard deviation.
            let missed = if weight > 0.0 { 1.25 * missed[m] / weight } else { 0.0 };
            belief[m] / all * ((logs[m] - middle).powi(2) + missed * missed)
        })
        .sum();
    let few = SMALL_SAMPLE / f64::from(samples.max(1));
    let noise = unevenness(path) * (1.0 / done + 1.0 / left);
    Forecast {
        middle_ms: middle.exp(),
        spread: (1.5 * variance + noise.min(1.0) + few * few + LEAST_SPREAD * LEAST_SPREAD).sqrt(),
        basis: Basis::Measured,
    }
}

/// Each model's time for `units` more, in ms, above 0.
fn guesses(path: &[Knot], units: f64) -> [f64; MODELS] {
    let [mean, half, eighth] = [1.0, 0.5, 0.125].map(|share| pace(path, share));
    [mean * units, half * units, eighth * units, trend(path, mean, units)].map(|ms| ms.max(1e-3))
}

/// A straight line through the pace of the stretches against the count, weighted by their units and followed to the
/// end. The slope is shrunk by its own uncertainty, so that noise makes no trend.
fn trend(path: &[Knot], mean: f64, units: f64) -> f64 {
    let stretches = path.len() - 1;
    if stretches < 3 {
        return mean * units;
    }
    let steps = || {
        path.windows(2).map(|k| {
            let grew = k[1].1 - k[0].1;
            (k[0].1.midpoint(k[1].1), (k[1].0 - k[0].0) / grew, grew)
        })
    };
    let done = path[stretches].1 - path[0].1;
    let centre = steps().map(|(at, _, grew)| grew * at).sum::<f64>() / done;
    let (mut width, mut slope) = (0.0, 0.0);
    for (at, pace, grew) in steps() {
        width += grew * (at - centre).powi(2);
        slope += grew * (at - centre) * (pace - mean);
    }
    slope /= width;
    let rest: f64 = steps().map(|(at, pace, grew)| grew * (pace - mean - slope * (at - centre)).powi(2)).sum();
    let doubt = rest / (stretches as f64 - 2.0) / width;
    slope *= (1.0 - 2.0 * doubt / (slope * slope).max(1e-30)).max(0.0);
    let now = (mean + slope * (path[stretches].1 - centre)).max(mean / 5.0);
    let end = (now + slope * units).clamp(now / MAX_DRIFT, now * MAX_DRIFT);
    now.midpoint(end) * units
}

/// The relative variance of one unit's cost, from the differences of neighbouring stretches: drift cancels out of them.
fn unevenness(path: &[Knot]) -> f64 {
    let pairs = path.windows(3).map(|k| {
        let (a, b) = (k[1].1 - k[0].1, k[2].1 - k[1].1);
        let both = (k[2].0 - k[0].0).max(1.0) / (a + b);
        let differ = ((k[2].0 - k[1].0) / b - (k[1].0 - k[0].0) / a) / both;
        differ * differ / (1.0 / a + 1.0 / b)
    });
    pairs.sum::<f64>() / (path.len().max(3) - 2) as f64
}

/// How far, as a log ratio, a history may lie from the measurement before it loses half of its certainty.
const PRIOR_APART: f64 = 1.0;

/// Mixes in what earlier tasks of the action took for the rest, each by its certainty. The prior fades with samples;
/// the measurement is trusted less while little of the work is behind it, because the rest may be different.
pub(super) fn with_prior(
    measured: Forecast,
    prior_ms: f64,
    prior: UnitPrior,
    samples: u32,
    done_share: f64,
) -> Forecast {
    if !(prior_ms.is_finite() && prior_ms > 0.0) {
        return measured;
    }
    let n = f64::from(samples.max(1));
    let unseen = 0.3 * (1.0 - done_share);
    let sure = 1.0 / (measured.spread.powi(2) + unseen * unseen * 3.0 / n);
    let usual = 1.0 / (0.04 * (1.0 + 2.0 / f64::from(prior.successes.max(1)))) * 8.0 / (8.0 + n);
    let apart = (prior_ms / measured.middle_ms).ln();
    // A history that says something quite different was of other work (small files, another machine): it counts for little.
    let usual = usual / (1.0 + (apart / PRIOR_APART).powi(2));
    let share = usual / (usual + sure);
    let variance = (1.0 - share) * measured.spread.powi(2) + share * 0.04 + share * (1.0 - share) * apart * apart;
    Forecast {
        middle_ms: measured.middle_ms * (share * apart).exp(),
        spread: variance.sqrt(),
        basis: if share > 0.5 { Basis::History } else { Basis::Measured },
    }
}
