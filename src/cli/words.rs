//! A task in the words of the pages, on one line of a terminal: state, percent, counts, what is left, how it ended.
//!
//! The same catalogue in the same language as the pages of the server; the language is that of the environment. Percent only
//! as the server derived it; no total, no percent. The time left is withdrawn whenever the server withdrew it, is rounded the
//! more the longer it is, and is never negative. Instants are yyyy-MM-dd HH:mm:ss in the terminal's own zone.

use super::frame::{End, EtaLine, LogLine, ProgressLine, TaskLine};
use super::terminal_text::{lines, plain};
use crate::app::words::{Rounded, Watch, Words, grouped};
use crate::core::time::Millis;
use jiff::tz::TimeZone;

/// A planned gap between two chunks is told from this length on, ms; shorter ones are the rhythm of the work.
const GAP_TOLD_MS: i64 = 5_000;

/// The words of one terminal.
pub(crate) struct Says {
    w: Words,
    watch: Watch,
}

impl Says {
    /// In the language and the zone of the environment.
    pub(crate) fn here() -> Self {
        let tags = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().filter_map(|name| std::env::var(name).ok());
        let tag = tags.into_iter().find(|tag| !tag.is_empty()).unwrap_or_default();
        let zone = TimeZone::system();
        Self::of(&tag, zone.iana_name().unwrap_or("UTC"))
    }

    fn of(tag: &str, zone: &str) -> Self {
        let w = Words::of(tag);
        // The terminal tells no relative times, so what is now does not matter.
        Self { w, watch: Watch::new(zone, Millis(0), w) }
    }

