//! True progress: what a handler said, what is kept of it, and the percent that follows from it.
//!
//! A handler tells `current`, `total`, `unit`, `phase` and `message`, all optional. [`Reported::parse`] refuses numbers
//! that are none (text, `true`, negative, beyond 2^53 − 1) with the field named; a report with a fault is dropped whole
//! and never fails the handler's own work. [`Progress::apply`] folds a report into the stored, absolute values.
//!
//! The one rule of monotony: for one total, `current` never falls. A report that brings another total may also bring a
//! lower `current`, as at the start of a new phase. `current` above the total is kept as it is: the page says
//! "1,200 of 1,000 expected", and nothing is rewritten to look complete.
//!
//! Percent is derived here and stored nowhere. It is 100 only for a task that has succeeded.

use crate::core::time::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// The largest `current` and `total`: 2^53 − 1, the last integer that every JSON reader holds exactly.
pub const MAX_COUNT: i64 = (1 << 53) - 1;
/// The longest message, in characters.
pub const MAX_MESSAGE_CHARS: usize = 2_000;
/// The longest unit, in characters.
pub const MAX_UNIT_CHARS: usize = 40;
/// The longest phase, in characters.
pub const MAX_PHASE_CHARS: usize = 200;

/// The progress of a task as stored. Written only through [`Progress::apply`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Progress {
    /// Work done, in `unit`s: 0 to [`MAX_COUNT`].
    pub current: i64,
    /// Work in all; `None` when unknown, 0 when nobody can say before the end.
    pub total: Option<i64>,
    /// What is counted, such as `rows`.
    pub unit: Option<String>,
    /// The part of the work that runs.
    pub phase: Option<String>,
    /// The handler's last words, at most [`MAX_MESSAGE_CHARS`].
    pub message: Option<String>,
    /// When a report last changed one of the above.
    pub updated_at: Option<Millis>,
}

/// How percent is to be read: the part of a task's state that matters for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Not ended: queued, blocked, running, pausing, paused, cancelling.
    Active,
    /// Ended with success.
    Succeeded,
    /// Failed or cancelled: frozen at the true value.
    Stopped,
}

/// What a report did to the stored progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// By how much `current` grew; 0 when it did not, or fell under a new total.
    pub grew_by: i64,
    /// The total before and after, when it changed. `(None, Some(_))` is the first time that it is known.
    pub total_revised: Option<(Option<i64>, Option<i64>)>,
    /// Whether anything that a user sees changed.
    pub changed: bool,
}

/// One report, checked. A field that is `None` was not said and stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// The new absolute count.
    pub current: Option<i64>,
    /// The new total; `Some(None)` withdraws it.
    pub total: Option<Option<i64>>,
    /// The new unit; `Some(None)` clears it.
    pub unit: Option<Option<String>>,
    /// The new phase; `Some(None)` clears it.
    pub phase: Option<Option<String>>,
    /// The new message; `Some(None)` clears it.
    pub message: Option<Option<String>>,
}

/// A field of a report that cannot be taken, and why; for the task's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFault {
    /// The field's name, as in the report.
    pub field: &'static str,
    /// A half sentence such as "must not be negative". Never holds the value.
    pub reason: &'static str,
}

impl fmt::Display for FieldFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.reason)
    }
}

impl Reported {
    /// This report on top of an older one: what it does not say, the older one still says.
    #[must_use]
    pub fn over(self, older: Self) -> Self {
        Self {
            current: self.current.or(older.current),
            total: self.total.or(older.total),
            unit: self.unit.or(older.unit),
            phase: self.phase.or(older.phase),
            message: self.message.or(older.message),
        }
    }

