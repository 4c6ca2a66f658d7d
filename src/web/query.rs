//! Query strings, taken apart key by key. A key that is not known is refused by its name; an empty value counts as absent.
//! `lang` is known everywhere: [`super::extract::Lang`] reads it.

use super::error::ApiError;
use crate::core::params_check::FieldFault;
use crate::core::time::Millis;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use std::convert::Infallible;
use std::ops::RangeInclusive;

/// How long a searched text may be, characters.
pub const SEARCH_CHARS: usize = 100;

/// The keys and values of one query string, in order.
#[derive(Debug, Default)]
pub struct Query {
    pairs: Vec<(String, String)>,
    faults: Vec<FieldFault>,
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default()))
    }
}

impl Query {
    /// Reads a query string.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let pairs = url::form_urlencoded::parse(text.as_bytes())
            .filter(|(key, _)| key != "lang")
            .map(|(key, value)| (key.into_owned(), value.into_owned()))
            .collect();
        let broken = text.split('&').filter(|pair| percent_decode_str(pair).decode_utf8().is_err());
        let key = |pair: &str| pair.split('=').next().unwrap_or_default().chars().take(100).collect::<String>();
        let faults = broken.map(|pair| FieldFault::new(key(pair), "is not valid UTF-8")).collect();
        Self { pairs, faults }
    }

    /// Whether a key is there with a value.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.pairs.iter().any(|(k, value)| k == key && !value.is_empty())
    }

    /// Notes a fault.
    pub fn fault(&mut self, key: &str, message: impl Into<String>) {
        self.faults.push(FieldFault::new(key, message));
    }

    /// The values of a key that may be given several times, or with commas.
    pub fn words(&mut self, key: &str) -> Vec<String> {
        let mut words = Vec::new();
        self.pairs.retain(|(k, value)| {
            if k == key {
                words.extend(value.split(',').filter(|w| !w.is_empty()).map(str::to_owned));
            }
            k != key
        });
        words
    }

    /// A text of at most so many characters.
    pub fn text(&mut self, key: &str, most_chars: usize) -> Option<String> {
        let mut values = Vec::new();
        self.pairs.retain_mut(|(k, value)| {
            if k == key {
                values.push(std::mem::take(value));
            }
            k != key
        });
        if values.len() > 1 {
            self.fault(key, "is given twice");
        }
        let text = values.pop().filter(|v| !v.is_empty())?;
        if text.contains('\0') {
            self.fault(key, "contains the character U+0000");
            return None;
        }
        if text.chars().count() > most_chars {
            self.fault(key, format!("may have at most {most_chars} characters"));
            return None;
        }
        Some(text)
    }

    /// The same where it has to be there. What comes back beside a fault is never used: [`Self::finish`] refuses.
    pub fn required_text(&mut self, key: &str, most_chars: usize) -> String {
        let given = self.has(key);
        let text = self.text(key, most_chars);
        if !given {
            self.fault(key, "is missing");
        }
        text.unwrap_or_default()
    }

    /// A whole number within a range.
    pub fn whole(&mut self, key: &str, range: RangeInclusive<i64>) -> Option<i64> {
        let text = self.text(key, SEARCH_CHARS)?;
        let number = text.parse().ok().filter(|n| range.contains(n));
        if number.is_none() {
            self.fault(key, format!("must be a whole number from {} to {}", range.start(), range.end()));
        }
        number
    }

    /// An instant. The `+` of a zone reads as a space when it was not encoded, and is taken for what it was meant as.
    pub fn instant(&mut self, key: &str) -> Option<Millis> {
        let text = self.text(key, SEARCH_CHARS)?.replace(' ', "+");
        match Millis::parse(&text) {
            Ok(at) => Some(at),
            Err(message) => {
                self.fault(key, message);
                None
            }
        }
    }

    /// One of several words.
    pub fn choice<T>(&mut self, key: &str, read: impl Fn(&str) -> Option<T>, words: &str) -> Option<T> {
        let text = self.text(key, SEARCH_CHARS)?;
        let choice = read(&text);
        if choice.is_none() {
            self.fault(key, format!("must be one of {words}"));
        }
        choice
    }

    /// Nothing is wrong, and no key is left over.
    ///
    /// # Errors
    /// 422 with all faults.
    pub fn finish(mut self) -> Result<(), ApiError> {
        for (key, _) in std::mem::take(&mut self.pairs) {
            let shown: String = key.chars().take(100).collect();
            self.fault(&shown, "is not known here");
        }
        if self.faults.is_empty() { Ok(()) } else { Err(ApiError::invalid(self.faults)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_doubled_and_wrong_keys_are_named() {
        let mut q =
            Query::parse("a=1&a=2&n=7&from=2026-11-29T12:00:00+08:00&state=queued,running&state=failed&x=&lang=en");
        q.text("a", 10);
        assert_eq!(q.whole("n", 1..=5), None);
        assert!(q.instant("from").is_some());
        assert_eq!(q.words("state"), ["queued", "running", "failed"]);
        let paths: Vec<String> = q.finish().unwrap_err().errors.iter().map(|e| e.path.clone()).collect();
        assert_eq!(paths, ["a", "n", "x"]);
    }

    #[test]
    fn a_text_is_taken_at_its_cap_and_refused_above_it() {
        for (length, taken) in [(100, true), (101, false), (10_000, false)] {
            let mut q = Query::parse(&format!("q={}", "%25".repeat(length)));
            assert_eq!(q.text("q", SEARCH_CHARS).is_some(), taken);
            assert_eq!(q.finish().is_ok(), taken);
        }
        let mut q = Query::parse("q=a%00b");
        assert_eq!(q.text("q", 9), None);
        assert!(q.finish().is_err());
    }
}
