//! The budgets of one chunk of a script: what each is called, how much of it there is, and how it is told that one was hit.
//!
//! Codes and units are stable: they stand in the API (`error.code`), in `error.detail` for operators and in
//! docs/handlers.md. Nothing here measures; whoever runs a script does.

use serde::{Deserialize, Serialize};

/// How much of each budget one chunk of a script has. Runs that are nested in it share them. Its time is the chunk's timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budgets {
    /// Memory of its values, bytes.
    pub memory_bytes: u64,
    /// Jumps and calls as the interpreter counts them, in steps of 10,000.
    pub statements: u64,
    /// Stack of its calls, bytes.
    pub stack_bytes: u64,
    /// Depth of scripts that run scripts; the chunk's own script is not counted.
    pub nesting: u32,
    /// JSON that it hands out, bytes: its answer, what it asks of the host, what nested runs are given and answer.
    pub output_bytes: u64,
    /// Text that it logs, bytes.
    pub log_bytes: u64,
}

impl Default for Budgets {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            memory_bytes: 64 * MIB,
            statements: 50_000_000,
            stack_bytes: MIB,
            nesting: 32,
            output_bytes: 8 * MIB,
            log_bytes: 8 * MIB,
        }
    }
}

/// One of the budgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Budget {
    /// Time of the chunk, ms.
    Timeout,
    /// See [`Budgets::statements`].
    Statements,
    /// See [`Budgets::memory_bytes`].
    Memory,
    /// See [`Budgets::stack_bytes`].
    Stack,
    /// See [`Budgets::nesting`].
    Nesting,
    /// See [`Budgets::output_bytes`].
    Output,
    /// See [`Budgets::log_bytes`].
    Log,
}

impl Budget {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Timeout, Self::Statements, Self::Memory, Self::Stack, Self::Nesting, Self::Output, Self::Log];

    /// Its code in a failure.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Statements => "statements",
            Self::Memory => "memory",
            Self::Stack => "stack",
            Self::Nesting => "nesting",
            Self::Output => "output",
            Self::Log => "log",
        }
    }

    /// Whether what was used up can come back within the chunk: memory that is freed, a call that has returned.
    #[must_use]
    pub fn comes_back(self) -> bool {
        matches!(self, Self::Memory | Self::Stack | Self::Nesting)
    }
}

/// A budget that was hit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Which.
    pub code: Budget,
    /// How much of it there was, in its unit.
    pub limit: u64,
    /// How much was used when it was noticed: less than the limit where the next step would have gone beyond it.
    pub used: u64,
    /// The scripts that were running, the outermost first, joined by ` > `.
    pub path: String,
    /// Where in the innermost one, as far as it is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub at: String,
}

/// Of [`Spent::path`], characters; the middle of a longer one is left out.
const PATH_CHARS: usize = 400;

/// Of [`Spent::at`], characters, so that the whole fits into the detail of a failure.
const AT_CHARS: usize = 700;

impl Spent {
    /// A hit, its texts cut to what a failure can hold. `path` is outermost first.
    #[must_use]
    pub fn new(code: Budget, limit: u64, used: u64, path: &[String], at: &str) -> Self {
        let whole = path.join(" > ");
        let path = match (whole.chars().count() > PATH_CHARS, path) {
            (true, [first, .., last]) => {
                let cut = |name: &String| name.chars().take(PATH_CHARS / 2 - 20).collect::<String>();
                format!("{} > … {} more … > {}", cut(first), path.len() - 2, cut(last))
            }
            _ => whole,
        };
        Self { code, limit, used, path, at: at.trim().chars().take(AT_CHARS).collect() }
    }

    /// For the user: which limit it was.
    #[must_use]
    pub fn message(&self) -> String {
        let limit = self.limit;
        match self.code {
            Budget::Timeout => format!("The script ran longer than its limit of {} s.", limit as f64 / 1000.0),
            Budget::Statements => format!("The script did more than its limit of {limit} statements."),
            Budget::Memory => format!("The script needed more memory than its limit of {}.", size(limit)),
            Budget::Stack => {
                format!("The calls of the script are nested deeper than its stack of {} allows.", size(limit))
            }
            Budget::Nesting => format!("Scripts run scripts deeper than the limit of {limit}."),
            Budget::Output => format!("The script handed out more than its limit of {}.", size(limit)),
            Budget::Log => format!("The script logged more than its limit of {}.", size(limit)),
        }
    }

    /// For operators, as JSON.
    #[must_use]
    pub fn detail(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts")
    }
}

fn size(bytes: u64) -> String {
    const MIB: u64 = 1024 * 1024;
    if bytes.is_multiple_of(MIB) { format!("{} MiB", bytes / MIB) } else { format!("{} KiB", bytes / 1024) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_that_was_hit_is_told_with_code_limit_use_and_path() {
        for budget in Budget::ALL {
            let spent = Spent::new(budget, 2048, 1, &["a.js".into(), "b".into()], "");
            let detail: serde_json::Value = serde_json::from_str(&spent.detail()).unwrap();
            let expected = serde_json::json!({"code": budget.code(), "limit": 2048, "used": 1, "path": "a.js > b"});
            assert_eq!(detail, expected);
            assert!(spent.message().contains('2'), "{}", spent.message());
        }
    }

    #[test]
    fn a_long_path_keeps_its_ends_and_the_whole_fits_into_a_failure() {
        let path: Vec<String> = (0..1_000).map(|n| format!("script-{n}.js")).collect();
        let spent = Spent::new(Budget::Nesting, 1_000, 1_000, &path, &"at\n".repeat(9_000));
        assert_eq!(spent.path, "script-0.js > … 998 more … > script-999.js");
        assert!(spent.detail().chars().count() < crate::core::task::limits::MESSAGE_CHARS);
    }

    #[test]
    fn a_size_is_told_in_the_largest_unit_that_is_whole() {
        assert_eq!((size(64 << 20), size(300 << 10)), ("64 MiB".to_owned(), "300 KiB".to_owned()));
    }
}
