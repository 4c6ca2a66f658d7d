//! The task row as the server writes it: its kind, colour, bar, figures and group. Its sentences are in `say`, its times in
//! `left`.
//!
//! The same sentences by the same catalogue as static/words.js, so a row does not change when a script takes it over. The
//! state templates (templates/state/) choose which of these a state shows. Must never invent a number: percent, counts
//! and the finish time are the view's, and what is unknown stays unsaid.

use super::shell::record_path;
use super::when::{Watch, When};
use super::words::{Words, grouped};
use crate::core::eta::EtaState;
use crate::core::ids::TaskId;
use crate::core::task::{State, WaitReason};
use crate::core::time::Millis;
use crate::core::view::TaskSummary;

/// What a row shows beyond its state: why it waits, whether it moves, how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Just its state.
    Plain(State),
    /// Waits for the next attempt.
    Retrying,
    /// Silent for longer than usual.
    Stalled,
    /// Its lease is over and nobody renewed it.
    NoSignal,
    /// Succeeded with failed rows or warnings.
    Partial,
}

/// The group a row stands in, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// A person has to decide.
    Attention,
    /// Under way.
    Running,
    /// Waits for its turn.
    Queued,
    /// Ended on the viewer's today.
    Today,
    /// Ended before.
    Earlier,
}

impl Group {
    /// The key of its heading.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Attention => "group.attention",
            Self::Running => "group.running",
            Self::Queued => "group.queued",
            Self::Today => "group.today",
            Self::Earlier => "group.earlier",
        }
    }

    /// Its name for the script.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.key().trim_start_matches("group.")
    }
}

/// One row.
pub struct Row<'a> {
    /// The task.
    pub task: &'a TaskSummary,
    /// The words to use.
    pub w: Words,
    /// The CSRF token of the plain forms.
    pub csrf: &'a str,
    pub(super) watch: &'a Watch,
}

impl<'a> Row<'a> {
    /// A row for a viewer's language and zone.
    #[must_use]
    pub fn new(task: &'a TaskSummary, w: Words, watch: &'a Watch, csrf: &'a str) -> Self {
        Self { task, w, csrf, watch }
    }

