//! The set that estimates are measured on, the rules that are measured, and what came out. The bench prints it, and a
//! test holds what docs/eta.md says about it. Nothing here reads a clock: recorded traces are files, made ones come from
//! seeds, so a figure changes only when a rule or the set does.

mod made;
pub mod play;
pub mod recorded;
pub mod rules;
mod table;
mod trace;

pub use play::{Score, measure};
pub use table::table;
pub use trace::Trace;

/// The kinds that are made, with their names, then the recorded ones.
pub fn kinds() -> Vec<&'static str> {
    made::KINDS.iter().map(|kind| kind.0).chain([RECORDED]).collect()
}

/// The kind whose traces are files.
pub const RECORDED: &str = "recorded from the demo";

/// The traces of a kind; `seeds` of them when they are made.
pub fn traces(kind: &str, seeds: u64) -> Vec<Trace> {
    match made::KINDS.iter().find(|(name, _)| *name == kind) {
        Some((_, kind)) => (0..seeds).map(|seed| made::trace(*kind, seed)).collect(),
        None => recorded::all(),
    }
}
