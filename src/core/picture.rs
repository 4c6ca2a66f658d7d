//! The picture of a task: how far it was when, and which finish was told at that moment, in at most [`MOST`] points.
//!
//! A point is written in the commit of the change that it shows, so whoever could not write the change wrote no point. When
//! one is due follows from the instants alone, and nothing has to be remembered: the time since the first claim is cut into
//! equal cells, and the first progress within a cell is a point. With [`CELLS`] cells full their length doubles, so a task
//! of a minute and one of a month are drawn alike. Where work stops or goes on (pause, retry, takeover, end), there is a
//! point too: a wait is flat in the picture and not a slow slope.
//!
//! What goes wrong without it: points at each report cost a statement for each of a million short tasks, and a fixed
//! spacing makes a long task's picture grow without end. A task that ends within [`FIRST_MS`] has no point at all.
//!
//! Instants are the database's; lengths are ms.

use super::eta::UnitPrior;
use super::task::{State, Task};
use super::time::Millis;
use super::view::activity;
use serde::Serialize;
use utoipa::ToSchema;

/// The most points of one task.
pub const MOST: usize = 120;
/// The length of the first cells, and so the earliest point, ms after the first claim.
pub const FIRST_MS: i64 = 2_000;
/// With so many cells, two become one.
const CELLS: i64 = 100;
/// So many points beside those of the cells, where work stopped or went on, are not looked for, and as many are left when
/// somebody looks. Each of them has a line in the timeline, so their number is known without a look.
const TURNS: i64 = (MOST as i64 - CELLS - 2) / 2;

/// One point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    /// When.
    pub at: Millis,
    /// How far it was.
    pub current: i64,
    /// Of how many, where that was known.
    pub total: Option<i64>,
    /// The early end of the told finish; with the other two exactly when an estimate was told.
    pub low_at: Option<Millis>,
    /// The told finish.
    pub finish_at: Option<Millis>,
    /// The late end of it.
    pub high_at: Option<Millis>,
    /// The attempt, from 1.
    pub attempt: u32,
}

impl Point {
    /// What is true of a task, and told about it, now. `prior` is what the estimate is told with.
    #[must_use]
    pub fn of(task: &Task, now: Millis, prior: Option<UnitPrior>) -> Self {
        let eta = task.estimator.read(now, &task.progress, activity(task), prior);
        let after = |seconds: Option<i64>| seconds.map(|s| now.plus(s.saturating_mul(1_000)));
        Self {
            at: now,
            current: task.progress.current,
            total: task.progress.total,
            low_at: after(eta.low_seconds),
            finish_at: eta.finish_at,
            high_at: after(eta.high_seconds),
            attempt: task.attempt(),
        }
    }
}

/// A point that a change asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// One more.
    Point,
    /// One more, and there may be too many now: [`thinned`] tells.
    PointAndLook,
}

/// Whether the change from `before` to `after` is worth a point.
#[must_use]
pub fn due(before: &Task, after: &Task, now: Millis) -> Option<Due> {
    let started_at = after.started_at?;
    let age_ms = now.since(started_at);
    if age_ms < FIRST_MS {
        return None;
    }
    let length_ms = cell_ms(age_ms);
    let known_ms = before.progress.updated_at.map_or(0, |at| at.since(started_at).max(0));
    let turned = works(before) != works(after)
        || before.takeovers != after.takeovers
        || (after.reclaims > 0 && before.under_way() != after.under_way());
    let moved = after.progress.updated_at == Some(now) && age_ms / length_ms > known_ms / length_ms;
    let many = turned && after.event_count > TURNS;
    match (turned || moved, many || cell_ms(known_ms) != length_ms) {
        (false, _) => None,
        (true, false) => Some(Due::Point),
        (true, true) => Some(Due::PointAndLook),
    }
}

/// The points that stay, when there are more than there may be: the first of each cell, and the last of all.
#[must_use]
pub fn thinned(points: &[Point], started_at: Millis, now: Millis) -> Option<Vec<Point>> {
    let age_ms = now.since(started_at).max(0);
    let length_ms = cell_ms(age_ms);
    if points.len() as i64 <= age_ms / length_ms + TURNS {
        return None;
    }
    let cell = |point: &Point| point.at.since(started_at).max(0) / length_ms;
    let stays = |at: usize| at == 0 || at + 1 == points.len() || cell(&points[at]) != cell(&points[at - 1]);
    Some(points.iter().enumerate().filter(|(at, _)| stays(*at)).map(|(_, point)| point.clone()).collect())
}

/// How long a cell is at this age.
fn cell_ms(age_ms: i64) -> i64 {
    let mut length_ms = FIRST_MS;
    while age_ms / length_ms >= CELLS {
        length_ms *= 2;
    }
    length_ms
}

