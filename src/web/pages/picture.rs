//! The picture on the task's page: the drawing of [`super::plot`] with its words, labels, legend, and a table for those who do
//! not see it. Without a stored point there is none.
//!
//! Must never tell more than the points and the timeline hold. A tip is added for the moment of the page.

use super::plot::{Lines, Scene, Turn, draw};
use super::row::Row;
use super::shell::Shell;
use super::when::When;
use super::words::grouped;
use crate::core::eta::EtaState;
use crate::core::picture::Point;
use crate::core::task::{State, TimelineEvent};
use crate::core::time::Millis;
use crate::core::view::TaskSummary;

/// The most marks of a picture; of more the newest.
const MARKS: usize = 60;
/// About so many points are in the table that a page is written with; the script writes all of them when it is opened.
const ROWS: usize = 40;

/// A picture, ready for its template.
pub struct Picture {
    /// The paths.
    pub lines: Lines,
    /// Top, middle, ground.
    pub counts: [String; 3],
    /// Left, middle, right.
    pub times: [When; 3],
    /// What it shows, in sentences.
    pub say: String,
    /// What is in it: the word for its colour, the text.
    pub legend: Vec<(&'static str, String)>,
    /// The points.
    pub table: Vec<Entry>,
}

/// A point in the table.
pub struct Entry {
    /// When.
    pub at: When,
    /// How far.
    pub current: String,
    /// Of how many.
    pub total: String,
    /// The finish that was told: from, to.
    pub told: Option<(When, When)>,
}

impl Picture {
    /// The picture of a task, if it has points.
    #[must_use]
    pub fn new(page: &Shell, row: &Row<'_>, points: &[Point], events: &[TimelineEvent]) -> Option<Self> {
        let scene = scene(row.task, page.watch.now(), points, events)?;
        let lines = draw(&scene)?;
        let middle = scene.start.plus(lines.right.since(scene.start) / 2);
        Some(Self {
            counts: [lines.top, lines.top / 2, 0].map(grouped),
            times: [scene.start, middle, lines.right].map(|at| page.watch.at(at)),
            say: say(page, row, &scene),
            legend: legend(page, &scene, &lines),
            table: table(points).map(|point| entry(page, point)).collect(),
            lines,
        })
    }
}

/// Every so-manieth point and the last one, so that the table stays below [`ROWS`].
fn table(points: &[Point]) -> impl Iterator<Item = &Point> {
    let step = points.len().div_ceil(ROWS).max(1);
    points.iter().enumerate().filter(move |(at, _)| at % step == 0 || at + 1 == points.len()).map(|(_, point)| point)
}

fn entry(page: &Shell, point: &Point) -> Entry {
    Entry {
        at: page.watch.at(point.at),
        current: grouped(point.current),
        total: point.total.map_or_else(|| "–".to_owned(), grouped),
        told: point.low_at.zip(point.high_at).map(|(low, high)| (page.watch.at(low), page.watch.at(high))),
    }
}

fn scene(task: &TaskSummary, now: Millis, points: &[Point], events: &[TimelineEvent]) -> Option<Scene> {
    let (start, last) = (task.started_at?, points.last()?);
    let until = task.finished_at.unwrap_or(now).max(last.at);
    let ended = task.state.is_final();
    let mut points = points.to_vec();
    if !ended || until > last.at {
        points.push(tip(task, until));
    }
    let rests = rests(events, start, (!ended).then_some(until));
    flatten(&mut points, &rests);
    let mut turns: Vec<(Turn, Millis)> = events.iter().filter_map(|e| Some((turn(e)?, e.at))).collect();
    turns.drain(..turns.len().saturating_sub(MARKS));
    Some(Scene { start, until, ended, points, rests, turns })
}

/// A rest is flat: where work goes on, the count is what it was when it stopped.
fn flatten(points: &mut Vec<Point>, rests: &[(Millis, Millis)]) {
    for (from, to) in rests {
        let after = points.iter().position(|p| p.at == *to);
        if let Some(after) = after.filter(|after| *after == 0 || points[*after - 1].at < *from) {
            let stopped = Point { at: *from, low_at: None, finish_at: None, high_at: None, ..points[after].clone() };
            points.insert(after, stopped);
        }
    }
}

/// How it stands now, and what is told of its finish.
fn tip(task: &TaskSummary, at: Millis) -> Point {
    let eta = &task.progress.eta;
    let told = eta.finish_at.filter(|_| eta.state == EtaState::Estimated && !task.state.is_final());
    let asked_at = told.zip(eta.remaining_seconds).map(|(finish, seconds)| finish.plus(-seconds * 1_000));
    let after = |seconds: Option<i64>| Some(asked_at?.plus(seconds? * 1_000));
    Point {
        at,
        current: task.progress.current,
        total: task.progress.total,
        low_at: after(eta.low_seconds),
        finish_at: told,
        high_at: after(eta.high_seconds),
        attempt: task.attempt,
    }
}

/// When nobody worked: queued again, paused, or lost until the next claim. `open_until` closes the last one.
fn rests(events: &[TimelineEvent], start: Millis, open_until: Option<Millis>) -> Vec<(Millis, Millis)> {
    let (mut found, mut since) = (Vec::new(), None);
    for event in events.iter().filter(|e| e.at >= start) {
        let lost = event.reason == "lease-lost";
        if matches!(event.to, State::Running | State::Pausing | State::Cancelling) && !lost {
            found.extend(since.take().map(|from| (from, event.at)));
        } else {
            since.get_or_insert(event.at);
        }
    }
    found.extend(since.zip(open_until));
    found
}

fn turn(event: &TimelineEvent) -> Option<Turn> {
    match event.reason.split(':').next().unwrap_or_default() {
        "retry" => Some(Turn::Retry),
        "lease-lost" => Some(Turn::Takeover),
        "total-revised" => Some(Turn::Revised),
        _ if event.to == State::Paused => Some(Turn::Pause),
        _ => None,
    }
}

fn legend(page: &Shell, scene: &Scene, lines: &Lines) -> Vec<(&'static str, String)> {
    let mut legend = vec![("done", page.t("picture.done").into_owned())];
    if !lines.told.is_empty() || !lines.ahead.is_empty() {
        legend.push(("told", page.t("picture.told").into_owned()));
    }
    if !lines.rests.is_empty() {
        legend.push(("rest", page.t("picture.rest").into_owned()));
    }
    legend.extend(turn_counts(page, scene));
    legend
}

fn turn_counts(page: &Shell, scene: &Scene) -> Vec<(&'static str, String)> {
    let counted = Turn::ALL.map(|turn| (turn, scene.turns.iter().filter(|(t, _)| *t == turn).count() as i64));
    let words = |turn: Turn, n| (turn.as_str(), page.w.count(&format!("picture.{}", turn.as_str()), n));
    counted.into_iter().filter(|(_, n)| *n > 0).map(|(turn, n)| words(turn, n)).collect()
}

fn say(page: &Shell, row: &Row<'_>, scene: &Scene) -> String {
    let full = |at: Millis| page.watch.full(at);
    let count = if row.count().is_empty() { row.amount() } else { row.count() };
    let args = [("from", full(scene.start).into()), ("to", full(scene.until).into()), ("count", count.into())];
    let mut parts = vec![page.w.fill("picture.say", &args)];
    let told = scene.points.last().filter(|_| !scene.ended).and_then(|p| p.low_at.zip(p.high_at));
    parts.extend(
        told.map(|(low, high)| {
            page.w.fill("picture.say.told", &[("low", full(low).into()), ("high", full(high).into())])
        }),
    );
    parts.extend(turn_counts(page, scene).into_iter().map(|(_, text)| text));
    parts.join(" · ")
}
