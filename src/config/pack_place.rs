//! Where a fault of a pack stands: the file, the line, the key.
//!
//! Must never quote a line: it may hold a secret.

use super::fault::Fault;
use crate::core::pack::PackFault;
use std::fmt;
use toml::de::{DeTable, DeValue};

impl PackFault {
    /// A fault of the manifest's text, found by its key.
    pub(super) fn of_key(file: &str, text: &str, fault: &Fault) -> Self {
        Self { file: file.to_owned(), line: line_of(text, &fault.key), reason: fault.to_string() }
    }
}

/// All faults of one pack, one a line. Never empty when returned as an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct PackFaults(pub Vec<PackFault>);

impl fmt::Display for PackFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

/// The line of a byte of a text, from 1.
pub(super) fn line_at(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count()
}

/// The line of a key such as `actions[0].retry.base`, or of the nearest table above it that was given.
pub(super) fn line_of(text: &str, key: &str) -> Option<usize> {
    let table = DeTable::parse(text).ok()?;
    let mut at = None;
    let mut here = table.get_ref();
    for step in key.split('.') {
        let (name, index) = match step.split_once('[') {
            Some((name, rest)) => (name, rest.trim_end_matches(']').parse::<usize>().ok()),
            None => (step, None),
        };
        let Some((found, value)) = here.iter().find(|(k, _)| k.get_ref().as_ref() == name) else { break };
        at = Some(found.span().start);
        let inner = match (value.get_ref(), index) {
            (DeValue::Array(items), Some(index)) => {
                let Some(item) = items.get(index) else { break };
                at = Some(item.span().start);
                item.get_ref()
            }
            (value, _) => value,
        };
        let DeValue::Table(inner) = inner else { break };
        here = inner;
    }
    Some(line_at(text, at?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_line_and_one_that_is_missing_has_that_of_its_table() {
        let text = "name = \"a\"\n\n[[actions]]\nkey = \"one\"\n[[actions]]\nkey = \"two\"\nretry = { base = \"x\" }\n";
        for (key, line) in [
            ("name", Some(1)),
            ("actions[0].key", Some(4)),
            ("actions[1].key", Some(6)),
            ("actions[1].retry.base", Some(7)),
            ("actions[1].handler", Some(5)),
            ("version", None),
        ] {
            assert_eq!(line_of(text, key), line, "{key}");
        }
    }
}
