//! Instants and spans, and the two sources that the pure core is not allowed to have itself.
//!
//! Wall-clock instants are [`Millis`] (milliseconds since 1970-01-01 UTC), as stored. Elapsed time inside one process is
//! measured by [`Mono`], which no change of the wall clock moves. The two are types of their own on purpose.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::{Add, Sub};
use utoipa::ToSchema;

/// An instant: milliseconds since 1970-01-01T00:00:00Z. In JSON an RFC 3339 text in UTC with milliseconds.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, ToSchema)]
#[schema(as = DateTime, value_type = String, format = DateTime)]
pub struct Millis(pub i64);

impl Millis {
    /// Milliseconds from `earlier` to this instant; negative when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This instant moved by `ms` milliseconds.
    #[must_use]
    pub fn plus(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Reads an RFC 3339 text with a zone; more digits than milliseconds are cut.
    pub fn parse(text: &str) -> Result<Self, String> {
        // The last hours of the year 9999 lie beyond the last instant that can be told; as a word for "no end" they count
        // as it.
        let of_the_last_year =
            |text: &str| format!("9998{}", text.strip_prefix("9999")?).parse::<jiff::Timestamp>().ok();
        text.parse::<jiff::Timestamp>()
            .map(|t| Self(t.as_millisecond()))
            .or_else(|fault| {
                of_the_last_year(text).map(|_| Self(jiff::Timestamp::MAX.as_second() * 1_000)).ok_or(fault)
            })
            .map_err(|_| "must be an RFC 3339 instant such as 2026-11-29T12:00:00.000Z".to_owned())
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(t) => write!(f, "{t:.3}"),
            Err(_) => f.write_str(if self.0 < 0 { "-009999-01-02T01:59:59.000Z" } else { "9999-12-30T22:00:00.000Z" }),
        }
    }
}

impl fmt::Debug for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// A reading of a monotonic clock, in milliseconds since some start of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mono(pub u64);

impl Add<u64> for Mono {
    type Output = Self;
    fn add(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

impl Sub for Mono {
    type Output = u64;
    fn sub(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Where time comes from. The engine takes it as a value, so that a test can hold it still or let it jump.
pub trait Clock: Send + Sync {
    /// The wall clock, for what people read. Never for leases: those follow the database's clock.
    fn now(&self) -> Millis;
    /// The monotonic clock, for lengths of time inside this process.
    fn mono(&self) -> Mono;
}

/// Where randomness comes from.
pub trait Rng: Send + Sync {
    /// Uniform in `[0, 1)`.
    fn unit(&self) -> f64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_hours_of_the_last_year_count_as_the_last_instant_and_other_texts_are_refused() {
        let last = Millis::parse("9999-12-31T23:59:59.999Z").unwrap();
        assert_eq!(last.to_string(), "9999-12-30T22:00:00.000Z");
        assert_eq!(Millis::parse(&last.to_string()), Ok(last));
        for text in ["9999-13-31T00:00:00Z", "9999-12-31", "10000-01-01T00:00:00Z", "never"] {
            assert!(Millis::parse(text).is_err(), "{text}");
        }
    }
}
