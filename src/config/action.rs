//! `[[actions]]`: the buttons, what each runs, and the rules of its tasks.
//!
//! Two actions may share a concurrency key, then their limits agree; exactly one kind of handler each; `params` is a JSON
//! Schema that compiles. Whether a handler exists is checked apart, in [`check`](super::check).

use super::reader::Choice;
use super::secret::Secret;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// A text in one language or in several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalText(BTreeMap<String, String>);

impl LocalText {
    /// A text that is the same in every language.
    #[must_use]
    pub fn plain(text: impl Into<String>) -> Self {
        Self(BTreeMap::from([(String::new(), text.into())]))
    }

    /// Texts by language tag; at least one.
    pub(super) fn new(texts: BTreeMap<String, String>) -> Self {
        Self(texts)
    }

    /// The text for a language tag such as `zh-CN`: that tag, else the same language, else English, else any.
    #[must_use]
    pub fn get(&self, lang: &str) -> &str {
        let primary = |tag: &str| tag.split('-').next().unwrap_or_default().to_ascii_lowercase();
        let wanted = primary(lang);
        self.0
            .iter()
            .find(|(tag, _)| tag.eq_ignore_ascii_case(lang))
            .or_else(|| self.0.iter().find(|(tag, _)| primary(tag) == wanted))
            .or_else(|| self.0.iter().find(|(tag, _)| primary(tag) == "en"))
            .or_else(|| self.0.iter().next())
            .map_or("", |(_, text)| text)
    }

    /// All texts: language tag (empty for every language) → text.
    #[must_use]
    pub fn all(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

/// What runs the chunks of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerRef {
    /// A handler compiled into the binary, by its name.
    Native(String),
    /// A JavaScript file, absolute.
    Script(PathBuf),
    /// An endpoint that is called once a chunk.
    Http {
        /// Where.
        url: Url,
        /// What signs the calls.
        secret: Secret,
    },
    /// Workers outside fetch the chunks.
    Pull,
}

/// Rank of a caller, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Own tasks.
    User,
    /// The tenant's tasks.
    Operator,
    /// The tenant's set-up.
    Admin,
    /// All tenants.
    Platform,
}

/// What a second submit of a key gets while its holder is unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// The holder.
    Return,
    /// A refusal.
    Reject,
    /// Its own task in place of a holder that has not started.
    ReplacePending,
}

/// `idempotency`
#[derive(Clone, Debug)]
pub struct Idempotency {
    /// Paths into the submit that make up a key; empty: only a caller's own key counts.
    pub fields: Vec<String>,
    /// How long after its success a task answers for its key; none: the default of the kind of key (24 h sent, 10 s from fields).
    pub keep: Option<Duration>,
    /// What a second submit gets.
    pub conflict: Conflict,
}

/// What a submit gets when its concurrency key is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// It waits.
    Wait,
    /// The holder.
    Skip,
    /// A refusal.
    Reject,
    /// The place of the waiting one.
    ReplacePending,
    /// The holder is asked to stop, then it runs.
    CancelRunning,
}

/// How long a task holds its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// From the first claim to the end.
    Task,
    /// While a chunk runs.
    Chunk,
}

/// `concurrency`
#[derive(Clone, Debug)]
pub struct Concurrency {
    /// Template of the key; its placeholders are known to exist.
    pub key: String,
    /// How many hold it at once.
    pub limit: u32,
    /// What a submit gets when it is full.
    pub policy: Policy,
    /// How long a slot is held.
    pub hold: Hold,
    /// How many may wait.
    pub max_waiting: u32,
}

/// `retry`
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// Failures in a row of one chunk before the task fails.
    pub max_attempts: u32,
    /// The wait before the second attempt.
    pub base: Duration,
    /// The longest wait.
    pub cap: Duration,
}

/// `budgets`, of one chunk of a script.
#[derive(Clone, Copy, Debug)]
pub struct Budgets {
    /// Memory.
    pub memory_bytes: u64,
    /// Statements, as the interpreter counts.
    pub statements: u64,
    /// Depth of scripts that run scripts.
    pub nesting: u32,
}

/// Who may cancel, at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelBy {
    /// The owner.
    Owner,
    /// An operator.
    Operator,
    /// Nobody, but by force.
    Nobody,
}

/// One button.
#[derive(Clone, Debug)]
pub struct Action {
    /// The name by which it is submitted.
    pub key: String,
    /// What the button says.
    pub title: LocalText,
    /// The heading it stands under.
    pub group: Option<LocalText>,
    /// What runs it.
    pub handler: HandlerRef,
    /// JSON Schema of `params`; compiles.
    pub params: Option<serde_json::Value>,
    /// The type of record it sits on.
    pub record: Option<String>,
    /// Who may click.
    pub roles: Vec<Role>,
    /// Rules of keys.
    pub idempotency: Idempotency,
    /// Rules of shared slots.
    pub concurrency: Option<Concurrency>,
    /// Rules of failures.
    pub retry: Retry,
    /// The longest one chunk may run.
    pub chunk_timeout: Duration,
    /// The deadline of the whole task, from its submit.
    pub timeout: Option<Duration>,
    /// Limits of scripts.
    pub budgets: Budgets,
    /// How long a clicked task cannot start.
    pub undo_window: Duration,
    /// Who may cancel.
    pub cancel: CancelBy,
}

impl Choice for Role {
    const WORDS: &'static [(&'static str, Self)] =
        &[("user", Self::User), ("operator", Self::Operator), ("admin", Self::Admin), ("platform", Self::Platform)];
}

impl Choice for Conflict {
    const WORDS: &'static [(&'static str, Self)] =
        &[("return", Self::Return), ("reject", Self::Reject), ("replace-pending", Self::ReplacePending)];
}

impl Choice for Policy {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("wait", Self::Wait),
        ("skip", Self::Skip),
        ("reject", Self::Reject),
        ("replace-pending", Self::ReplacePending),
        ("cancel-running", Self::CancelRunning),
    ];
}

impl Choice for Hold {
    const WORDS: &'static [(&'static str, Self)] = &[("task", Self::Task), ("chunk", Self::Chunk)];
}

impl Choice for CancelBy {
    const WORDS: &'static [(&'static str, Self)] =
        &[("owner", Self::Owner), ("operator", Self::Operator), ("nobody", Self::Nobody)];
}
