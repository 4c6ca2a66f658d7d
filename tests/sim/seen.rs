//! What a run met: a simulator that never loses a lease proves nothing about lost leases, so the runs together have to have
//! met all that is listed here.

use std::collections::BTreeMap;
use std::sync::Mutex;
use taskbell::core::transition::{Event, TABLE};

/// What can be met beside the arrows, by kind and case.
const CASES: &[(&str, &[&str])] = &[
    ("end", &["applied", "repeated", "stale", "effect refused", "child refused"]),
    (
        "click",
        &["created", "replayed", "skipped", "mismatch", "idempotency conflict", "concurrency conflict", "queue full"],
    ),
    ("ask", &["done", "refused", "superseded", "parent stopped", "not found"]),
    ("switch", &["off", "on", "unanswered"]),
    ("chunk", &["timeout", "lost", "handed back"]),
    ("fate", &["slow", "abort", "crash", "lost answer", "late answer", "crash after"]),
    ("machine", &["crash", "drain", "stand still", "cut", "clock jump"]),
    ("family", &["not waited for", "fail", "ignore", "collect"]),
    ("page", &["snap", "same", "delta", "gone", "ping"]),
];

/// Counts by kind and case.
#[derive(Default)]
pub struct Seen(Mutex<BTreeMap<(&'static str, String), u64>>);

/// The name of an arrow among the cases.
fn arrow_name(from: &str, reason: &str, to: &str) -> String {
    format!("{from} {reason} {to}")
}

impl Seen {
    /// Something was met.
    pub fn note(&self, kind: &'static str, case: &str) {
        let mut seen = self.0.lock().unwrap();
        *seen.entry((kind, case.to_owned())).or_default() += 1;
    }

    /// An arrow was taken.
    pub fn arrow(&self, from: &str, reason: &str, to: &str) {
        let word = reason.split(':').next().unwrap_or(reason);
        self.note("arrow", &arrow_name(from, word, to));
    }

    /// Adds what others met.
    pub fn add(&self, other: &Self) {
        for (key, count) in &*other.0.lock().unwrap() {
            *self.0.lock().unwrap().entry(key.clone()).or_default() += count;
        }
    }

    /// What should have been met and was not.
    pub fn missing(&self) -> Vec<String> {
        let seen = self.0.lock().unwrap();
        let met = |kind: &'static str, case: &str| seen.contains_key(&(kind, case.to_owned()));
        let cases = CASES.iter().flat_map(|(kind, cases)| cases.iter().map(|case| (*kind, (*case).to_owned())));
        // Silent arrows leave no entry; eleven lost leases in a row are more than a run has time for.
        let told = TABLE.iter().filter(|a| a.from != a.to && a.event != Event::LeasesUsedUp);
        let arrows = told.map(|a| ("arrow", arrow_name(a.from.as_str(), a.reason, a.to.as_str())));
        cases
            .chain(arrows)
            .filter(|(kind, case)| !met(kind, case))
            .map(|(kind, case)| format!("{kind}: {case}"))
            .collect()
    }
}