    /// Reads the progress fields of a report or an outcome and leaves all others alone. Either the whole report is
    /// taken, or nothing of it and all its faults are told.
    pub fn parse(report: &Value) -> Result<Self, Vec<FieldFault>> {
        let mut faults = Vec::new();
        let current = count("current", report, &mut faults).flatten();
        let total = count("total", report, &mut faults);
        let unit = text("unit", report, MAX_UNIT_CHARS, &mut faults);
        let phase = text("phase", report, MAX_PHASE_CHARS, &mut faults);
        let message = text("message", report, MAX_MESSAGE_CHARS, &mut faults);
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Self { current, total, unit, phase, message })
    }
}

/// `None` when the field is absent or refused, `Some(None)` when it is null.
fn count(field: &'static str, report: &Value, faults: &mut Vec<FieldFault>) -> Option<Option<i64>> {
    let reason = match report.get(field)? {
        Value::Null => return Some(None),
        Value::Number(number) => match number.as_f64() {
            Some(n) if n < 0.0 => "must not be negative",
            // The cast floors: what is left is finite, not negative and in range.
            Some(n) if n <= MAX_COUNT as f64 => {
                return Some(Some(number.as_i64().unwrap_or(n as i64)));
            }
            _ => "must be at most 9007199254740991",
        },
        _ => "must be a number",
    };
    faults.push(FieldFault { field, reason });
    None
}

fn text(field: &'static str, report: &Value, max_chars: usize, faults: &mut Vec<FieldFault>) -> Option<Option<String>> {
    match report.get(field)? {
        Value::Null => Some(None),
        Value::String(text) => Some(Some(tidy(text, max_chars))),
        _ => {
            let reason = "must be a text";
            faults.push(FieldFault { field, reason });
            None
        }
    }
}

/// A text as every database can keep it: at most `max_chars` characters, cut at a character and marked with `…` where it
/// was longer, and U+0000 replaced.
#[must_use]
pub fn tidy(text: &str, max_chars: usize) -> String {
    let mut out = match text.char_indices().nth(max_chars) {
        None => text.to_owned(),
        Some(_) => text.chars().take(max_chars.saturating_sub(1)).chain(['…']).collect(),
    };
    if out.contains('\0') {
        out = out.replace('\0', "\u{fffd}");
    }
    out
}

impl Progress {
    /// Takes a report over. `now` becomes `updated_at` when something changed.
    pub fn apply(&mut self, reported: &Reported, now: Millis) -> Applied {
        let before = self.clone();
        if let Some(total) = reported.total {
            self.total = total.map(|n| n.clamp(0, MAX_COUNT));
        }
        if let Some(current) = reported.current {
            let current = current.clamp(0, MAX_COUNT);
            let same_total = self.total == before.total;
            self.current = if same_total { current.max(before.current) } else { current };
        }
        for (field, said) in [
            (&mut self.unit, &reported.unit),
            (&mut self.phase, &reported.phase),
            (&mut self.message, &reported.message),
        ] {
            if let Some(text) = said {
                field.clone_from(text);
            }
        }
        let changed = *self != before;
        if changed {
            self.updated_at = Some(now);
        }
        Applied {
            grew_by: (self.current - before.current).max(0),
            total_revised: (self.total != before.total).then_some((before.total, self.total)),
            changed,
        }
    }