    /// The language as a BCP 47 tag.
    pub(crate) fn lang(&self) -> &'static str {
        self.w.lang()
    }

    /// That the connection is lost and is being taken up again.
    pub(crate) fn reconnecting(&self) -> String {
        self.t("live.reconnecting")
    }

    /// That what is shown may be old, because the server cannot read its database.
    pub(crate) fn delayed(&self) -> String {
        self.t("live.delayed")
    }

    /// One line on where the task is: state, numbers, what is left, the handler's message.
    pub(crate) fn line(&self, task: &TaskLine) -> String {
        let share = task.progress.percent.map(percent).unwrap_or_default();
        let parts = [self.state(task), share, self.counts(&task.progress), self.timing(task), self.sentence(task)];
        joined(&parts)
    }

    /// The kind of a task: the state, refined by why it waits and how it ended.
    fn kind(task: &TaskLine) -> &str {
        let retries = task.waiting.as_ref().is_some_and(|waiting| waiting.reason == "retry");
        match task.state.as_str() {
            "queued" | "running" if retries => "retrying",
            "running" if task.progress.eta.state == "stalled" => "stalled",
            "succeeded" if task.rows.failed > 0 || !task.warnings.is_empty() => "partial",
            state => state,
        }
    }

    fn state(&self, task: &TaskLine) -> String {
        let key = format!("state.{}", Self::kind(task));
        if self.w.has(&key) { self.t(&key) } else { self.t("state.unknown") }
    }

    /// `1,200 / 5,000 rows`; above the total `1,200 of 1,000 rows expected`.
    fn counts(&self, progress: &ProgressLine) -> String {
        if progress.unit.as_deref() == Some("percent") {
            return String::new();
        }
        let current = number(progress.current);
        match progress.total.map(number) {
            Some(total) if total > 0 => {
                let unit = self.unit(progress, total);
                let key = match unit.as_str() {
                    _ if current > total => "count.over",
                    "" => "count.of.bare",
                    _ => "count.of",
                };
                self.w.fill(key, &[("current", current.into()), ("total", total.into()), ("unit", unit.into())])
            }
            total if current > 0 || total.is_some() => self.amount(progress),
            _ => String::new(),
        }
    }

    fn amount(&self, progress: &ProgressLine) -> String {
        let current = number(progress.current);
        match self.unit(progress, current) {
            unit if unit.is_empty() => grouped(current),
            unit => self.w.fill("count.only", &[("current", current.into()), ("unit", unit.into())]),
        }
    }

    fn unit(&self, progress: &ProgressLine, n: i64) -> String {
        plain(&self.w.unit(progress.unit.as_deref().filter(|unit| *unit != "percent"), n))
    }

    /// What is left, or when it goes on.
    fn timing(&self, task: &TaskLine) -> String {
        let until = task.waiting.as_ref().and_then(|waiting| instant(waiting.until.as_deref()?));
        let at = |key: &str| until.map(|at| format!("{} {}", self.t(key), self.watch.full(at))).unwrap_or_default();
        match (Self::kind(task), task.waiting.as_ref().map(|waiting| waiting.reason.as_str())) {
            ("retrying", _) => at("say.retry"),
            ("queued", Some("scheduled")) => at("say.scheduled"),
            ("running", reason) => {
                let left = self.left(&task.progress.eta);
                let gap = reason == Some("delay") && task.progress.eta.state != "estimated" && is_long_gap(task);
                joined(&[left, if gap { at("say.delay") } else { String::new() }])
            }
            ("pausing" | "cancelling", _) | (_, None | Some(_)) => String::new(),
        }
    }

    fn left(&self, eta: &EtaLine) -> String {
        match eta.state.as_str() {
            "unknown" | "estimating" => self.t("eta.estimating"),
            "estimated" => {
                let seconds = eta.remaining_seconds.unwrap_or_default() as i64;
                if seconds <= 0 {
                    return self.t("eta.overdue");
                }
                let key = if eta.confidence.as_deref() == Some("low") { "eta.roughly" } else { "eta.about" };
                let left = match Rounded::of(seconds) {
                    Rounded::Under => self.t("eta.under"),
                    _ => self.w.with(key, "span", &self.watch.rounded(seconds)),
                };
                let finish = eta.finish_at.as_deref().and_then(instant);
                let finish = finish.map(|at| format!("{} {}", self.t("eta.finishes"), self.watch.full(at)));
                joined(&[left, finish.unwrap_or_default()])
            }
            _ => String::new(),
        }
    }

    /// What it is at, or why nothing moves.
    fn sentence(&self, task: &TaskLine) -> String {
        let waiting = task.waiting.as_ref();
        match Self::kind(task) {
            "queued" => match waiting.map(|waiting| (waiting.position, waiting.reason.as_str())) {
                None => self.t("say.starting"),
                Some((Some(place), _)) if place > 0 => self.w.count("say.position", number(place)),
                Some((_, "capacity")) => self.t("say.capacity"),
                Some((_, "no-handler")) => self.t("say.no_handler"),
                Some((_, "pack-disabled")) => self.t("say.pack_disabled"),
                Some((_, "children")) => self.t("say.children"),
                Some(_) => String::new(),
            },
            "blocked" => self.t("say.blocked.key"),
            "retrying" => {
                let (n, most) = (task.attempt, task.max_attempts);
                let attempt = self.w.fill("say.attempt", &[("n", n.into()), ("max", most.into())]);
                let why = task.error.as_ref().map(|error| first_line(&error.message)).unwrap_or_default();
                joined(&[attempt, why])
            }
            "cancelling" => self.t("say.cancelling"),
            "pausing" => self.t("say.pausing"),
            "unknown" => self.t("say.unknown"),
            "paused" => {
                let by_pack = waiting.is_some_and(|waiting| waiting.reason == "pack-disabled");
                let why = if by_pack { self.t("say.pack_disabled") } else { String::new() };
                joined(&[why, self.stopped(&task.progress, "say.stopped")])
            }
            "running" | "stalled" => {
                let stuck = waiting.is_some_and(|waiting| waiting.reason == "no-handler");
                let message = first_line(task.progress.message.as_deref().unwrap_or_default());
                joined(&[if stuck { self.t("say.no_handler") } else { String::new() }, message])
            }
            _ => String::new(),
        }
    }

    fn stopped(&self, progress: &ProgressLine, key: &str) -> String {
        match (progress.total.map(number).filter(|total| *total > 0), progress.percent) {
            (Some(total), Some(share)) => {
                let current = number(progress.current);
                let args = [("current", current.into()), ("total", total.into()), ("percent", percent(share).into())];
                self.w.fill(key, &args)
            }
            _ if progress.current > 0 => self.w.with("say.stopped.count", "count", &self.amount(progress)),
            _ => String::new(),
        }
    }

    /// How it ended: the true numbers, the time it took, the reason.
    pub(crate) fn ended(&self, task: &TaskLine, end: End) -> String {
        let progress = &task.progress;
        let word = self.state(task);
        match end {
            End::Succeeded => joined(&[word, self.done(task), self.caveat(task)]),
            End::Cancelled => joined(&[word, self.stopped(progress, "say.stopped")]),
            End::Failed => {
                let whole = progress.total.is_some_and(|total| total > 0 && progress.current >= total);
                let stopped = self.stopped(progress, if whole { "say.finishing" } else { "say.stopped" });
                let why = task.error.as_ref().map(|error| {
                    let kind = format!("error.kind.{}", error.kind);
                    let line = first_line(&error.message);
                    let line = if line.is_empty() && self.w.has(&kind) { self.t(&kind) } else { line };
                    format!("{line} ({})", plain(&error.code))
                });
                joined(&[word, why.unwrap_or_default(), stopped])
            }
        }
    }

    fn done(&self, task: &TaskLine) -> String {
        let at = |text: &Option<String>| instant(text.as_deref()?);
        let took = at(&task.finished_at).zip(at(&task.started_at)).map(|(to, from)| self.watch.span(to.since(from)));
        match took {
            Some(took) if task.progress.current > 0 => {
                self.w.fill("say.done", &[("count", self.amount(&task.progress).into()), ("duration", took.into())])
            }
            Some(took) => self.w.with("say.done.time", "duration", &took),
            None if task.progress.current > 0 => self.amount(&task.progress),
            None => String::new(),
        }
    }

    fn caveat(&self, task: &TaskLine) -> String {
        let rows = task.rows;
        let [ok, skipped, failed] = [("ok", rows.ok), ("skipped", rows.skipped), ("failed", rows.failed)]
            .map(|(name, n)| (name, number(n).into()));
        match (rows.failed, rows.skipped) {
            (0, _) => task.warnings.first().map(|code| self.warning(code)).unwrap_or_default(),
            (_, 0) => self.w.fill("say.rows", &[ok, failed]),
            _ => self.w.fill("say.rows.skipped", &[ok, skipped, failed]),
        }
    }

    fn warning(&self, code: &str) -> String {
        let key = format!("warning.{code}");
        if self.w.has(&key) { self.t(&key) } else { first_line(code) }
    }

    /// A line of the log, with its time and a letter for its level; lines of its text below each other.
    pub(crate) fn log(&self, line: &LogLine) -> String {
        let time = instant(&line.at).map(|at| self.watch.full(at)).unwrap_or_default();
        let level = line.level.chars().next().map_or('I', |letter| letter.to_ascii_uppercase());
        let text: Vec<String> = lines(&line.message).collect();
        format!("{time} {level} {}", text.join(&format!("\n{}", " ".repeat(time.len() + 3))))
    }

    fn t(&self, key: &str) -> String {
        self.w.t(key).into_owned()
    }
}

/// Whether the planned gap to the next chunk is long enough to be told.
fn is_long_gap(task: &TaskLine) -> bool {
    let until = task.waiting.as_ref().and_then(|waiting| instant(waiting.until.as_deref()?));
    let moved = task.progress.updated_at.as_deref().and_then(instant);
    until.zip(moved).is_some_and(|(until, moved)| until.since(moved) >= GAP_TOLD_MS)
}

fn percent(share: u8) -> String {
    format!("{share}%")
}

/// The server's numbers end at 2^53 − 1.
fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn instant(text: &str) -> Option<Millis> {
    Millis::parse(text).ok()
}

fn first_line(text: &str) -> String {
    plain(text.lines().next().unwrap_or_default().trim())
}

fn joined(parts: &[String]) -> String {
    parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests;