    /// What kind of row it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        let task = self.task;
        let reason = task.waiting.as_ref().map(|w| w.reason);
        match task.state {
            State::Queued | State::Running if reason == Some(WaitReason::Retry) => Kind::Retrying,
            State::Running if task.silent_since.is_some() => Kind::NoSignal,
            State::Running if task.progress.eta.state == EtaState::Stalled => Kind::Stalled,
            State::Succeeded if task.rows.failed > 0 || !task.warnings.is_empty() => Kind::Partial,
            state => Kind::Plain(state),
        }
    }

    /// The kind as a word for attributes and icons.
    #[must_use]
    pub fn kind_word(&self) -> &'static str {
        match self.kind() {
            Kind::Plain(state) => state.as_str(),
            Kind::Retrying => "retrying",
            Kind::Stalled => "stalled",
            Kind::NoSignal => "no-signal",
            Kind::Partial => "partial",
        }
    }

    /// The symbol in the sprite.
    #[must_use]
    pub fn icon(&self) -> &'static str {
        if self.kind() == Kind::NoSignal { "stalled" } else { self.kind_word() }
    }

    /// The colour, by name.
    #[must_use]
    pub fn tone(&self) -> &'static str {
        match self.kind() {
            Kind::Retrying | Kind::Stalled | Kind::NoSignal | Kind::Partial => "warn",
            Kind::Plain(state) => match state {
                State::Queued | State::Blocked | State::Unknown => "muted",
                State::Running => "accent",
                State::Pausing | State::Paused | State::Cancelling | State::Cancelled => "still",
                State::Succeeded => "ok",
                State::Failed => "bad",
            },
        }
    }

    /// The state in a word.
    #[must_use]
    pub fn word(&self) -> String {
        self.w.t(&format!("state.{}", self.kind_word())).into_owned()
    }

    /// The group it stands in.
    #[must_use]
    pub fn group(&self) -> Group {
        let task = self.task;
        let stuck = task.waiting.as_ref().is_some_and(|w| w.reason == WaitReason::NoHandler);
        match task.state {
            State::Paused => Group::Attention,
            State::Failed if !task.read => Group::Attention,
            _ if stuck => Group::Attention,
            State::Queued | State::Blocked => Group::Queued,
            state if !state.is_final() => Group::Running,
            _ if task.finished_at.is_some_and(|at| self.watch.is_today(at)) => Group::Today,
            _ => Group::Earlier,
        }
    }

    /// An ended task that its owner has not opened.
    #[must_use]
    pub fn unread(&self) -> bool {
        self.task.state.is_final() && !self.task.read
    }

    /// "24%", or nothing where no total is known.
    #[must_use]
    pub fn percent(&self) -> String {
        self.task.progress.percent.map(|p| format!("{p}%")).unwrap_or_default()
    }

    /// "1,200 / 5,000 rows", or "1,250 rows" with an unknown total.
    #[must_use]
    pub fn count(&self) -> String {
        let p = &self.task.progress;
        if p.unit.as_deref() == Some("percent") {
            return String::new();
        }
        match p.total {
            Some(total) if total > 0 => {
                let unit = self.w.unit(p.unit.as_deref(), total);
                let key = match unit.as_str() {
                    _ if p.current > total => "count.over",
                    "" => "count.of.bare",
                    _ => "count.of",
                };
                self.w.fill(key, &[("current", p.current.into()), ("total", total.into()), ("unit", unit.into())])
            }
            total if p.current > 0 || total == Some(0) => self.amount(),
            _ => String::new(),
        }
    }

    /// The current amount with its unit.
    #[must_use]
    pub fn amount(&self) -> String {
        let p = &self.task.progress;
        let unit = self.w.unit(p.unit.as_deref().filter(|u| *u != "percent"), p.current);
        if unit.is_empty() {
            return grouped(p.current);
        }
        self.w.fill("count.only", &[("current", p.current.into()), ("unit", unit.into())])
    }

    /// How the bar looks: `value`, `moving`, `still` or `none`.
    #[must_use]
    pub fn bar(&self) -> &'static str {
        match self.kind() {
            Kind::Partial | Kind::Plain(State::Succeeded | State::Unknown) => "none",
            _ if self.task.progress.percent.is_some() => "value",
            Kind::Plain(State::Running) => {
                let between = self.task.waiting.as_ref().is_some_and(|w| w.reason != WaitReason::Delay);
                if between { "still" } else { "moving" }
            }
            Kind::Stalled | Kind::NoSignal | Kind::Plain(State::Pausing | State::Cancelling) => "still",
            _ => "none",
        }
    }

    /// What the bar says aloud.
    #[must_use]
    pub fn value_text(&self) -> String {
        let p = &self.task.progress;
        let total = p.total.filter(|t| *t > 0 && p.percent.is_some());
        let unit = self.w.unit(p.unit.as_deref(), total.unwrap_or(p.current));
        let current = ("current", p.current.into());
        match total {
            Some(total) => {
                let value = self.w.fill("bar.value", &[current, ("total", total.into()), ("unit", unit.into())]);
                let left = self.left();
                let value = value.trim();
                if left.is_empty() { value.to_owned() } else { format!("{value}, {left}") }
            }
            None => self.w.fill("bar.unknown", &[current, ("unit", unit.into())]),
        }
    }

    /// What the viewer may do now, in the order of the buttons; what else the view lists has no button here.
    pub fn acts(&self) -> impl Iterator<Item = &'static str> {
        ["resume", "retry", "pause", "cancel", "delete"].into_iter().filter(|act| self.may(act))
    }

    /// Whether the viewer may do this now.
    #[must_use]
    pub fn may(&self, act: &str) -> bool {
        self.task.can.contains(&act)
    }

    /// "2 / 3": which attempt of how many.
    #[must_use]
    pub fn attempts(&self) -> String {
        let (n, max) = (i64::from(self.task.attempt), i64::from(self.task.max_attempts));
        self.w.fill("task.attempt.value", &[("n", n.into()), ("max", max.into())])
    }

    /// A whole number, grouped.
    #[must_use]
    pub fn number(&self, n: &i64) -> String {
        grouped(*n)
    }

    /// A task's id as people tell it from others.
    #[must_use]
    pub fn short(&self, id: &TaskId) -> String {
        short_id(&id.to_string())
    }

    /// The page of its record; empty without one.
    #[must_use]
    pub fn record_path(&self) -> String {
        self.task.record.as_ref().map(|r| record_path(&r.record.kind, &r.record.id)).unwrap_or_default()
    }

    /// An instant for a `<time>` element.
    #[must_use]
    pub fn at(&self, at: &Millis) -> When {
        self.watch.at(*at)
    }
}

/// The part of an id that tells two apart by eye: its random end, as the front of a UUIDv7 is the time.
#[must_use]
pub fn short_id(id: &str) -> String {
    format!("#{}", &id[id.len().saturating_sub(4)..])
}
