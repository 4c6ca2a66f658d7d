//! A task in the words of the terminal: counts, percent, what is left, and how it ended.
//!
//! Percent only as the server derived it; no total, no percent. Remaining time is rounded the more the longer it is, and
//! withdrawn whenever the server withdrew it. Times are those of the terminal's own zone.

use super::frame::{End, EtaLine, LogLine, ProgressLine, TaskLine};
use super::terminal_text::{lines, plain};
use indicatif::HumanCount;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The shortest gap between two chunks that is told; shorter ones are the rhythm of the work.
const GAP_TOLD_SECONDS: i64 = 10;

/// One line on where the task is: state, numbers, what is left, the handler's message.
pub(crate) fn line(task: &TaskLine, zone: &TimeZone) -> String {
    let mut parts = vec![state(task, zone)];
    if task.progress.percent.is_some() {
        parts.push(format!("{} %", task.progress.percent.unwrap_or_default()));
    }
    parts.extend(facts(task, zone));
    parts.join(" · ")
}

/// Numbers, what is left, and the handler's message: what stands beside a bar.
pub(crate) fn facts(task: &TaskLine, zone: &TimeZone) -> Vec<String> {
    let progress = &task.progress;
    let mut facts = Vec::new();
    if progress.current > 0 || progress.total.is_some() {
        facts.push(counts(progress));
    }
    facts.extend(remaining(&progress.eta, zone));
    facts.extend(progress.message.as_deref().filter(|text| !text.is_empty()).map(plain));
    facts
}

/// `1,200 / 5,000 rows`; above the total `1,200 of 1,000 rows expected`.
pub(crate) fn counts(progress: &ProgressLine) -> String {
    let current = HumanCount(progress.current);
    let unit = progress.unit.as_deref().map(|unit| format!(" {}", plain(unit))).unwrap_or_default();
    match progress.total {
        Some(total) if total > 0 && progress.current > total => {
            format!("{current} of {}{unit} expected", HumanCount(total))
        }
        Some(total) if total > 0 => format!("{current} / {}{unit}", HumanCount(total)),
        _ => format!("{current}{unit}"),
    }
}

/// The state as a person says it, with the reason of a wait.
pub(crate) fn state(task: &TaskLine, zone: &TimeZone) -> String {
    let waiting = task.waiting.as_ref();
    let until = waiting.and_then(|waiting| clock(waiting.until.as_deref()?, zone, "%H:%M:%S"));
    let at = until.map(|time| format!(" until {time}")).unwrap_or_default();
    match (task.state.as_str(), waiting.map(|waiting| waiting.reason.as_str())) {
        ("queued", Some("retry")) => format!("waiting for retry {} of {}{at}", task.attempt, task.max_attempts),
        ("queued", Some("scheduled")) => format!("scheduled{at}"),
        ("queued" | "running", Some("no-handler")) => "waiting: no node can run this action".to_owned(),
        ("queued", _) => match waiting.and_then(|waiting| waiting.position) {
            Some(position) => format!("queued, number {position} in line"),
            None => "queued".to_owned(),
        },
        ("blocked", _) => "blocked: waits for a task of the same group".to_owned(),
        ("running", Some("delay")) if is_long_gap(task) => format!("running, next batch{}", at.replace("until", "at")),
        (other, _) => plain(other),
    }
}

/// Whether the planned gap to the next chunk is long enough to be told.
fn is_long_gap(task: &TaskLine) -> bool {
    let until = task.waiting.as_ref().and_then(|waiting| waiting.until.as_deref());
    match (until.and_then(instant), task.progress.updated_at.as_deref().and_then(instant)) {
        (Some(until), Some(moved)) => until.duration_since(moved).as_secs() >= GAP_TOLD_SECONDS,
        _ => false,
    }
}

fn remaining(eta: &EtaLine, zone: &TimeZone) -> Option<String> {
    match eta.state.as_str() {
        "unknown" | "estimating" => Some("estimating".to_owned()),
        "stalled" => Some("no progress for a while".to_owned()),
        "estimated" => {
            let seconds = eta.remaining_seconds?;
            if seconds <= 0.0 {
                return Some("taking longer than estimated".to_owned());
            }
            let about = if eta.confidence.as_deref() == Some("low") { "roughly" } else { "about" };
            let left = rounded(seconds);
            let left = if left.starts_with("less") { format!("{left} left") } else { format!("{about} {left} left") };
            let finishes = eta.finish_at.as_deref().and_then(|at| clock(at, zone, "%H:%M"));
            Some(finishes.map(|at| format!("{left} · finishes {at}")).unwrap_or(left))
        }
        _ => None,
    }
}

