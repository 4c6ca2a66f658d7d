//! The task row as the server writes it: what a task says about itself, in words.
//!
//! The same sentences by the same catalogue as static/words.js, so a row does not change when a script takes it over. The
//! state templates (templates/state/) choose which of these a state shows. Must never invent a number: percent, counts
//! and the finish time are the view's, and what is unknown stays unsaid.

use super::shell::record_path;
use super::when::{Rounded, Watch, When};
use super::words::{Words, grouped};
use crate::core::eta::{Confidence, EtaState};
use crate::core::ids::TaskId;
use crate::core::task::{ErrorKind, State, WaitReason};
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
}

/// One row.
pub struct Row<'a> {
    /// The task.
    pub task: &'a TaskSummary,
    /// The words to use.
    pub w: Words,
    /// The CSRF token of the plain forms.
    pub csrf: &'a str,
    watch: &'a Watch,
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
            State::Running if reason.is_none() && task.lease_until.is_some_and(|until| until < self.watch.now()) => {
                Kind::NoSignal
            }
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
                State::Queued | State::Blocked => "muted",
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

    // ── Figures ──

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
                let key = if unit.is_empty() { "count.of.bare" } else { "count.of" };
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
            Kind::Partial | Kind::Plain(State::Succeeded) => "none",
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

    // ── Sentences, chosen by the state templates ──

    /// Why a queued task has not started.
    #[must_use]
    pub fn queue(&self) -> String {
        let Some(waiting) = &self.task.waiting else { return self.w.t("say.starting").into_owned() };
        if let Some(n) = waiting.position.filter(|n| *n > 0) {
            return self.w.fill("say.position", &[("n", n.into())]);
        }
        match waiting.reason {
            WaitReason::Capacity => self.w.t("say.capacity").into_owned(),
            WaitReason::NoHandler => self.w.t("say.no_handler").into_owned(),
            _ => String::new(),
        }
    }

    /// Which attempt comes next, and why.
    #[must_use]
    pub fn attempt(&self) -> String {
        let (n, max) = (i64::from(self.task.attempt), i64::from(self.task.max_attempts));
        let attempt = self.w.fill("say.attempt", &[("n", n.into()), ("max", max.into())]);
        joined(&[&attempt, first_line(self.task.error.as_ref().map_or("", |e| &e.0.message))])
    }

    /// Behind which task a blocked one waits.
    #[must_use]
    pub fn ahead(&self) -> String {
        match self.task.waiting.as_ref().and_then(|w| w.blocked_by) {
            Some(id) => self.w.fill("say.blocked", &[("task", short_id(&id.to_string()).into())]),
            None => self.w.t("say.blocked.key").into_owned(),
        }
    }

    /// What a running task is at.
    #[must_use]
    pub fn doing(&self) -> String {
        let p = &self.task.progress;
        let over = p
            .total
            .filter(|total| *total > 0 && p.current > *total)
            .map(|total| self.w.fill("say.over", &[("current", p.current.into()), ("total", total.into())]));
        let stuck = self.task.waiting.as_ref().is_some_and(|w| w.reason == WaitReason::NoHandler);
        let message = first_line(p.message.as_deref().unwrap_or_default());
        let phase = first_line(p.phase.as_deref().unwrap_or_default());
        joined(&[
            over.as_deref().unwrap_or_default(),
            if stuck { self.w.t("say.no_handler") } else { "".into() }.as_ref(),
            if message.is_empty() { phase } else { message },
        ])
    }

    /// Since when nothing was heard.
    #[must_use]
    pub fn silence(&self) -> String {
        let since = self.task.lease_until.map(|at| self.watch.full(at)).unwrap_or_default();
        self.w.fill("say.no_signal", &[("time", since.into())])
    }

    /// How long ago it last moved.
    #[must_use]
    pub fn moved(&self) -> String {
        let at = self.task.progress.updated_at.unwrap_or(self.task.updated_at);
        self.w.fill("say.moved", &[("ago", self.watch.ago(at).into())])
    }

    /// That a cancel is under way, or that it takes unusually long.
    #[must_use]
    pub fn cancelling(&self) -> String {
        let asked = self.task.stop.as_ref().map_or(self.task.updated_at, |stop| stop.at);
        let late = self.watch.now().since(asked) > 60_000;
        self.w.t(if late { "say.unconfirmed" } else { "say.cancelling" }).into_owned()
    }

    /// Why it failed, in one line.
    #[must_use]
    pub fn reason(&self) -> String {
        let Some(error) = &self.task.error else { return String::new() };
        let line = first_line(&error.0.message);
        if line.is_empty() { self.error_kind() } else { line.to_owned() }
    }

    /// The class of the failure in words.
    #[must_use]
    pub fn error_kind(&self) -> String {
        let Some(error) = &self.task.error else { return String::new() };
        let word = match error.0.kind {
            ErrorKind::Handler => "handler",
            ErrorKind::Permanent => "permanent",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Deadline => "deadline",
            ErrorKind::Budget => "budget",
            ErrorKind::BadOutcome => "bad-outcome",
            ErrorKind::NoProgress => "no-progress",
            ErrorKind::LeaseLost => "lease-lost",
            ErrorKind::Internal => "internal",
        };
        self.w.t(&format!("error.kind.{word}")).into_owned()
    }

    /// "stopped at 1,250 of 5,000 (25%)".
    #[must_use]
    pub fn stopped(&self) -> String {
        self.stopped_as("say.stopped")
    }

    /// The same for a failure, which may have come after the last item.
    #[must_use]
    pub fn stopped_failed(&self) -> String {
        let p = &self.task.progress;
        let whole = p.total.is_some_and(|total| total > 0 && p.current >= total);
        self.stopped_as(if whole { "say.finishing" } else { "say.stopped" })
    }

    fn stopped_as(&self, key: &str) -> String {
        let p = &self.task.progress;
        match (p.total.filter(|t| *t > 0), p.percent) {
            (Some(total), Some(_)) => self.w.fill(
                key,
                &[("current", p.current.into()), ("total", total.into()), ("percent", self.percent().into())],
            ),
            _ if p.current > 0 => self.w.fill("say.stopped.count", &[("count", self.amount().into())]),
            _ => String::new(),
        }
    }

    /// "5,000 rows in 48 s".
    #[must_use]
    pub fn done(&self) -> String {
        let (Some(from), Some(to)) = (self.task.started_at, self.task.finished_at) else { return String::new() };
        let duration = self.watch.span(to.since(from));
        if self.task.progress.current > 0 {
            self.w.fill("say.done", &[("count", self.amount().into()), ("duration", duration.into())])
        } else {
            self.w.fill("say.done.time", &[("duration", duration.into())])
        }
    }

    /// What did not go well in a success.
    #[must_use]
    pub fn caveat(&self) -> String {
        let rows = self.task.rows;
        let (ok, skipped, failed) =
            (("ok", rows.ok.into()), ("skipped", rows.skipped.into()), ("failed", rows.failed.into()));
        match (rows.failed, rows.skipped) {
            (0, _) => self.task.warnings.first().map(|code| self.warning(code)).unwrap_or_default(),
            (_, 0) => self.w.fill("say.rows", &[ok, failed]),
            _ => self.w.fill("say.rows.skipped", &[ok, skipped, failed]),
        }
    }

    /// A warning in words: a code that the catalogue knows, else as it came.
    #[must_use]
    pub fn warning(&self, code: &str) -> String {
        let key = format!("reason.{code}");
        if self.w.has(&key) { self.w.t(&key).into_owned() } else { code.to_owned() }
    }

    // ── Time ──

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
            EtaState::Estimating | EtaState::Unknown if self.next_batch().is_none() => {
                self.w.t("eta.estimating").into_owned()
            }
            _ => String::new(),
        }
    }

    /// Seconds to the estimated finish; nothing when it is past or unknown.
    #[must_use]
    pub fn seconds_left(&self) -> Option<i64> {
        let eta = &self.task.progress.eta;
        let at = eta.finish_at.filter(|_| eta.state == EtaState::Estimated)?;
        Some(at.since(self.watch.now()) / 1000).filter(|seconds| *seconds > 0)
    }

    /// The estimated finish.
    #[must_use]
    pub fn finish(&self) -> Option<When> {
        self.seconds_left()?;
        self.task.progress.eta.finish_at.map(|at| self.watch.at(at))
    }

    /// When the next chunk of a running task is planned, as long as nothing better is known.
    #[must_use]
    pub fn next_batch(&self) -> Option<When> {
        if self.task.progress.eta.state == EtaState::Estimated {
            return None;
        }
        self.until(WaitReason::Delay)
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

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim()
}

fn joined(parts: &[&str]) -> String {
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" · ")
}
