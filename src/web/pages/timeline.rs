//! The timeline on the task's page: what happened in words, how the chunks in between went, and why attempts failed.
//!
//! The same lines as static/timeline.js. A reason is a stable word with facts after a colon where there are some; a word
//! that the catalogue does not know is shown as it came.

use super::shell::Shell;
use super::when::When;
use super::words::Arg;
use crate::core::task::{FailedAttempt, State, TimelineEvent};
use crate::core::view::TaskSummary;

/// One line of the timeline.
pub enum Line {
    /// Something happened.
    Step(Step),
    /// Chunks were committed between two steps: how many, in which time.
    Chunks(String),
}

/// What happened.
pub struct Step {
    /// In words.
    pub label: String,
    /// Why an attempt failed, as its handler said.
    pub message: String,
    /// Who caused it and on which node, as far as the viewer may know.
    pub by: Vec<String>,
    /// Whether an attempt failed.
    pub failed: bool,
    /// The state after it.
    pub state: &'static str,
    /// When.
    pub at: When,
}

/// A failed attempt.
pub struct Attempt {
    /// Which of how many, in words, and when the next one follows.
    pub label: String,
    /// What the handler said.
    pub message: String,
    /// When.
    pub at: When,
}

/// The lines, oldest first.
#[must_use]
pub fn lines(page: &Shell, task: &TaskSummary, events: &[TimelineEvent]) -> Vec<Line> {
    let mut lines = Vec::with_capacity(events.len() * 2);
    let now = task.finished_at.unwrap_or(page.watch.now());
    for (at, event) in events.iter().enumerate() {
        lines.push(Line::Step(step(page, task, event)));
        let (chunk, until) = events.get(at + 1).map_or((task.chunks, now), |next| (next.chunk, next.at));
        if event.to == State::Running && chunk > event.chunk {
            lines.push(Line::Chunks(chunks(page, chunk - event.chunk, until.since(event.at))));
        }
    }
    lines
}

/// "12 chunks, 1.2 s each".
fn chunks(page: &Shell, count: i64, took_ms: i64) -> String {
    let each_ms = took_ms.max(0) / count;
    let each = match each_ms {
        0..100 => page.t("time.instant").into_owned(),
        100..10_000 => page.w.fill("time.s", &[("s", Arg::Real(each_ms as f64 / 1_000.0))]),
        _ => page.watch.span(each_ms),
    };
    page.w.fill("timeline.chunks", &[("n", count.into()), ("each", each.into())])
}

fn step(page: &Shell, task: &TaskSummary, event: &TimelineEvent) -> Step {
    let (word, facts) = event.reason.split_once(':').unwrap_or((&event.reason, ""));
    let key = format!("reason.{word}");
    let label = if page.w.has(&key) { page.t(&key).into_owned() } else { word.to_owned() };
    Step {
        label: match (word, facts.trim(), &event.failure) {
            (_, _, Some(failure)) if failure.delay_ms.is_some() => failed(page, task, event, failure),
            (_, "", _) => label,
            ("total-revised", facts, _) => revised(page, facts),
            (_, facts, _) => format!("{label}: {facts}"),
        },
        message: event.failure.as_ref().map(|f| f.message.clone()).unwrap_or_default(),
        by: [("timeline.by", "actor", &event.actor), ("timeline.on", "node", &event.node)]
            .into_iter()
            .filter_map(|(key, place, who)| Some(page.w.with(key, place, who.as_deref()?)))
            .collect(),
        failed: event.failure.is_some(),
        state: event.to.as_str(),
        at: page.watch.at(event.at),
    }
}

/// The failed attempts, oldest first.
#[must_use]
pub fn attempts(page: &Shell, task: &TaskSummary, events: &[TimelineEvent]) -> Vec<Attempt> {
    let failures = events.iter().filter_map(|event| Some((event, event.failure.as_ref()?)));
    let attempt = |(event, failure): (&TimelineEvent, &FailedAttempt)| Attempt {
        label: failed(page, task, event, failure),
        message: failure.message.clone(),
        at: page.watch.at(event.at),
    };
    failures.map(attempt).collect()
}

/// "Attempt 1 of 3 failed, next try after 5 s".
fn failed(page: &Shell, task: &TaskSummary, event: &TimelineEvent, failure: &FailedAttempt) -> String {
    // A line tells the attempt that stands after it: the next one, unless the task has ended.
    let n = i64::from(event.attempt) - i64::from(!event.to.is_final());
    let (n, max) = (("n", n.max(1).into()), ("max", i64::from(task.max_attempts).into()));
    match failure.delay_ms {
        Some(ms) => page
            .w
            .fill("timeline.failed.next", &[n, max, ("delay", page.watch.span((ms + 500) / 1_000 * 1_000).into())]),
        None => page.w.fill("timeline.failed", &[n, max]),
    }
}

/// "4000 to 5000", "4000 to unknown" in words.
fn revised(page: &Shell, facts: &str) -> String {
    let number = |text: &str| text.parse::<i64>().ok();
    match facts.split_once(" to ").map(|(from, to)| (number(from), number(to))) {
        Some((Some(from), Some(to))) => page.w.fill("say.revised", &[("from", from.into()), ("to", to.into())]),
        Some((None, Some(to))) => page.w.fill("say.total_known", &[("to", to.into())]),
        _ => page.t("reason.total-revised").into_owned(),
    }
}

/// The place after which the last `steps` lines of a timeline stand.
#[must_use]
pub fn after(event_count: i64, steps: i64) -> i64 {
    (event_count - steps).max(0)
}
