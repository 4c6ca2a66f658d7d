//! When a task will be done: a range with a middle, withdrawn as soon as it would be a guess.
//!
//! The engine tells an [`Estimator`] four things: a chunk starts, work stops, the next chunk waits for a planned delay,
//! and the absolute `current`. Reading is a function of that, the instant and the total. All times in ms, counts in the
//! task's own units. Nothing here reads a clock; a wall clock that is set back adds no time and makes nothing negative.
//!
//! # How it works
//!
//! **Active time only.** Work runs the clock; queue, pause and retry wait do not. A planned delay between chunks is
//! part of the rhythm, but a known one: it is kept apart from the working time, and the delays that still lie ahead are
//! counted chunk by chunk, with none after the last. So the pace of the work stays smooth under a staircase of bursts.
//!
//! **A path instead of a rate.** What is remembered is the path of the count over working time in at most 20 points,
//! thinned so that its shape survives at any length ([`history`]). Each stretch is a sum of growth over a sum of time;
//! a report that comes a millisecond after another one is worth a millisecond.
//!
//! **Four models, believed by their record.** The mean over all, the last half, the last eighth and a shrunken trend
//! each make a guess. Each is tested on the task's own past at the same relative distance, and believed accordingly
//! ([`forecast`]). Windows are shares of the path, not seconds, so a task of ten seconds and one of ten days are read
//! alike, and nothing has to be tuned per task.
//!
//! **A range that is owed.** Its width comes from what the models missed by on that past, from how much they disagree
//! and from how unevenly the work goes. It should hold the truth 8 times in 10; what it cannot hold is a speed that
//! changes after the reading. Within a silence, what has passed is taken off under the condition that the work has not
//! ended yet, so a growth that is late leaves more than nothing.
//!
//! How good it is, beside other rules on the same traces: `cargo bench --bench eta`, docs/eta.md.
//!
//! **History as a start.** The action's usual time per unit joins in by its certainty and fades with samples.
//!
//! # What goes wrong without it
//!
//! - *Preparation*: thirty silent seconds before the first row make a plain average too long until the end. The path
//!   begins at the first growth once it has enough points.
//! - *Bursts*: between two bursts a fading rate says that the task is nearly dead, within one that it is nearly done.
//! - *Two speeds*: an average remembers the old speed for ever; a fading rate forgets in seconds what took hours. Tests
//!   count the misses across the change against no model, and those after it against the ones that did not notice.
//! - *Slowing*: when each row costs more than the last one, every constant pace is too short. Only the trend sees it;
//!   its slope is shrunk by its own doubt, so that noise makes no trend.
//! - *Chatter*: messages without growth are no samples, change no rate and raise no confidence.
//! - *Lost lease*: the time of a chunk whose work was lost is not counted either.
//! - *Silence*: beyond three usual gaps, planned ones included, there is no estimate, because "3 min left" beside a bar
//!   that has not moved for an hour is a lie. Usual is what a watcher finds at a random moment, so the long gap after
//!   a burst is usual.
//! - *The last second*: never 0 s, never the past: at least 1 s is left until the task has ended.

mod answer;
mod forecast;
mod history;
mod rhythm;
#[cfg(test)]
mod tests;

pub use answer::{Activity, Basis, Confidence, Eta, EtaState, UnitPrior};

use crate::core::progress::{MAX_COUNT, Progress};
use crate::core::time::Millis;
use answer::estimated;
use history::History;
use rhythm::Rhythm;
use serde::{Deserialize, Serialize};

/// Growth samples before the first estimate.
const MIN_SAMPLES: u32 = 3;
/// Active time before the first estimate.
const MIN_ACTIVE_MS: i64 = 5_000;
/// Everything that is remembered of a task's speed: a few hundred bytes of JSON, stored with the task. Written by the
/// engine only, through the methods; all of them take the same clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Estimator {
    /// Set while the clock runs: the last call.
    running_since: Option<Millis>,
    /// Working time so far, up to the last call.
    work_ms: i64,
    /// Planned gaps so far.
    planned_ms: i64,
    /// Growth samples since the start, or since `current` last fell.
    samples: u32,
    /// Active time at that start.
    measured_from_ms: i64,
    /// Active time from which silence counts: the last growth, or a later stop.
    quiet_from_ms: i64,
    /// The total that counted before the present one.
    revised_from: Option<i64>,
    history: History,
    rhythm: Rhythm,
}

impl Estimator {
    /// A chunk starts: time counts as work from now on. When the clock already runs, the lease of the chunk before was
    /// lost: its time since the last sample is dropped with its work.
    pub fn resume_clock(&mut self, now: Millis) {
        self.running_since = Some(now);
    }

    /// Work stops for a reason that is not its own rhythm: pause, queue, retry wait, drain, the end.
    pub fn pause_clock(&mut self, now: Millis) {
        self.stop(now);
        self.quiet_from_ms = self.active_ms();
    }

    /// The lease of the chunk was lost: its time since the last report is dropped with its work.
    pub fn lose_clock(&mut self) {
        self.running_since = None;
        self.quiet_from_ms = self.active_ms();
    }

    /// A chunk ended, gave its place up and asked for the next one after `delay_ms`: stops the clock and counts the gap,
    /// as long as it is planned (what comes on top, and all of the wait after a delay of 0, is queue). Silence goes on.
    /// Call it after the chunk's [`Self::sample`], and not when the next chunk runs on in the same place.
    pub fn plan_gap(&mut self, now: Millis, delay_ms: i64) {
        self.stop(now);
        if delay_ms > 0 {
            self.planned_ms = self.planned_ms.saturating_add(delay_ms);
            self.rhythm.gap_planned(delay_ms, self.history.current());
        }
    }