    /// Whole percent, 0 to 100; `None` where nobody can say: without a total, and for a total of 0 until success.
    #[must_use]
    pub fn percent(&self, stage: Stage) -> Option<u8> {
        let total = self.total?;
        if stage == Stage::Succeeded {
            return Some(100);
        }
        if total <= 0 {
            return None;
        }
        let percent = i128::from(self.current) * 100 / i128::from(total);
        Some(u8::try_from(percent.clamp(0, 99)).expect("0 to 99 fits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const NOW: Millis = Millis(1_000);

    /// Applies a report that must be well formed.
    fn say(progress: &mut Progress, report: &Value) -> Applied {
        progress.apply(&Reported::parse(report).unwrap(), NOW)
    }

    fn after(reports: &[Value]) -> Progress {
        let mut progress = Progress::default();
        for report in reports {
            say(&mut progress, report);
        }
        progress
    }

    fn refused(report: &Value) -> Vec<String> {
        let faults = Reported::parse(report).unwrap_err();
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn more_than_the_total_is_kept_true_and_never_drawn_beyond_99_percent() {
        let mut p = after(&[json!({"current": 130, "total": 100})]);
        assert_eq!((p.current, p.total, p.percent(Stage::Active)), (130, Some(100), Some(99)));
        p = after(&[json!({"current": 80, "total": 100}), json!({"total": 50})]);
        assert_eq!((p.current, p.total, p.percent(Stage::Active)), (80, Some(50), Some(99)));
        let applied = say(&mut p, &json!({"current": 10}));
        assert_eq!((p.current, applied), (80, Applied::default()));
        assert_eq!(p.percent(Stage::Stopped), Some(99));
        assert_eq!(p.percent(Stage::Succeeded), Some(100));
    }

    #[test]
    fn a_total_of_zero_is_indeterminate_until_success() {
        for current in [0, 5] {
            let p = after(&[json!({"current": current, "total": 0})]);
            assert_eq!(p.percent(Stage::Active), None);
            assert_eq!(p.percent(Stage::Stopped), None);
            assert_eq!(p.percent(Stage::Succeeded), Some(100));
        }
    }

    #[test]
    fn without_a_total_there_is_no_percent_in_any_state() {
        let p = after(&[json!({"current": 5, "total": 10}), json!({"total": null})]);
        for stage in [Stage::Active, Stage::Succeeded, Stage::Stopped] {
            assert_eq!((p.current, p.percent(stage)), (5, None));
        }
    }

    #[test]
    fn percent_is_floored_and_100_only_after_success() {
        for (current, total, percent) in
            [(0, 3, 0), (1, 3, 33), (2, 3, 66), (3, 3, 99), (MAX_COUNT, MAX_COUNT, 99), (MAX_COUNT, 1, 99)]
        {
            let p = after(&[json!({"current": current, "total": total})]);
            assert_eq!(p.percent(Stage::Active), Some(percent), "{current}/{total}");
        }
    }

    #[test]
    fn what_is_no_count_is_refused_with_its_field_and_the_report_is_dropped() {
        let negative = "must not be negative";
        let beyond = "must be at most 9007199254740991";
        for (value, reason) in [
            (json!("7"), "must be a number"),
            (json!("NaN"), "must be a number"),
            (json!(true), "must be a number"),
            (json!([1]), "must be a number"),
            (json!(-3), negative),
            (json!(-0.5), negative),
            (json!(i64::MIN), negative),
            (json!(MAX_COUNT + 1), beyond),
            (json!(u64::MAX), beyond),
            (json!(1e300), beyond),
        ] {
            for field in ["current", "total"] {
                assert_eq!(refused(&json!({field: value, "message": "x"})), [format!("{field} {reason}")], "{value}");
            }
        }
        assert_eq!(
            refused(&json!({"current": "7", "total": -1, "unit": 3, "phase": [], "message": {}})),
            [
                "current must be a number",
                "total must not be negative",
                "unit must be a text",
                "phase must be a text",
                "message must be a text"
            ]
        );
    }

    #[test]
    fn fractions_are_floored_and_the_largest_count_is_taken() {
        let p = after(&[json!({"current": 1.5, "total": 9.999})]);
        assert_eq!((p.current, p.total), (1, Some(9)));
        let p = after(&[json!({"current": MAX_COUNT, "total": MAX_COUNT})]);
        assert_eq!((p.current, p.total), (MAX_COUNT, Some(MAX_COUNT)));
        assert_eq!(after(&[json!({"current": -0.0})]).current, 0);
    }

    #[test]
    fn a_report_of_a_message_alone_keeps_the_numbers() {
        let mut p = after(&[json!({"current": 3, "total": 9, "unit": "rows", "phase": "import"})]);
        let applied = say(&mut p, &json!({"message": "batch 2", "hasMore": true, "current": null}));
        assert_eq!(applied, Applied { changed: true, ..Applied::default() });
        assert_eq!(
            (p.current, p.total, p.unit.as_deref(), p.phase.as_deref()),
            (3, Some(9), Some("rows"), Some("import"))
        );
        let repeated = p.apply(&Reported::parse(&json!({"message": "batch 2"})).unwrap(), Millis(2_000));
        assert_eq!((repeated.changed, p.updated_at), (false, Some(NOW)));
        say(&mut p, &json!({"message": null}));
        assert_eq!(p.message, None);
    }

    #[test]
    fn a_new_total_is_stated_and_may_bring_a_lower_count() {
        let mut p = Progress::default();
        assert_eq!(say(&mut p, &json!({"total": 100})).total_revised, Some((None, Some(100))));
        assert_eq!(say(&mut p, &json!({"current": 100, "total": 100})).total_revised, None);
        let next_phase = say(&mut p, &json!({"current": 2, "total": 5_000}));
        assert_eq!(next_phase, Applied { grew_by: 0, total_revised: Some((Some(100), Some(5_000))), changed: true });
        assert_eq!(p.current, 2);
        assert_eq!(say(&mut p, &json!({"current": 7})).grew_by, 5);
    }

    #[test]
    fn a_long_message_is_cut_at_a_character_and_marked() {
        let said = |text: String| after(&[json!({"message": text})]).message.unwrap();
        let whole = "界".repeat(MAX_MESSAGE_CHARS);
        assert_eq!(said(whole.clone()), whole);
        let cut = said("界".repeat(21_845) + "a");
        assert_eq!((cut.chars().count(), cut.ends_with("界…")), (MAX_MESSAGE_CHARS, true));
        assert_eq!(said("a\0b".to_owned()), "a\u{fffd}b");
    }

    #[test]
    fn stored_progress_reads_back() {
        let p = after(&[json!({"current": 3, "total": 9, "unit": "rows", "phase": "p", "message": "m"})]);
        let text = serde_json::to_string(&p).unwrap();
        assert!(text.contains(r#""updatedAt":"1970-01-01T00:00:01.000Z""#), "{text}");
        assert_eq!(serde_json::from_str::<Progress>(&text).unwrap(), p);
    }

    fn any_report() -> impl Strategy<Value = Reported> {
        let count = prop_oneof![0..200_i64, any::<i64>()];
        (prop::option::of(count.clone()), prop::option::of(prop::option::of(count)))
            .prop_map(|(current, total)| Reported { current, total, ..Reported::default() })
    }

    proptest! {
        /// Proves: G12.
        #[test]
        fn for_one_total_current_never_falls_and_percent_stays_in_its_bounds(reports in prop::collection::vec(any_report(), 1..40)) {
            let mut p = Progress::default();
            for reported in reports {
                let before = p.clone();
                let applied = p.apply(&reported, NOW);
                prop_assert!(p.current >= before.current || p.total != before.total);
                prop_assert_eq!(applied.grew_by, (p.current - before.current).max(0));
                prop_assert_eq!(applied.total_revised.is_some(), p.total != before.total);
                prop_assert!((0..=MAX_COUNT).contains(&p.current) && p.total.is_none_or(|t| (0..=MAX_COUNT).contains(&t)));
                prop_assert!(p.percent(Stage::Active).is_none_or(|x| x <= 99));
                prop_assert_eq!(p.percent(Stage::Succeeded), p.total.map(|_| 100));
            }
        }

        #[test]
        fn any_number_is_taken_floored_or_refused(n in any::<f64>()) {
            match Reported::parse(&json!({"current": n})) {
                // JSON has no NaN: it arrives as null, which says nothing.
                Ok(r) => prop_assert_eq!(r.current, n.is_finite().then_some(n as i64)),
                Err(_) => prop_assert!(n < 0.0 || n > MAX_COUNT as f64),
            }
        }
    }
}
