//! What a check of an installation finds: one line each, in words for whoever runs it.

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// As it should be.
    Good,
    /// Worth knowing; taskbell works.
    Note,
    /// Something does not work.
    Fault,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub grade: Grade,
    /// What was looked at: `configuration`, `database`, `redis` …
    pub part: &'static str,
    /// What was found; one line, without a secret.
    pub text: String,
}

impl Finding {
    /// As it should be.
    pub fn good(part: &'static str, text: impl Into<String>) -> Self {
        Self { grade: Grade::Good, part, text: text.into() }
    }

    /// Worth knowing.
    pub fn note(part: &'static str, text: impl Into<String>) -> Self {
        Self { grade: Grade::Note, part, text: text.into() }
    }

    /// It does not work.
    pub fn fault(part: &'static str, text: impl Into<String>) -> Self {
        Self { grade: Grade::Fault, part, text: text.into() }
    }
}
