//! When a task will be done: a range with a middle, withdrawn as soon as it would be a guess.
//!
//! The essay stands at the end of this header once the forecast is in place.

mod forecast;
mod history;
mod rhythm;

use crate::core::progress::Progress;
use crate::core::time::Millis;
use history::History;
use rhythm::Rhythm;
use serde::{Deserialize, Serialize};

/// Growth samples before the first estimate.
const MIN_SAMPLES: u32 = 3;
/// Active time before the first estimate.
const MIN_ACTIVE_MS: i64 = 5_000;
/// Half of a normal distribution's middle 80 %, in standard deviations.
const Z80: f64 = 1.2816;

/// What the task is doing, as far as an estimate cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Queued before the first claim.
    NotStarted,
    /// A chunk runs, or the next one is due at once.
    Working,
    /// Between two chunks, by a delay that the handler asked for.
    PlannedGap {
        /// When the next chunk is due.
        until: Millis,
    },
    /// Waits for another attempt.
    RetryWait,
    /// Paused, or pausing without a chunk under way.
    Paused,
    /// Waits for a concurrency slot or for children.
    Blocked,
    /// Succeeded, failed or cancelled.
    Ended,
}

/// How long one unit usually took: the median over an action's last successes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitPrior {
    /// Median duration per unit, in ms, queue and pauses not counted; above 0.
    pub ms_per_unit: f64,
    /// How many successes it stands on, 1 to 20.
    pub successes: u32,
}

/// Which of the contract's answers this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EtaState {
    /// Not started, in retry wait, paused, blocked or ended.
    #[default]
    None,
    /// Without a total nobody can know.
    Unknown,
    /// Too few samples.
    Estimating,
    /// All numbers are there.
    Estimated,
    /// Silent for more than three usual gaps: no numbers.
    Stalled,
}

/// How far the range reaches: half of its width over the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Wider than medium.
    Low,
    /// At most 40 %.
    Medium,
    /// At most 15 %, from at least 8 samples.
    High,
}

/// What the estimate mostly stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// This task's own samples.
    Measured,
    /// Earlier tasks of the same action.
    History,
}

/// The estimate as the outside sees it. All but `state` is there exactly when the state is `estimated`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Eta {
    /// Which answer this is.
    pub state: EtaState,
    /// The middle as an instant, at least one second ahead.
    pub finish_at: Option<Millis>,
    /// The middle; at least 1.
    pub remaining_seconds: Option<i64>,
    /// With `high_seconds` the range that should hold the truth 8 times in 10; at least 1.
    pub low_seconds: Option<i64>,
    /// Not below `remaining_seconds`.
    pub high_seconds: Option<i64>,
    /// From the width of the range.
    pub confidence: Option<Confidence>,
    /// What it stands on.
    pub basis: Option<Basis>,
}

/// Everything that is remembered of a task's speed: a few hundred bytes of JSON, stored with the task. Written by the
/// engine only, through the methods; all of them take the same clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Estimator {
    /// Set while the clock runs: the last call.
    running_since: Option<Millis>,
    /// Working time so far, up to the last call.
    work_ms: i64,
    /// Growth samples since the start, or since `current` last fell.
    samples: u32,
    /// When work last moved or went on after a stop; silence counts from here.
    moved_at: Option<Millis>,
    history: History,
    rhythm: Rhythm,
}

impl Estimator {
    /// A chunk starts: time counts as work from now on. When the clock already runs, the lease of the chunk before was
    /// lost: its time since the last sample is dropped with its work.
    pub fn resume_clock(&mut self, now: Millis) {
        self.running_since = Some(now);
        self.moved_at = Some(now);
    }

    /// Work stops for a reason that is not its own rhythm: pause, queue, retry wait, drain, the end.
    pub fn pause_clock(&mut self, now: Millis) {
        self.touch(now);
        self.running_since = None;
    }

    /// A chunk ended and asked for the next one after `delay_ms`: stops the clock and counts the gap, as long as it is
    /// planned (what comes on top is queue). Call it after the chunk's [`Self::sample`]; 0 means that work goes on.
    pub fn plan_gap(&mut self, now: Millis, delay_ms: i64) {
        if delay_ms > 0 {
            self.pause_clock(now);
            self.rhythm.gap_planned(delay_ms, self.history.current());
        }
    }

    /// The absolute `current` after a report or a commit; call it at each of them. Only growth is a sample. A lower
    /// value (a new total brought it) starts the measurement anew.
    pub fn sample(&mut self, now: Millis, current: i64) {
        self.touch(now);
        let before = self.history.current();
        if current < before {
            self.samples = 0;
            self.history = History::from(self.work_ms, current);
            self.rhythm = Rhythm::default();
        } else if current > before {
            let quiet_ms = self.work_ms - self.history.moved_ms();
            self.rhythm.grew(quiet_ms.min(self.quiet_limit_ms()));
            self.samples = self.samples.saturating_add(1);
            self.history.push(self.work_ms, current);
            self.moved_at = Some(now);
        }
    }

