//! What goes into an estimate and comes out of it: the outside's words, whole seconds, confidence.

use crate::core::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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
    /// Waits for a concurrency slot.
    Blocked,
    /// Succeeded, failed or cancelled, or on the way to be cancelled: the work will not get to its end.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// This task's own samples.
    Measured,
    /// Earlier tasks of the same action.
    History,
}

/// The estimate as the outside sees it. All but `state` is there exactly when the state is `estimated`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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

/// Whole seconds: the middle rounded, the range rounded outwards, nothing below 1.
pub(super) fn estimated(now: Millis, [low, middle, high]: [f64; 3], samples: u32, basis: Basis) -> Eta {
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
