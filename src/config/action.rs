//! `[[actions]]`: the buttons, what each runs, and the rules of its tasks.
//!
//! An [`Action`] is what the file says; [`Action::declared`] is what the core knows of it.

use super::reader::Choice;
use crate::core::action::{self, CancelRight, ConcurrencyRule, IdempotencyRule, Localized, OnConflict, Policy};
use crate::core::budget::Budgets;
use crate::core::principal::Role;
use crate::core::retry::RetryPolicy;
use crate::core::schema::schema_text;
use crate::core::signing::SigningKeys;
use crate::core::task::Hold;
use std::path::PathBuf;
use url::Url;

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
        /// What signs the calls: the secret, or both while it is changed.
        keys: SigningKeys,
    },
    /// Workers outside fetch the chunks.
    Pull,
}

/// One button.
#[derive(Clone, Debug)]
pub struct Action {
    /// The name by which it is submitted.
    pub key: String,
    /// What the button says.
    pub title: Localized,
    /// The heading it stands under; empty when there is none.
    pub group: Localized,
    /// What runs it.
    pub handler: HandlerRef,
    /// JSON Schema of `params`; compiles. `{}` when none is given.
    pub params: serde_json::Value,
    /// The type of record it sits on.
    pub record: Option<String>,
    /// Who may click.
    pub roles: Vec<Role>,
    /// Rules of keys; none when the table is absent.
    pub idempotency: Option<IdempotencyRule>,
    /// Rules of shared slots.
    pub concurrency: Option<ConcurrencyRule>,
    /// Rules of failures.
    pub retry: RetryPolicy,
    /// The longest one chunk may run, ms.
    pub chunk_timeout_ms: i64,
    /// The deadline of the whole task, ms.
    pub timeout_ms: Option<i64>,
    /// Limits of scripts.
    pub budgets: Budgets,
    /// How long a clicked task cannot start, ms.
    pub undo_window_ms: i64,
    /// Who may cancel.
    pub cancel: CancelRight,
}

impl Action {
    /// The action as the core knows it.
    #[must_use]
    pub fn declared(&self) -> action::Action {
        let handler = match &self.handler {
            HandlerRef::Native(name) => action::HandlerRef::Native(name.clone()),
            HandlerRef::Script(path) => action::HandlerRef::Script(path.clone()),
            HandlerRef::Http { url, keys } => action::HandlerRef::Http { url: url.clone(), keys: keys.clone() },
            HandlerRef::Pull => action::HandlerRef::Pull,
        };
        action::Action {
            key: self.key.clone(),
            title: self.title.clone(),
            group: self.group.clone(),
            description: schema_text(&self.params, "description"),
            handler,
            pack: None,
            params: self.params.clone(),
            record: self.record.clone(),
            roles: self.roles.clone(),
            idempotency: self.idempotency.clone(),
            concurrency: self.concurrency.clone(),
            retry: self.retry,
            chunk_timeout_ms: self.chunk_timeout_ms,
            timeout_ms: self.timeout_ms,
            budgets: self.budgets,
            undo_window_ms: self.undo_window_ms,
            cancel: self.cancel,
        }
    }
}

impl Choice for Role {
    const WORDS: &'static [(&'static str, Self)] =
        &[("user", Self::User), ("operator", Self::Operator), ("admin", Self::Admin), ("platform", Self::Platform)];
}

impl Choice for OnConflict {
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

impl Choice for CancelRight {
    const WORDS: &'static [(&'static str, Self)] =
        &[("owner", Self::Owner), ("operator", Self::Operator), ("nobody", Self::Nobody)];
}