/// Whether a task is at work, as far as a person can see.
fn works(task: &Task) -> bool {
    matches!(task.state, State::Running | State::Pausing | State::Cancelling)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::lifecycle::{Ask, Step};
    use crate::core::principal::{Principal, Role, Scope};
    use crate::core::progress::Reported;
    use crate::core::submit::Submit;
    use proptest::prelude::*;
    use serde_json::json;

    const START: Millis = Millis(1_000_000);

    fn claimed() -> Task {
        let mut step = Step::at(START);
        let caller =
            Principal { tenant: "t".into(), user: "bob".into(), role: Role::User, scopes: Scope::ALL.to_vec() };
        let mut task = Submit::new(caller, "import", json!({})).into_task(&mut step);
        task.claim("n1", 3_600_000_000, &mut step).unwrap();
        task
    }

    /// A task that reports, with the points that a store would keep.
    struct Drawn {
        task: Task,
        points: Vec<Point>,
    }

    impl Drawn {
        fn new() -> Self {
            Self { task: claimed(), points: Vec::new() }
        }

        fn change(&mut self, at_ms: i64, change: impl FnOnce(&mut Task, &mut Step)) -> Option<Due> {
            let before = self.task.clone();
            let now = START.plus(at_ms);
            change(&mut self.task, &mut Step::at(now));
            let due = due(&before, &self.task, now)?;
            self.points.push(Point::of(&self.task, now, None));
            if due == Due::PointAndLook {
                self.points = thinned(&self.points, START, now).unwrap_or_else(|| self.points.clone());
            }
            Some(due)
        }

        fn report(&mut self, at_ms: i64, current: i64) -> Option<Due> {
            let report = Reported::parse(&json!({"current": current, "total": 1_000_000_000})).unwrap();
            // Without a chunk under way nobody can report, and nothing changes.
            self.change(at_ms, |task, step| {
                let _ = task.report(task.fencing_token, &report, step);
            })
        }
    }

    #[test]
    fn the_first_two_seconds_cost_nothing_and_then_one_report_in_a_cell_is_a_point() {
        let mut drawn = Drawn::new();
        let due: Vec<bool> =
            [0, 500, 1_999, 2_000, 2_400, 3_999, 4_000, 9_100].map(|at| drawn.report(at, at).is_some()).into();
        assert_eq!(due, [false, false, false, true, false, false, true, true]);
        assert_eq!(drawn.report(11_000, 9_100), None, "what says nothing new is no point");
    }

    #[test]
    fn a_stop_and_its_end_are_points_wherever_they_fall() {
        let mut drawn = Drawn::new();
        assert!(drawn.report(2_100, 10).is_some());
        let pause = |task: &mut Task, step: &mut Step| {
            task.lease_until = None;
            task.ask(Ask::Pause, None, None, step).unwrap();
        };
        assert!(drawn.change(2_200, pause).is_some());
        let resume = |task: &mut Task, step: &mut Step| assert!(task.ask(Ask::Resume, None, None, step).unwrap());
        assert!(drawn.change(2_300, resume).is_none());
        assert!(drawn.change(2_400, |task, step| task.claim("n2", 1_000, step).unwrap()).is_some());
        let seen: Vec<(i64, i64)> = drawn.points.iter().map(|p| (p.at.since(START), p.current)).collect();
        assert_eq!(seen, [(2_100, 10), (2_200, 10), (2_400, 10)]);
    }

    #[test]
    fn a_point_tells_the_finish_that_was_told() {
        let mut drawn = Drawn::new();
        for n in 1..=20 {
            drawn.report(n * 1_000, n * 10_000_000);
        }
        let last = drawn.points.last().unwrap();
        let eta = drawn.task.estimator.read(last.at, &drawn.task.progress, activity(&drawn.task), None);
        assert_eq!(last.finish_at, eta.finish_at);
        assert!(last.low_at <= last.finish_at && last.finish_at <= last.high_at && last.low_at > Some(last.at));
        assert_eq!(drawn.points[0].low_at, None, "nothing was told so early");
    }

    proptest! {
        #[test]
        fn there_are_never_too_many_and_the_first_and_the_last_stay(
            gaps in prop::collection::vec((1_i64..400_000, prop::bool::weighted(0.3)), 1..900),
            faster in 1_i64..400,
        ) {
            let mut drawn = Drawn::new();
            let (mut at, mut first) = (0, None);
            for (n, (gap, turn)) in gaps.into_iter().enumerate() {
                at += gap / faster + 1;
                let due = if turn {
                    drawn.change(at, |task, step| match task.state {
                        State::Running => {
                            task.lease_until = None;
                            task.ask(Ask::Pause, None, None, step).map(drop).unwrap();
                        }
                        State::Paused => task.ask(Ask::Resume, None, None, step).map(drop).unwrap(),
                        _ => task.claim("n1", 3_600_000_000, step).unwrap(),
                    })
                } else {
                    drawn.report(at, n as i64)
                };
                prop_assert!(drawn.points.len() <= MOST, "{} points", drawn.points.len());
                if due.is_some() {
                    let known = first.get_or_insert_with(|| drawn.points[0].clone());
                    prop_assert_eq!(&drawn.points[0], known);
                    prop_assert_eq!(drawn.points.last().unwrap().at, START.plus(at));
                    prop_assert!(drawn.points.windows(2).all(|pair| pair[0].at < pair[1].at));
                }
            }
        }
    }
}
