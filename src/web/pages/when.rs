//! Time as people read it: full instants in the viewer's zone, spans, and the rounded time left.
//!
//! The same rules as static/time.js, so a text does not change when a script takes the page over. An instant is never
//! shown in another form than yyyy-MM-dd HH:mm:ss; a span is never negative. A zone that this machine does not know
//! counts as UTC, and the browser's script writes the instants anew in its own.

use super::words::{Arg, Words};
use crate::core::time::Millis;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{TimeZone, db};

/// Whether this machine knows a zone by this name.
#[must_use]
pub fn is_zone(name: &str) -> bool {
    TimeZone::get(name).is_ok()
}

/// The zones to choose from: UTC, and those that are named after a place, in the order of their names.
#[must_use]
pub fn zones() -> Vec<String> {
    const AREAS: [&str; 10] = [
        "Africa/",
        "America/",
        "Antarctica/",
        "Arctic/",
        "Asia/",
        "Atlantic/",
        "Australia/",
        "Europe/",
        "Indian/",
        "Pacific/",
    ];
    let of_a_place = |name: &String| AREAS.iter().any(|area| name.starts_with(area));
    let mut zones: Vec<String> = db().available().map(|name| name.to_string()).filter(of_a_place).collect();
    zones.sort();
    zones.insert(0, "UTC".to_owned());
    zones
}

/// A clock to write times by: the viewer's zone and the server's now.
#[derive(Clone)]
pub struct Watch {
    zone: TimeZone,
    name: String,
    now: Millis,
    w: Words,
}

/// An instant, ready for a `<time>` element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct When {
    /// RFC 3339, for `datetime`.
    pub iso: String,
    /// yyyy-MM-dd HH:mm:ss in the viewer's zone.
    pub text: String,
    /// Zone and relative time, for the tooltip.
    pub title: String,
}

/// A remaining time rounded to what an estimate can honestly say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rounded {
    /// Below a minute.
    Under,
    /// Whole minutes up to 10, then steps of 5.
    Minutes(i64),
    /// From 2 hours on, in half hours.
    Hours(f64),
}

impl Rounded {
    /// Rounds seconds that are left.
    #[must_use]
    pub fn of(seconds: i64) -> Self {
        let minutes = seconds.max(0) as f64 / 60.0;
        if minutes < 1.0 {
            return Self::Under;
        }
        if minutes <= 10.0 {
            return Self::Minutes(minutes.round() as i64);
        }
        let stepped = (minutes / 5.0).round() as i64 * 5;
        if stepped < 120 { Self::Minutes(stepped) } else { Self::Hours((minutes / 30.0).round() / 2.0) }
    }
}

impl Watch {
    /// A clock for a zone by its IANA name.
    #[must_use]
    pub fn new(zone: &str, now: Millis, w: Words) -> Self {
        let known = TimeZone::get(zone).ok();
        let name = if known.is_some() { zone.to_owned() } else { "UTC".to_owned() };
        Self { zone: known.unwrap_or(TimeZone::UTC), name, now, w }
    }

    /// The zone's IANA name.
    #[must_use]
    pub fn zone(&self) -> &str {
        &self.name
    }

    /// The server's now.
    #[must_use]
    pub fn now(&self) -> Millis {
        self.now
    }

    /// An instant for a `<time>` element.
    #[must_use]
    pub fn at(&self, at: Millis) -> When {
        // What lies ahead has no "ago".
        let ahead = at.since(self.now) > 1_000;
        let title = if ahead { self.name.clone() } else { format!("{} · {}", self.name, self.ago(at)) };
        When { iso: at.to_string(), text: self.full(at), title }
    }