    /// The absolute `current` after a report or a commit; call it at each of them. Only growth is a sample. A lower
    /// value (a new total brought it) starts the measurement anew.
    pub fn sample(&mut self, now: Millis, current: i64) {
        self.touch(now);
        let current = current.clamp(0, MAX_COUNT);
        let before = self.history.current();
        if current < before {
            self.samples = 0;
            self.measured_from_ms = self.active_ms();
            self.quiet_from_ms = self.measured_from_ms;
            self.history = History::from(self.work_ms, current);
            self.rhythm = Rhythm::from(current);
        } else if current > before {
            let quiet_ms = self.active_ms() - self.quiet_from_ms;
            self.rhythm.grew(quiet_ms.min(self.quiet_limit_ms()));
            self.samples = self.samples.saturating_add(1);
            self.quiet_from_ms = self.active_ms();
            self.history.push(self.work_ms, current);
        }
    }

    /// The work is more, or less, than was said: `total` counted until now. What was told before was told of it.
    pub fn revise(&mut self, total: i64) {
        self.revised_from = Some(total);
    }

    /// The total that counted before the present one, if there was another.
    #[must_use]
    pub fn revised_from(&self) -> Option<i64> {
        self.revised_from
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
        let since = self.running_since.filter(|_| self.samples >= MIN_SAMPLES)?;
        let quiet_ms = self.active_ms() - self.quiet_from_ms;
        Some(since.plus(self.quiet_limit_ms() - quiet_ms))
    }

    fn stop(&mut self, now: Millis) {
        self.touch(now);
        self.running_since = None;
    }

    fn touch(&mut self, now: Millis) {
        // A wall clock that was set back adds nothing.
        self.work_ms = self.work_ms.saturating_add(self.running_ms(now));
        self.running_since = self.running_since.map(|_| now);
    }

    /// Working time since the last call.
    fn running_ms(&self, now: Millis) -> i64 {
        self.running_since.map_or(0, |since| now.since(since).max(0))
    }

    /// Working time since the last growth.
    fn open_ms(&self, now: Millis) -> i64 {
        self.work_ms.saturating_add(self.running_ms(now)) - self.history.moved_ms()
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
        let left = match progress.total {
            Some(total) if total > 0 && progress.current <= total => total - progress.current,
            _ => return of(EtaState::Unknown),
        };
        let open_ms = self.open_ms(now);
        if self.samples < MIN_SAMPLES
            || self.active_ms().saturating_add(self.running_ms(now)) - self.measured_from_ms < MIN_ACTIVE_MS
        {
            return of(EtaState::Estimating);
        }
        if activity == Activity::Working && self.stalls_at().is_some_and(|at| now > at) {
            return of(EtaState::Stalled);
        }
        let (range, basis) = self.range_ms(left, open_ms, gap_left_ms, prior);
        estimated(now, range, self.samples, basis)
    }

    /// Low, middle and high of the time left for `left` more units.
    fn range_ms(&self, left: i64, open_ms: i64, gap_left_ms: i64, prior: Option<UnitPrior>) -> ([f64; 3], Basis) {
        let usual_gap_ms = self.rhythm.usual_gap_ms();
        let gap_left_ms = gap_left_ms as f64;
        if left == 0 {
            // All is counted; only the end itself is missing.
            return ([gap_left_ms, gap_left_ms, gap_left_ms + usual_gap_ms], Basis::Measured);
        }
        let units = left as f64;
        let gaps_ms = self.rhythm.gaps_ms(self.history.current(), left);
        let mut work = forecast::measured(&self.history.path(), units, self.samples);
        if let Some(prior) = prior {
            let prior_ms = prior.ms_per_unit * units - gaps_ms;
            let done = self.history.current() as f64;
            work = forecast::with_prior(work, prior_ms, prior, self.samples, done / (done + units));
        }
        // Within a usual gap the next growth is on its way; beyond it, it is late and time stands still.
        let passed_ms = (open_ms as f64).min(usual_gap_ms);
        let [low, middle, high] = work.rest_ms(passed_ms).map(|ms| ms + gaps_ms + gap_left_ms);
        // Whether a last chunk follows that only finds out that there is no more, nobody can know.
        ([low, middle, high + self.rhythm.mean_gap_ms()], work.basis)
    }

    /// Active time so far: work and planned gaps. Per unit, and of a success, it is what a [`UnitPrior`] is made of.
    #[must_use]
    pub fn active_ms(&self) -> i64 {
        self.work_ms.saturating_add(self.planned_ms)
    }

    /// Units per second of late, planned gaps included; `None` outside of work, while too little is known and while
    /// nothing moves.
    #[must_use]
    pub fn rate_per_second(&self, now: Millis, activity: Activity) -> Option<f64> {
        let moves = matches!(activity, Activity::Working | Activity::PlannedGap { .. });
        if !moves || self.samples < MIN_SAMPLES || self.stalls_at().is_some_and(|at| now > at) {
            return None;
        }
        let ms_per_unit = history::pace(&self.history.path(), 0.5) + self.rhythm.gap_ms_per_unit();
        let rate = 1_000.0 / ms_per_unit;
        (rate.is_finite() && rate > 0.0).then(|| (rate * 10.0).round() / 10.0)
    }
}
