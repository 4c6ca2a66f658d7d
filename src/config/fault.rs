//! What is wrong with a configuration: all of it at once, each fault with the key it is about.
//!
//! Must never hold a configured value that may be secret: a message quotes only values of settings that are public.

use std::fmt;

/// One fault: the key as written in the file (`actions[0].retry.base`) and one sentence on what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Dotted path of the setting; the name of the file when the whole file is at fault.
    pub key: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

/// Every fault of one configuration, in the order found, one a line. Never empty when returned as an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Faults(pub Vec<Fault>);

impl Faults {
    /// Adds a fault of `key`.
    pub fn push(&mut self, key: impl Into<String>, message: impl Into<String>) {
        self.0.push(Fault { key: key.into(), message: message.into() });
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Faults {
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

/// The member of `known` that `word` was probably meant to be; none when nothing is near.
pub(crate) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}
