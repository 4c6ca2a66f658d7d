//! The rules that are measured side by side. All hear the same reports at the same instants, and all are asked for the
//! seconds that are left.
//!
//! The four others are written from what is published about them. `indicatif` is a dependency, but its estimator reads
//! the machine's clock and cannot be driven by another one, so its rule (version 0.18, `state.rs`) is written down here. Beside the
//! crate on the machine's clock it tells the same to a ten-thousandth.

use taskbell::core::eta::{Activity, Estimator, EtaState};
use taskbell::core::progress::Progress;
use taskbell::core::time::Millis;

/// The columns of the table, in the order of [`all`].
pub const NAMES: [&str; 5] = ["taskbell", "plain average", "0.7/0.3 per update", "indicatif", "tqdm"];

/// A rule that is told about one task.
pub trait Rule {
    /// A report of the count, `ms` after the first claim.
    fn report(&mut self, ms: f64, current: f64);

    /// Seconds until `left` more units are done; none where the rule has no answer.
    fn left_seconds(&self, ms: f64, left: f64) -> Option<f64>;
}

/// The rules beside ours.
pub fn others() -> [Box<dyn Rule>; 4] {
    [Box::<PlainAverage>::default(), Box::<PerUpdate>::default(), Box::<Indicatif>::default(), Box::<Tqdm>::default()]
}

/// All time by all units: what most pages do.
#[derive(Default)]
struct PlainAverage {
    current: f64,
}

impl Rule for PlainAverage {
    fn report(&mut self, _: f64, current: f64) {
        self.current = current;
    }

    fn left_seconds(&self, ms: f64, left: f64) -> Option<f64> {
        (self.current > 0.0 && ms > 0.0).then(|| ms / 1_000.0 / self.current * left)
    }
}

/// A rate that keeps 0.7 of itself at each update and takes 0.3 of the newest one, however long that lasted.
#[derive(Default)]
struct PerUpdate {
    last: (f64, f64),
    rate: Option<f64>,
}

impl Rule for PerUpdate {
    fn report(&mut self, ms: f64, current: f64) {
        if ms > self.last.0 {
            let newest = (current - self.last.1).max(0.0) / (ms - self.last.0) * 1_000.0;
            self.rate = Some(self.rate.map_or(newest, |rate| 0.7 * rate + 0.3 * newest));
            self.last = (ms, current);
        }
    }

    fn left_seconds(&self, _: f64, left: f64) -> Option<f64> {
        self.rate.filter(|rate| *rate > 0.0).map(|rate| left / rate)
    }
}

/// A rate smoothed twice by time: what is 15 s old weighs a tenth. Both are divided by the weight that the time since the
/// start can have, and silence counts as an update of no steps.
#[derive(Default)]
struct Indicatif {
    last: (f64, f64),
    smoothed: f64,
    twice: f64,
}

impl Indicatif {
    fn weight(ms: f64) -> f64 {
        0.1_f64.powf(ms / 15_000.0)
    }
}

impl Rule for Indicatif {
    fn report(&mut self, ms: f64, current: f64) {
        let (passed, steps) = (ms - self.last.0, current - self.last.1);
        if passed <= 0.0 || steps <= 0.0 {
            return;
        }
        let weight = Self::weight(passed);
        self.smoothed = self.smoothed * weight + steps / passed * 1_000.0 * (1.0 - weight);
        let normal = self.smoothed / (1.0 - Self::weight(ms));
        self.twice = self.twice * weight + normal * (1.0 - weight);
        self.last = (ms, current);
    }

    fn left_seconds(&self, ms: f64, left: f64) -> Option<f64> {
        let weight = Self::weight(ms - self.last.0);
        let all = 1.0 - Self::weight(ms);
        let once = self.smoothed * weight / all;
        let rate = (self.twice * weight + once * (1.0 - weight)) / all;
        (rate > 0.0).then(|| left / rate)
    }
}

/// Steps and seconds of each update, both smoothed by 0.3 and freed of their start; their quotient is the rate. Updates
/// closer than 0.1 s count together. (What its loop does to call the clock less often is left out: it changes nothing at
/// these rates of reports.)
#[derive(Default)]
struct Tqdm {
    last: (f64, f64),
    steps: f64,
    seconds: f64,
    updates: i32,
}

impl Rule for Tqdm {
    fn report(&mut self, ms: f64, current: f64) {
        let (seconds, steps) = ((ms - self.last.0) / 1_000.0, current - self.last.1);
        if seconds < 0.1 || steps <= 0.0 {
            return;
        }
        self.steps = 0.3 * steps + 0.7 * self.steps;
        self.seconds = 0.3 * seconds + 0.7 * self.seconds;
        self.updates += 1;
        self.last = (ms, current);
    }

    fn left_seconds(&self, ms: f64, left: f64) -> Option<f64> {
        match self.updates {
            // Before the first update that counts it shows the average.
            0 => (self.last.1 > 0.0).then(|| ms / 1_000.0 / self.last.1 * left),
            // The correction of the start is the same for both and falls out of their quotient.
            _ => Some(left * self.seconds / self.steps),
        }
    }
}

/// Ours, told as the engine tells it.
pub struct Ours {
    estimator: Estimator,
    progress: Progress,
    activity: Activity,
}

/// Low, middle and high, in seconds.
pub type Range = [f64; 3];

impl Ours {
    pub fn start() -> Self {
        let mut estimator = Estimator::default();
        estimator.resume_clock(Millis(0));
        Self { estimator, progress: Progress::default(), activity: Activity::Working }
    }

    pub fn report(&mut self, ms: i64, current: i64) {
        self.progress.current = current;
        self.estimator.sample(Millis(ms), current);
    }

    pub fn total(&mut self, total: Option<i64>) {
        self.progress.total = total;
    }

    pub fn gap(&mut self, ms: i64, delay_ms: i64) {
        self.estimator.plan_gap(Millis(ms), delay_ms);
        self.activity = Activity::PlannedGap { until: Millis(ms + delay_ms) };
    }

    pub fn stop(&mut self, ms: i64) {
        self.estimator.pause_clock(Millis(ms));
        self.activity = Activity::RetryWait;
    }

    pub fn go(&mut self, ms: i64) {
        self.estimator.resume_clock(Millis(ms));
        self.activity = Activity::Working;
    }

    /// What the outside is told at an instant; none unless it is an estimate.
    ///
    /// # Panics
    /// When the answer cannot be true: negative, in the past, or a middle outside of its range.
    pub fn left_seconds(&self, ms: i64) -> Option<Range> {
        let eta = self.estimator.read(Millis(ms), &self.progress, self.activity, None);
        (eta.state == EtaState::Estimated).then(|| {
            let number = |n: Option<i64>| n.expect("an estimate has all numbers");
            let [low, middle, high] = [eta.low_seconds, eta.remaining_seconds, eta.high_seconds].map(number);
            let ahead = eta.finish_at.expect("an estimate has an end").since(Millis(ms));
            assert!(1 <= low && low <= middle && middle <= high && ahead >= 1_000, "at {ms} ms: {eta:?}");
            // The middle as an instant is exact to the millisecond; as a number it is rounded to whole seconds.
            [low as f64, ahead as f64 / 1_000.0, high as f64]
        })
    }
}