    /// yyyy-MM-dd HH:mm:ss in the viewer's zone.
    #[must_use]
    pub fn full(&self, at: Millis) -> String {
        Timestamp::from_millisecond(at.0)
            .map(|t| t.to_zoned_datetime(self.zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string())
            .unwrap_or_default()
    }

    /// Whether an instant lies on today's calendar day of the viewer.
    #[must_use]
    pub fn is_today(&self, at: Millis) -> bool {
        self.full(at).get(..10) == self.full(self.now).get(..10)
    }

    /// A day (yyyy-MM-dd) of the viewer: its first instant, and the first of the next. Nothing for what is no day.
    #[must_use]
    pub fn day(&self, text: &str) -> Option<(Millis, Millis)> {
        let day: Date = text.parse().ok()?;
        let start =
            |day: Date| day.to_zoned_datetime(self.zone.clone()).ok().map(|at| Millis(at.timestamp().as_millisecond()));
        Some((start(day)?, start(day.tomorrow().ok()?)?))
    }

    /// How long ago, in one unit; the future counts as just now.
    #[must_use]
    pub fn ago(&self, at: Millis) -> String {
        let minutes = self.now.since(at).max(0) / 60_000;
        let n = |n: i64| [("n", Arg::Count(n))];
        match minutes {
            0 => self.w.t("ago.now").into_owned(),
            1..60 => self.w.fill("ago.minutes", &n(minutes)),
            60..1440 => self.w.fill("ago.hours", &n(minutes / 60)),
            _ => self.w.fill("ago.days", &n(minutes / 1440)),
        }
    }

    /// A measured span in its two largest units.
    #[must_use]
    pub fn span(&self, ms: i64) -> String {
        let s = ms.max(0) / 1000;
        match s {
            0 => self.w.t("time.ms").into_owned(),
            1..60 => self.w.fill("time.s", &[("s", s.into())]),
            60..3600 => self.w.fill("time.ms_s", &[("m", (s / 60).into()), ("s", (s % 60).into())]),
            3600..86_400 => self.w.fill("time.hm", &[("h", (s / 3600).into()), ("m", (s % 3600 / 60).into())]),
            _ => self.w.fill("time.dh", &[("d", (s / 86_400).into()), ("h", (s % 86_400 / 3600).into())]),
        }
    }

    /// A span that was set and not measured: whole days stand alone.
    #[must_use]
    pub fn days(&self, ms: i64) -> String {
        match (ms / 86_400_000, ms % 86_400_000) {
            (days @ 1.., 0) => self.w.count("time.days", days),
            _ => self.span(ms),
        }
    }

    /// A rounded remaining time as a bare span: "4 min".
    #[must_use]
    pub fn rounded(&self, seconds: i64) -> String {
        match Rounded::of(seconds) {
            Rounded::Under => self.w.t("eta.under").into_owned(),
            Rounded::Minutes(n) => self.w.fill("eta.minutes", &[("n", n.into())]),
            Rounded::Hours(n) => self.w.fill("eta.hours", &[("n", n.into())]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(zone: &str) -> Watch {
        Watch::new(zone, Millis::parse("2021-10-13T00:00:00Z").unwrap(), Words::of("en"))
    }

    #[test]
    fn an_instant_is_shown_in_full_in_the_viewers_zone_with_the_zone_named() {
        let at = Millis::parse("2021-10-12T23:00:00Z").unwrap();
        let paris = watch("Europe/Paris").at(at);
        assert_eq!(paris.text, "2021-10-13 01:00:00");
        assert_eq!(paris.iso, "2021-10-12T23:00:00.000Z");
        assert_eq!(paris.title, "Europe/Paris · 1 h ago");
        assert_eq!(watch("Asia/Kolkata").full(at), "2021-10-13 04:30:00");
        assert!(watch("Asia/Kolkata").is_today(at));
        assert!(!watch("UTC").is_today(at));
    }

    #[test]
    fn a_day_is_the_viewers_from_its_first_instant_to_the_next_days() {
        let at = |text: &str| Millis::parse(text).unwrap();
        let days = [("Asia/Kolkata", "2021-10-13"), ("America/Sao_Paulo", "2018-11-04")]
            .map(|(zone, day)| watch(zone).day(day));
        assert_eq!(days[0], Some((at("2021-10-12T18:30:00Z"), at("2021-10-13T18:30:00Z"))));
        assert_eq!(days[1], Some((at("2018-11-04T03:00:00Z"), at("2018-11-05T02:00:00Z"))));
        assert_eq!(watch("UTC").day("2021-02-30"), None);
    }

    #[test]
    fn zones_to_choose_from_are_places_and_utc() {
        let zones = zones();
        for zone in ["UTC", "Europe/Paris", "Asia/Kolkata", "America/Argentina/Buenos_Aires"] {
            assert!(zones.iter().any(|each| each == zone) && is_zone(zone), "{zone}");
        }
        assert!(zones.iter().all(|zone| is_zone(zone) && !zone.starts_with("Etc")));
        assert!(!is_zone("Mars/Olympus") && !is_zone(""));
    }

    #[test]
    fn an_unknown_zone_counts_as_utc_and_says_so() {
        let when = watch("Mars/Olympus").at(Millis(0));
        assert_eq!(when.text, "1970-01-01 00:00:00");
        assert!(when.title.starts_with("UTC"));
    }

    #[test]
    fn the_time_left_is_rounded_to_what_can_be_said() {
        let cases = [
            (-5, Rounded::Under),
            (0, Rounded::Under),
            (59, Rounded::Under),
            (60, Rounded::Minutes(1)),
            (245, Rounded::Minutes(4)),
            (600, Rounded::Minutes(10)),
            (640, Rounded::Minutes(10)),
            (13 * 60, Rounded::Minutes(15)),
            (117 * 60, Rounded::Minutes(115)),
            (118 * 60, Rounded::Hours(2.0)),
            (145 * 60, Rounded::Hours(2.5)),
            (26 * 3600, Rounded::Hours(26.0)),
        ];
        for (seconds, rounded) in cases {
            assert_eq!(Rounded::of(seconds), rounded, "{seconds} s");
        }
    }

    #[test]
    fn a_span_names_its_two_largest_units_and_is_never_negative() {
        let w = watch("UTC");
        let said = [-1, 400, 48_000, 252_000, 7_500_000, 100_000_000].map(|ms| w.span(ms)).join(" | ");
        assert_eq!(said, "under 1 s | under 1 s | 48 s | 4 min 12 s | 2 h 5 min | 1 d 3 h");
    }
}