    /// How long nothing may move before the estimate is withdrawn: three usual gaps, at least 5 s.
    #[must_use]
    pub fn quiet_limit_ms(&self) -> i64 {
        if self.samples < MIN_SAMPLES { i64::MAX / 4 } else { self.rhythm.quiet_limit_ms() }
    }

    /// The instant at which the estimate is withdrawn if nothing moves until then; `None` while no work is under way
    /// or too little is known. Worth a second look at the task then.
    #[must_use]
    pub fn stalls_at(&self) -> Option<Millis> {
        let working = self.running_since.is_some() && self.samples >= MIN_SAMPLES;
        working.then(|| self.moved_at.map(|at| at.plus(self.quiet_limit_ms()))).flatten()
    }

    fn touch(&mut self, now: Millis) {
        if let Some(since) = self.running_since {
            // A wall clock that was set back adds nothing.
            self.work_ms += now.since(since).max(0);
            self.running_since = Some(now);
        }
    }

    /// Working time since the last growth.
    fn open_ms(&self, now: Millis) -> i64 {
        let running = self.running_since.map_or(0, |since| now.since(since).max(0));
        self.work_ms + running - self.history.moved_ms()
    }

    /// The estimate at `now`.
    #[must_use]
    pub fn read(&self, now: Millis, progress: &Progress, activity: Activity, prior: Option<UnitPrior>) -> Eta {
        let of = |state| Eta { state, ..Eta::default() };
        let gap_left_ms = match activity {
            Activity::Working => 0,
            Activity::PlannedGap { until } => until.since(now).max(0),
            _ => return of(EtaState::None),
        };
        let total = match progress.total {
            Some(total) if total > 0 && progress.current <= total => total,
            _ => return of(EtaState::Unknown),
        };
        let open_ms = self.open_ms(now);
        if self.samples < MIN_SAMPLES || self.history.moved_ms() + open_ms < MIN_ACTIVE_MS {
            return of(EtaState::Estimating);
        }
        if activity == Activity::Working && self.stalls_at().is_some_and(|at| now > at) {
            return of(EtaState::Stalled);
        }
        let left = total - progress.current;
        let work = forecast::work_ms(&self.history, left, prior);
        let passed = (open_ms as f64).min(self.rhythm.usual_gap_ms());
        let rest_ms = |z: f64| {
            let ms = work.middle_ms * (z * work.spread).exp();
            (ms - passed).max(0.0) + self.rhythm.gaps_ms(self.history.current(), left) + gap_left_ms as f64
        };
        estimated(now, [rest_ms(-Z80), rest_ms(0.0), rest_ms(Z80)], self.samples, work.basis)
    }

    /// Units per second of late, planned gaps included; `None` while too little is known or nothing moves.
    #[must_use]
    pub fn rate_per_second(&self, now: Millis) -> Option<f64> {
        if self.samples < MIN_SAMPLES || self.stalls_at().is_some_and(|at| now > at) {
            return None;
        }
        let ms_per_unit = self.history.recent_ms_per_unit() + self.rhythm.gap_ms_per_unit();
        let rate = 1_000.0 / ms_per_unit;
        (rate.is_finite() && rate > 0.0).then(|| (rate * 10.0).round() / 10.0)
    }
}

/// Whole seconds: the middle rounded, the range rounded outwards, nothing below 1.
fn estimated(now: Millis, [low, middle, high]: [f64; 3], samples: u32, basis: Basis) -> Eta {
    const MAX_SECONDS: f64 = 1e10;
    let seconds = |ms: f64, round: fn(f64) -> f64| round(ms / 1_000.0).clamp(1.0, MAX_SECONDS) as i64;
    let remaining = seconds(middle, f64::round);
    let (low, high) = (seconds(low, f64::floor).min(remaining), seconds(high, f64::ceil).max(remaining));
    let half_width = (high - low) as f64 / 2.0 / remaining as f64;
    let confidence = match half_width {
        w if w <= 0.15 && samples >= 8 => Confidence::High,
        w if w <= 0.40 => Confidence::Medium,
        _ => Confidence::Low,
    };
    Eta {
        state: EtaState::Estimated,
        finish_at: Some(now.plus((middle.clamp(1_000.0, MAX_SECONDS * 1_000.0)) as i64)),
        remaining_seconds: Some(remaining),
        low_seconds: Some(low),
        high_seconds: Some(high),
        confidence: Some(confidence),
        basis: Some(basis),
    }
}
