//! The lines of a task's picture: from points to the paths of an SVG. Pure; the same steps as static/plot.js, so the picture
//! does not change when the script takes it over.
//!
//! Time goes to the right, the count goes up, in a box of 1000 × 240 units that the page stretches to its width. The finish
//! that was told is drawn at the height of the count at which it was told: the band from its early to its late end narrows
//! to where the line arrives, if what was told was true. What lies beyond the right edge is cut there.

use crate::core::picture::Point;
use crate::core::time::Millis;
use std::fmt::Write;

/// The width of the box.
pub const WIDTH: i64 = 1_000;
/// The line of nothing done.
const BOTTOM: i64 = 230;
/// From there up to all done.
const RISE: i64 = 220;
/// A running task's past takes at least the so-manieth part of the width, however far off its finish is told.
const PAST_SHARE: i64 = 12;

/// What happened at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// An attempt failed and another one followed.
    Retry,
    /// The node was lost and another one went on.
    Takeover,
    /// Somebody paused it.
    Pause,
    /// The total changed.
    Revised,
}

impl Turn {
    /// All of them, in the order of the legend.
    pub const ALL: [Self; 4] = [Self::Retry, Self::Takeover, Self::Pause, Self::Revised];

    /// The word in attributes and keys.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Takeover => "takeover",
            Self::Pause => "pause",
            Self::Revised => "revised",
        }
    }
}

/// What a picture is drawn from.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The first claim.
    pub start: Millis,
    /// The end, or the server's now.
    pub until: Millis,
    /// Whether it has come to its end.
    pub ended: bool,
    /// The stored points, and last how it stands at `until`.
    pub points: Vec<Point>,
    /// When no work was done.
    pub rests: Vec<(Millis, Millis)>,
    /// What happened when.
    pub turns: Vec<(Turn, Millis)>,
}

/// The paths, as attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// The progress.
    pub done: String,
    /// The same, closed to the ground.
    pub ground: String,
    /// The range of the finish as it was told.
    pub told: String,
    /// From here to the finish that is told now.
    pub ahead: String,
    /// The total.
    pub total: String,
    /// The point of now.
    pub tip: String,
    /// Stretches without work: from, width.
    pub rests: Vec<(i64, i64)>,
    /// Marks: what, where.
    pub turns: Vec<(Turn, i64)>,
    /// The instant at the right edge.
    pub right: Millis,
    /// The count at the top.
    pub top: i64,
}

/// Draws a scene; nothing comes out of one without points, or in which nothing was counted.
#[must_use]
pub fn draw(scene: &Scene) -> Option<Lines> {
    let (first, last) = (scene.points.first()?, scene.points.last()?);
    let origin = Point {
        at: scene.start,
        current: 0,
        total: first.total,
        low_at: None,
        finish_at: None,
        high_at: None,
        attempt: 1,
    };
    let points: Vec<&Point> = std::iter::once(&origin).chain(&scene.points).collect();
    if points.iter().all(|p| p.current == 0 && p.total.is_none_or(|total| total == 0)) {
        return None;
    }
    let right = right_edge(scene);
    let top = top(&points);
    let span = right.since(scene.start).max(1) as f64;
    let x = |at: Millis| (at.since(scene.start) as f64 / span * WIDTH as f64).round().clamp(0.0, WIDTH as f64) as i64;
    let y = |n: i64| BOTTOM - (n.min(top) as f64 / top as f64 * RISE as f64).round() as i64;
    let at = |p: &Point| format!("{} {}", x(p.at), y(p.current));
    let done = format!("M{}", points.iter().map(|p| at(p)).collect::<Vec<_>>().join("L"));
    Some(Lines {
        ground: format!("{done}L{} {BOTTOM}L0 {BOTTOM}Z", x(last.at)),
        told: told(&points, &x, &y),
        ahead: match (last.finish_at, last.total) {
            (Some(finish), Some(total)) if !scene.ended => format!("M{}L{} {}", at(last), x(finish), y(total)),
            _ => String::new(),
        },
        total: totals(&points, &x, &y),
        tip: if scene.ended { String::new() } else { format!("M{}h0", at(last)) },
        rests: scene.rests.iter().map(|(from, to)| (x(*from), x(*to) - x(*from))).filter(|(_, w)| *w > 0).collect(),
        turns: scene.turns.iter().map(|(turn, at)| (*turn, x(*at))).collect(),
        done,
        right,
        top,
    })
}

/// The instant at the right edge: the late end of what was told, as long as the past is not squeezed by it.
fn right_edge(scene: &Scene) -> Millis {
    let past_ms = scene.until.since(scene.start).max(1);
    let told = scene.points.iter().filter_map(|p| p.high_at);
    let (latest, most_ms) = if scene.ended {
        (told.max(), past_ms + past_ms / 4)
    } else {
        (scene.points.last().and_then(|p| p.high_at), past_ms * PAST_SHARE)
    };
    let latest = latest.unwrap_or(scene.until).min(scene.start.plus(most_ms));
    latest.max(scene.until)
}

/// The count at the top: the largest total, or a round number above the largest count.
fn top(points: &[&Point]) -> i64 {
    let most = points.iter().map(|p| p.current).max().unwrap_or(0);
    match points.iter().filter_map(|p| p.total).max().filter(|total| *total > 0) {
        Some(total) => total.max(most),
        None => round_above(most.max(1)),
    }
}

