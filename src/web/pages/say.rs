//! The sentences of a task row. The state templates (templates/state/) choose which of them a state shows.
//!
//! The same by the same catalogue as static/words.js. Must never show more of a message than its first line: the task's page
//! has the whole.

use super::row::{Row, short_id};
use crate::core::task::{ErrorKind, WaitReason};
use crate::core::view::Waiting;

impl Row<'_> {
    /// Why a queued task has not started.
    #[must_use]
    pub fn queue(&self) -> String {
        let why = match &self.task.waiting {
            Some(waiting) => self.waits_for(waiting),
            None => self.w.t("say.starting").into_owned(),
        };
        joined(&[&self.retry(), &why])
    }

    /// Why a task that is due, or was never started, does not run: its place in the queue, or what is missing.
    fn waits_for(&self, waiting: &Waiting) -> String {
        if let Some(n) = waiting.position.filter(|n| *n > 0) {
            return self.w.fill("say.position", &[("n", n.into())]);
        }
        match waiting.reason {
            WaitReason::Capacity => self.w.t("say.capacity").into_owned(),
            reason => self.held(reason),
        }
    }

    /// What a task waits for that stands still in whatever state it is.
    fn held(&self, reason: WaitReason) -> String {
        let key = match reason.as_str() {
            "no-handler" => "say.no_handler",
            "pack-disabled" => "say.pack_disabled",
            "children" => "say.children",
            _ => return String::new(),
        };
        self.w.t(key).into_owned()
    }

    /// A retry begins from the start, as a new task: of which one it says.
    fn retry(&self) -> String {
        let of = self.task.retry_of.map(|id| self.w.with("say.retry_of", "task", &short_id(&id.to_string())));
        of.unwrap_or_default()
    }

    fn attempt_number(&self) -> String {
        let (n, max) = (i64::from(self.task.attempt), i64::from(self.task.max_attempts));
        self.w.fill("say.attempt", &[("n", n.into()), ("max", max.into())])
    }

    /// Which attempt comes next, and why.
    #[must_use]
    pub fn attempt(&self) -> String {
        joined(&[&self.attempt_number(), first_line(self.task.error.as_ref().map_or("", |e| &e.0.message))])
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
        let message = first_line(p.message.as_deref().unwrap_or_default());
        let phase = first_line(p.phase.as_deref().unwrap_or_default());
        joined(&[
            &self.retry(),
            &if self.task.attempt > 1 { self.attempt_number() } else { String::new() },
            &self.revised(),
            &self.task.waiting.as_ref().map(|w| self.held(w.reason)).unwrap_or_default(),
            if message.is_empty() { phase } else { message },
        ])
    }

    fn revised(&self) -> String {
        let p = &self.task.progress;
        match (p.revised_from, p.total) {
            (Some(from @ 1..), Some(to @ 1..)) => {
                self.w.fill("say.revised", &[("from", from.into()), ("to", to.into())])
            }
            _ => String::new(),
        }
    }

    /// What becomes of a task whose worker is not heard any more.
    #[must_use]
    pub fn silence(&self) -> String {
        self.w.t("say.recovered").into_owned()
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

    /// The same for a paused task, and that it is its pack which holds it.
    #[must_use]
    pub fn paused(&self) -> String {
        let by_pack = self.task.waiting.as_ref().is_some_and(|w| w.reason == WaitReason::PackDisabled);
        joined(&[if by_pack { self.w.t("say.pack_disabled") } else { "".into() }.as_ref(), &self.stopped()])
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
        let key = format!("warning.{code}");
        if self.w.has(&key) { self.w.t(&key).into_owned() } else { code.to_owned() }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim()
}

fn joined(parts: &[&str]) -> String {
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" · ")
}