/// Below a minute, minutes, steps of 5 minutes above 10, half hours above 2 hours.
fn rounded(seconds: f64) -> String {
    let minutes = seconds / 60.0;
    if minutes < 1.0 {
        return "less than 1 min".to_owned();
    }
    let step = if minutes <= 10.0 {
        1.0
    } else if minutes <= 120.0 {
        5.0
    } else {
        30.0
    };
    let minutes = ((minutes / step).round() * step) as u64;
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// How it ended: the true numbers, the time it took, the reason.
pub(crate) fn ended(task: &TaskLine, end: End) -> String {
    let progress = &task.progress;
    let some = progress.current > 0 || progress.total.is_some_and(|total| total > 0);
    match end {
        End::Succeeded => {
            let mut text = "succeeded".to_owned();
            if some {
                let unit = progress.unit.as_deref().map(|unit| format!(" {}", plain(unit))).unwrap_or_default();
                text.push_str(&format!(" · {}{unit}", HumanCount(progress.current)));
            }
            if let Some(took) = took(task) {
                text.push_str(&format!(" in {took}"));
            }
            if task.rows.failed > 0 {
                text.push_str(&format!(" · {} failed", HumanCount(task.rows.failed)));
            }
            text
        }
        End::Failed | End::Cancelled => {
            let mut text = if end == End::Failed { "failed" } else { "cancelled" }.to_owned();
            if let Some(error) = task.error.as_ref().filter(|_| end == End::Failed) {
                text.push_str(&format!(
                    " · {} ({}, {})",
                    plain(&error.message),
                    plain(&error.kind),
                    plain(&error.code)
                ));
            }
            if some {
                let percent = progress.percent.map(|percent| format!(" ({percent} %)")).unwrap_or_default();
                text.push_str(&format!(" · stopped at {}{percent}", counts(progress)));
            }
            text
        }
    }
}

fn took(task: &TaskLine) -> Option<String> {
    let at = |text: &Option<String>| instant(text.as_deref()?);
    let seconds = at(&task.finished_at)?.duration_since(at(&task.started_at)?).as_secs().max(0);
    Some(match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0) => "less than 1 s".to_owned(),
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    })
}

/// A line of the log, with its time and a letter for its level; lines of its text below each other.
pub(crate) fn log(line: &LogLine, zone: &TimeZone) -> String {
    let time = clock(&line.at, zone, "%H:%M:%S").unwrap_or_default();
    let level = line.level.chars().next().map_or('I', |letter| letter.to_ascii_uppercase());
    let text: Vec<String> = lines(&line.message).collect();
    format!("{time} {level} {}", text.join("\n           "))
}

