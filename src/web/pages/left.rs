//! The times of a task row: what is left, when it ends, when the next step is planned.
//!
//! A time left is shown exactly when the view says that it is estimated; it is rounded to what can honestly be said, is never
//! negative, and an estimate that is over says so instead of standing at zero.

use super::row::{Kind, Row};
use super::when::{Rounded, When};
use crate::core::eta::{Confidence, EtaState};
use crate::core::task::{State, WaitReason};

/// A planned gap between two chunks is told from this length on, ms; shorter ones are the rhythm of the work.
const LONG_GAP_MS: i64 = 5_000;

impl Row<'_> {
    /// The time left in words: exactly when it is estimated, else "estimating", or nothing.
    #[must_use]
    pub fn left(&self) -> String {
        let eta = &self.task.progress.eta;
        match eta.state {
            EtaState::Estimated => match self.seconds_left() {
                Some(seconds) if Rounded::of(seconds) == Rounded::Under => self.w.t("eta.under").into_owned(),
                Some(seconds) => {
                    let key = if eta.confidence == Some(Confidence::Low) { "eta.roughly" } else { "eta.about" };
                    self.w.fill(key, &[("span", self.watch.rounded(seconds).into())])
                }
                None => self.w.t("eta.overdue").into_owned(),
            },
            EtaState::Estimating | EtaState::Unknown => self.w.t("eta.estimating").into_owned(),
            _ => String::new(),
        }
    }

    /// Seconds to the estimated finish; nothing when it is past or unknown.
    #[must_use]
    pub fn seconds_left(&self) -> Option<i64> {
        let eta = &self.task.progress.eta;
        let at = eta.finish_at.filter(|_| eta.state == EtaState::Estimated)?;
        Some(at.since(self.watch.now())).filter(|ms| *ms > 0).map(|ms| ms / 1000)
    }

    /// The estimated finish.
    #[must_use]
    pub fn finish(&self) -> Option<When> {
        self.seconds_left()?;
        self.task.progress.eta.finish_at.map(|at| self.watch.at(at))
    }

    /// When the next chunk of a running task is planned, if that is a while. It stands beside the estimate, which stays.
    #[must_use]
    pub fn next_batch(&self) -> Option<When> {
        if self.kind() != Kind::Plain(State::Running) {
            return None;
        }
        let until = self.task.waiting.as_ref().filter(|w| w.reason == WaitReason::Delay)?.until?;
        let long = until.since(self.watch.now()) >= LONG_GAP_MS;
        long.then(|| self.watch.at(until))
    }

    /// Since when nothing was heard of its worker.
    #[must_use]
    pub fn silent_since(&self) -> Option<When> {
        self.task.silent_since.map(|at| self.watch.at(at))
    }

    /// When the next attempt is due.
    #[must_use]
    pub fn next_attempt(&self) -> Option<When> {
        self.until(WaitReason::Retry)
    }

    /// When a queued task may start, if it was put off.
    #[must_use]
    pub fn starts(&self) -> Option<When> {
        self.until(WaitReason::Scheduled)
    }

    fn until(&self, reason: WaitReason) -> Option<When> {
        let waiting = self.task.waiting.as_ref().filter(|w| w.reason == reason)?;
        waiting.until.map(|at| self.watch.at(at))
    }

    /// When it was accepted.
    #[must_use]
    pub fn created(&self) -> Option<When> {
        Some(self.watch.at(self.task.created_at))
    }

    /// When it ended.
    #[must_use]
    pub fn finished(&self) -> Option<When> {
        self.task.finished_at.map(|at| self.watch.at(at))
    }
}
