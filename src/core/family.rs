//! A parent and its children: what ties them together, and what a parent's progress is made of.
//!
//! A child counts in its parent's progress by its weight. What the parent's handler reports is the parent's *own* progress;
//! what is shown, and stored in the task's row, is that and the children's together ([`Family::shown`]):
//!
//! - The handler said a total: a child's weight is in the same units. Own and children's work add up, and so do the totals.
//! - The handler said nothing of progress: the children alone are it, in hundredths of a weight, so that four children move
//!   a bar in more than four steps.
//! - The handler counts without a total: nobody knows the total, and none is shown.
//!
//! Must never hold a count of open children: that is a question to their rows, so that no crash can leave it wrong. What is
//! counted here changes only in the parent's own commits (`children`, `weight`) or may be old (`done_milli`).

use super::ids::TaskId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The most children of one chunk.
pub const CHILDREN_PER_CHUNK: usize = 1_000;
/// The most children of one task, ended ones included.
pub const CHILDREN_PER_TASK: i64 = 10_000;
/// How deep children may lie under the first task, which is at depth 0.
pub const DEPTH: i64 = 8;
/// The largest weight of a child; the smallest is 1.
pub const MAX_WEIGHT: i64 = 1_000_000;

/// The tie of a child to the task whose chunk submitted it. Never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parent {
    /// The parent.
    pub id: TaskId,
    /// 1 to [`DEPTH`].
    pub depth: i64,
    /// How much it counts in the parent's progress, 1 to [`MAX_WEIGHT`].
    pub weight: i64,
}

/// What a child that fails or is cancelled means for a parent that waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// The parent fails at once, and its other children are cancelled.
    #[default]
    Fail,
    /// Nothing: the parent waits for the others and goes on.
    Ignore,
    /// As ignore; the parent's handler looks at each and judges.
    Collect,
}

impl OnFailure {
    /// The word used in JSON and SQL.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Ignore => "ignore",
            Self::Collect => "collect",
        }
    }

    /// Reads the word; `None` for one that this version does not know.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Fail, Self::Ignore, Self::Collect].into_iter().find(|word| word.as_str() == text)
    }
}

/// What a parent's row knows of its children.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Family {
    /// How many it has submitted over its life.
    pub children: i64,
    /// Σ of their weights.
    pub weight: i64,
    /// Σ of what is done of each, in thousandths of a weight; as it was looked at last.
    pub done_milli: i64,
    /// What the handler itself has counted.
    pub own_current: i64,
    /// The total that the handler itself told.
    pub own_total: Option<i64>,
}

impl Family {
    /// The first children of a task that has counted so far by itself.
    #[must_use]
    pub fn of(own_current: i64, own_total: Option<i64>) -> Self {
        Self { own_current, own_total, ..Self::default() }
    }

    /// Takes over what the handler tells of its own work. For one total of its own, its count never falls.
    pub fn tell(&mut self, current: Option<i64>, total: Option<Option<i64>>) {
        let before = self.own_total;
        if let Some(total) = total {
            self.own_total = total;
        }
        if let Some(current) = current {
            self.own_current = if self.own_total == before { current.max(self.own_current) } else { current };
        }
    }

    /// Current and total as they are shown.
    #[must_use]
    pub fn shown(&self) -> (i64, Option<i64>) {
        let together = self.own_current.saturating_add(self.done_milli / 1_000);
        match self.own_total {
            None if self.own_current == 0 => (self.done_milli / 10, Some(self.weight.saturating_mul(100))),
            None => (together, None),
            Some(0) => (together, Some(0)),
            Some(own) => (together, Some(own.saturating_add(self.weight))),
        }
    }
}

/// What is done of a child of a weight, in thousandths: all of one that has ended, whatever its end; none of one without a
/// total.
#[must_use]
pub fn done_milli(weight: i64, ended: bool, current: i64, total: Option<i64>) -> i64 {
    let all = weight.saturating_mul(1_000);
    match total {
        _ if ended => all,
        Some(total) if total > 0 => (all as f64 * (current as f64 / total as f64).clamp(0.0, 1.0)) as i64,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(own: (i64, Option<i64>), weight: i64, done_milli: i64) -> Family {
        Family { weight, done_milli, ..Family::of(own.0, own.1) }
    }

    #[test]
    fn children_alone_are_the_progress_of_a_parent_that_says_nothing() {
        assert_eq!(family((0, None), 4, 0).shown(), (0, Some(400)));
        assert_eq!(family((0, None), 4, 1_500).shown(), (150, Some(400)));
        assert_eq!(family((0, None), 4, 4_000).shown(), (400, Some(400)));
    }

    #[test]
    fn own_work_and_that_of_children_add_up_in_the_parents_units() {
        assert_eq!(family((10, Some(20)), 80, 40_999).shown(), (50, Some(100)));
        assert_eq!(family((20, Some(20)), 80, 80_000).shown(), (100, Some(100)));
    }

    #[test]
    fn without_a_total_of_its_own_count_a_parent_has_none() {
        assert_eq!(family((7, None), 4, 2_000).shown(), (9, None));
        assert_eq!(family((7, Some(0)), 4, 2_000).shown(), (9, Some(0)));
    }

    #[test]
    fn for_one_total_the_own_count_never_falls() {
        let mut family = Family::of(5, Some(10));
        family.tell(Some(3), None);
        assert_eq!(family.own_current, 5);
        family.tell(Some(3), Some(Some(20)));
        assert_eq!((family.own_current, family.own_total), (3, Some(20)));
    }

    #[test]
    fn a_child_counts_by_its_share_and_whole_once_it_has_ended() {
        assert_eq!(done_milli(3, false, 1, Some(2)), 1_500);
        assert_eq!(done_milli(3, false, 9, Some(2)), 3_000);
        assert_eq!(done_milli(3, false, 9, None), 0);
        assert_eq!(done_milli(3, false, 9, Some(0)), 0);
        assert_eq!(done_milli(3, true, 0, None), 3_000);
    }

    #[test]
    fn each_word_reads_back() {
        for word in [OnFailure::Fail, OnFailure::Ignore, OnFailure::Collect] {
            assert_eq!(OnFailure::parse(word.as_str()), Some(word));
        }
        assert_eq!(OnFailure::parse("stop"), None);
    }
}