fn instant(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

fn clock(at: &str, zone: &TimeZone, form: &str) -> Option<String> {
    let at = instant(at)?;
    Some(at.to_zoned_datetime(zone.clone()).strftime(form).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn task(value: Value) -> TaskLine {
        serde_json::from_value(value).unwrap()
    }

    fn said(value: Value) -> String {
        line(&task(value), &TimeZone::UTC)
    }

    #[test]
    fn a_known_total_has_percent_counts_and_what_is_left() {
        let eta = json!({"state": "estimated", "finishAt": "2026-11-29T15:42:10.000Z", "remainingSeconds": 230, "confidence": "high"});
        let progress =
            json!({"current": 1200, "total": 5000, "unit": "rows", "percent": 24, "message": "batch 12", "eta": eta});
        assert_eq!(
            said(json!({"state": "running", "progress": progress})),
            "running · 24 % · 1,200 / 5,000 rows · about 4 min left · finishes 15:42 · batch 12"
        );
    }

    #[test]
    fn an_unknown_total_has_a_count_and_no_percent_sign() {
        let progress =
            json!({"current": 1250, "total": null, "unit": "rows", "percent": null, "eta": {"state": "unknown"}});
        assert_eq!(said(json!({"state": "running", "progress": progress})), "running · 1,250 rows · estimating");
        let over = json!({"current": 1200, "total": 1000, "percent": 99, "eta": {"state": "none"}});
        assert_eq!(said(json!({"state": "running", "progress": over})), "running · 99 % · 1,200 of 1,000 expected");
    }

    #[test]
    fn remaining_time_is_rounded_the_more_the_longer_it_is_and_never_negative() {
        for (seconds, words) in [
            (5, "less than 1 min left"),
            (60, "about 1 min left"),
            (599, "about 10 min left"),
            (840, "about 15 min left"),
            (5_000, "about 1 h 25 min left"),
            (8_000, "about 2 h left"),
            (9_200, "about 2 h 30 min left"),
            (0, "taking longer than estimated"),
            (-3, "taking longer than estimated"),
        ] {
            let eta = serde_json::from_value(json!({"state": "estimated", "remainingSeconds": seconds})).unwrap();
            assert_eq!(remaining(&eta, &TimeZone::UTC).as_deref(), Some(words), "{seconds}");
        }
        let eta = json!({"state": "estimated", "remainingSeconds": 120, "confidence": "low"});
        let eta = serde_json::from_value(eta).unwrap();
        assert_eq!(remaining(&eta, &TimeZone::UTC).as_deref(), Some("roughly 2 min left"));
        assert_eq!(remaining(&EtaLine::default(), &TimeZone::UTC), None);
    }

    #[test]
    fn a_wait_says_why() {
        for (value, words) in [
            (json!({"state": "queued", "waiting": {"reason": "capacity", "position": 3}}), "queued, number 3 in line"),
            (
                json!({"state": "queued", "attempt": 2, "maxAttempts": 3, "waiting": {"reason": "retry", "until": "2026-11-29T15:42:10.000Z"}}),
                "waiting for retry 2 of 3 until 15:42:10",
            ),
            (json!({"state": "running", "waiting": {"reason": "no-handler"}}), "waiting: no node can run this action"),
            (
                json!({"state": "running", "progress": {"updatedAt": "2026-11-29T15:42:00.000Z"},
                    "waiting": {"reason": "delay", "until": "2026-11-29T15:42:10.000Z"}}),
                "running, next batch at 15:42:10",
            ),
            (
                json!({"state": "running", "progress": {"updatedAt": "2026-11-29T15:42:00.000Z"},
                    "waiting": {"reason": "delay", "until": "2026-11-29T15:42:01.000Z"}}),
                "running",
            ),
            (json!({"state": "zz_new"}), "zz_new"),
        ] {
            assert_eq!(said(value), words);
        }
    }

    #[test]
    fn an_end_tells_the_true_numbers_and_the_reason() {
        let progress = json!({"current": 5000, "total": 5000, "unit": "rows", "percent": 100});
        let times = ("2026-11-29T15:00:00.000Z", "2026-11-29T15:00:48.100Z");
        let good =
            task(json!({"progress": progress, "startedAt": times.0, "finishedAt": times.1, "rows": {"failed": 2}}));
        assert_eq!(ended(&good, End::Succeeded), "succeeded · 5,000 rows in 48 s · 2 failed");
        let progress = json!({"current": 1250, "total": 5000, "unit": "rows", "percent": 25});
        let error = json!({"kind": "handler", "code": "no-column", "message": "File has no column \u{1b}[1memail."});
        let bad = task(json!({"progress": progress, "error": error}));
        assert_eq!(
            ended(&bad, End::Failed),
            "failed · File has no column email. (handler, no-column) · stopped at 1,250 / 5,000 rows (25 %)"
        );
        assert_eq!(ended(&bad, End::Cancelled), "cancelled · stopped at 1,250 / 5,000 rows (25 %)");
        assert_eq!(ended(&TaskLine::default(), End::Succeeded), "succeeded");
    }

    #[test]
    fn a_log_line_has_its_time_its_level_and_no_control_codes() {
        let line = LogLine {
            seq: 1,
            at: "2026-11-29T15:42:10.123Z".into(),
            level: "warn".into(),
            message: "a\u{1b}[2Jb\nc".into(),
        };
        assert_eq!(log(&line, &TimeZone::UTC), "15:42:10 W ab\n           c");
    }
}