/// The next of 1, 2, 5, 10, 20, …
fn round_above(n: i64) -> i64 {
    let mut step = 1;
    while step < n / 10 {
        step *= 10;
    }
    [1, 2, 5, 10, 20, 50, 100].into_iter().map(|k| k * step).find(|round| *round >= n).unwrap_or(n)
}

/// The band: a closed path for each run of points at which a finish was told and the count did not fall.
fn told(points: &[&Point], x: &impl Fn(Millis) -> i64, y: &impl Fn(i64) -> i64) -> String {
    let mut path = String::new();
    let mut run: Vec<(i64, i64, i64)> = Vec::new();
    let mut close = |run: &mut Vec<(i64, i64, i64)>| {
        if !run.is_empty() {
            let early = run.iter().map(|(low, _, y)| format!("{low} {y}"));
            let late = run.iter().rev().map(|(_, high, y)| format!("{high} {y}"));
            let _ = write!(path, "M{}Z", early.chain(late).collect::<Vec<_>>().join("L"));
        }
        run.clear();
    };
    for point in points {
        match (point.low_at, point.high_at) {
            (Some(low), Some(high)) => {
                let at = y(point.current);
                if run.last().is_some_and(|(_, _, before)| at > *before) {
                    close(&mut run);
                }
                run.push((x(low), x(high), at));
            }
            _ => close(&mut run),
        }
    }
    close(&mut run);
    path
}

/// The total as a line with a step at each revision.
fn totals(points: &[&Point], x: &impl Fn(Millis) -> i64, y: &impl Fn(i64) -> i64) -> String {
    let mut path = String::new();
    let mut known = None;
    for point in points {
        let total = point.total.filter(|total| *total > 0);
        if total != known {
            let _ = match (known, total) {
                (None, Some(new)) => write!(path, "M{} {}", x(point.at), y(new)),
                (Some(_), Some(new)) => write!(path, "H{}V{}", x(point.at), y(new)),
                (_, None) => write!(path, "H{}", x(point.at)),
            };
            known = total;
        }
    }
    if known.is_some() {
        let _ = write!(path, "H{WIDTH}");
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at: i64, current: i64, total: Option<i64>, told: Option<(i64, i64)>) -> Point {
        Point {
            at: Millis(at),
            current,
            total,
            low_at: told.map(|t| Millis(t.0)),
            finish_at: told.map(|t| Millis(i64::midpoint(t.0, t.1))),
            high_at: told.map(|t| Millis(t.1)),
            attempt: 1,
        }
    }

    fn scene(ended: bool, points: Vec<Point>) -> Scene {
        let until = points.last().map_or(Millis(0), |p| p.at);
        Scene { start: Millis(0), until, ended, points, rests: Vec::new(), turns: Vec::new() }
    }

    #[test]
    fn a_running_task_reaches_from_its_start_to_the_late_end_of_what_is_told() {
        let points = vec![
            point(2_000, 20, Some(100), None),
            point(4_000, 40, Some(100), Some((9_000, 12_000))),
            point(5_000, 50, Some(100), Some((9_500, 10_000))),
        ];
        let lines = draw(&scene(false, points)).unwrap();
        assert_eq!(lines.right, Millis(10_000));
        assert_eq!(lines.done, "M0 230L200 186L400 142L500 120");
        assert_eq!(lines.told, "M900 142L950 120L1000 120L1000 142Z", "what is beyond the edge is cut there");
        assert_eq!(lines.ahead, "M500 120L975 10");
        assert_eq!((lines.total.as_str(), lines.tip.as_str(), lines.top), ("M0 10H1000", "M500 120h0", 100));
    }

    #[test]
    fn a_far_finish_does_not_squeeze_the_past() {
        let lines =
            draw(&scene(false, vec![point(10_000, 1, Some(100_000), Some((9e8 as i64, 10e8 as i64)))])).unwrap();
        assert_eq!(lines.right, Millis(120_000));
        assert!(lines.done.ends_with("L83 230"), "{}", lines.done);
    }

    #[test]
    fn without_a_total_counts_rise_to_a_round_number_and_nothing_is_told() {
        let lines = draw(&scene(true, vec![point(2_000, 700, None, None), point(4_000, 1_250, None, None)])).unwrap();
        assert_eq!((lines.top, lines.total.as_str(), lines.told.as_str()), (2_000, "", ""));
        assert_eq!(lines.done, "M0 230L500 153L1000 92");
        assert_eq!([1, 3, 10, 11, 99, 101, 5_001].map(round_above), [1, 5, 10, 20, 100, 200, 10_000]);
    }

    #[test]
    fn a_revised_total_is_a_step_and_a_fallen_count_begins_a_new_band() {
        let points = vec![
            point(2_000, 50, Some(100), Some((4_000, 4_000))),
            point(4_000, 100, Some(100), Some((5_000, 5_000))),
            point(6_000, 10, Some(200), Some((8_000, 8_000))),
            point(8_000, 200, Some(200), Some((8_000, 8_000))),
        ];
        let lines = draw(&scene(true, points)).unwrap();
        assert_eq!(lines.total, "M0 120H750V10H1000");
        assert_eq!(lines.told.matches('M').count(), 2, "{}", lines.told);
    }

    #[test]
    fn no_point_and_nothing_counted_is_no_picture() {
        assert_eq!(draw(&scene(false, Vec::new())), None);
        assert_eq!(draw(&scene(true, vec![point(5_000, 0, None, None)])), None);
    }
}
