//! A declared button, resolved from the configuration: what it is called, who may click it and by which rules it runs.

use super::budget::Budgets;
use super::principal::{Principal, Role};
use super::retry::RetryPolicy;
use super::signing::SigningKeys;
use super::task::Hold;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use url::Url;

/// A text in several languages, by language tag (`en`, `zh-CN`). Never empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Localized(pub BTreeMap<String, String>);

impl Localized {
    /// One text for all languages.
    pub fn plain(text: impl Into<String>) -> Self {
        Self(BTreeMap::from([("en".to_owned(), text.into())]))
    }

    /// The text in a language, else in the same base language, else in English, else any.
    #[must_use]
    pub fn get(&self, lang: &str) -> &str {
        let base = lang.split('-').next().unwrap_or(lang);
        self.0
            .get(lang)
            .or_else(|| self.0.iter().find(|(k, _)| k.split('-').next() == Some(base)).map(|(_, v)| v))
            .or_else(|| self.0.get("en"))
            .or_else(|| self.0.values().next())
            .map_or("", String::as_str)
    }
}

/// What runs the action's chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerRef {
    /// A handler compiled into the binary, by its registered name.
    Native(String),
    /// A JavaScript file.
    Script(PathBuf),
    /// An endpoint of another application.
    Http {
        /// Where.
        url: Url,
        /// What signs the calls.
        keys: SigningKeys,
    },
    /// Workers outside, which fetch the chunks.
    Pull,
}

/// Who may cancel a task of the action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CancelRight {
    /// Its owner, and operators.
    #[default]
    Owner,
    /// Operators only.
    Operator,
    /// Nobody but a forced cancel.
    Nobody,
}

/// What happens to a click whose key is held by an unfinished task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnConflict {
    /// Answer with the holder.
    #[default]
    Return,
    /// Refuse.
    Reject,
    /// Replace the holder while it has not started.
    ReplacePending,
}

/// How double clicks are told from new ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyRule {
    /// Paths such as `record.id` or `params.file` that together make a key.
    pub fields: Vec<String>,
    /// How long a success goes on holding the key, ms after its end; absent = 24 h for a caller's key, 10 s for `fields`.
    pub keep_ms: Option<i64>,
    /// What happens while the holder is unfinished.
    pub conflict: OnConflict,
}

/// What happens to a click whose concurrency key is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// It waits in order.
    #[default]
    Wait,
    /// The holder is the answer.
    Skip,
    /// It is refused.
    Reject,
    /// It takes the place of the one that waits.
    ReplacePending,
    /// The holder is asked to stop, and it runs after it.
    CancelRunning,
}

/// The action's concurrency rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConcurrencyRule {
    /// A key with `{tenant}`, `{owner}`, `{action}`, `{record.type}`, `{record.id}`, `{request}`, `{params.NAME}`.
    pub key: String,
    /// How many may hold it at once.
    pub limit: u32,
    /// What happens when it is full.
    pub policy: Policy,
    /// How long a slot is held.
    pub hold: Hold,
    /// How many may wait behind the key.
    pub max_waiting: u32,
}

/// A declared button.
#[derive(Clone, Debug)]
pub struct Action {
    /// `[a-z0-9][a-z0-9._-]{0,99}`.
    pub key: String,
    /// Its name.
    pub title: Localized,
    /// The card it stands on.
    pub group: Localized,
    /// One line on what it does.
    pub description: Localized,
    /// What runs it.
    pub handler: HandlerRef,
    /// The pack that declares it; none: the configuration.
    pub pack: Option<String>,
    /// JSON Schema of its params; becomes the form.
    pub params: Value,
    /// The record type this button sits on.
    pub record: Option<String>,
    /// Who may click. A role includes those above it.
    pub roles: Vec<Role>,
    /// How double clicks are caught.
    pub idempotency: Option<IdempotencyRule>,
    /// What must not run at the same time.
    pub concurrency: Option<ConcurrencyRule>,
    /// How failed chunks are tried again.
    pub retry: RetryPolicy,
    /// Limit of one chunk, ms.
    pub chunk_timeout_ms: i64,
    /// Limit of the whole task from its first claim, ms.
    pub timeout_ms: Option<i64>,
    /// What one chunk of a script may use.
    pub budgets: Budgets,
    /// A clicked task stays unclaimable this long, ms.
    pub undo_window_ms: i64,
    /// Who may cancel.
    pub cancel: CancelRight,
}

impl Action {
    /// What signs the calls of its handler and seals their callback tokens, where it is one of another application.
    #[must_use]
    pub fn keys(&self) -> Option<&SigningKeys> {
        match &self.handler {
            HandlerRef::Http { keys, .. } => Some(keys),
            _ => None,
        }
    }

    /// Whether this caller may click it.
    #[must_use]
    pub fn clickable_by(&self, who: &Principal) -> bool {
        self.roles.iter().min().is_some_and(|least| who.role >= *least)
    }
}

/// All declared actions, by key. Copies share one table, which [`Actions::replace`] changes for all of them at once.
#[derive(Clone, Debug, Default)]
pub struct Actions(Arc<RwLock<Table>>);

type Table = Arc<BTreeMap<String, Arc<Action>>>;

impl Actions {
    /// The table of a set of actions.
    #[must_use]
    pub fn new(actions: Vec<Action>) -> Self {
        let table = actions.into_iter().map(|a| (a.key.clone(), Arc::new(a))).collect();
        Self(Arc::new(RwLock::new(Arc::new(table))))
    }

    /// Puts another set in place of the one that there is. Whoever holds an action keeps it as it was.
    pub fn replace(&self, actions: impl IntoIterator<Item = Arc<Action>>) {
        let table = actions.into_iter().map(|a| (a.key.clone(), a)).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
    }

    fn table(&self) -> Table {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// One by its key, as it is now.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Arc<Action>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// All, by key, as they are now.
    pub fn iter(&self) -> impl Iterator<Item = Arc<Action>> + use<> {
        self.table().values().cloned().collect::<Vec<_>>().into_iter()
    }

    /// Those whose chunks workers outside fetch, as they are now.
    pub fn pulled(&self) -> impl Iterator<Item = Arc<Action>> + use<> {
        self.iter().filter(|action| action.handler == HandlerRef::Pull)
    }

    /// The keys of all.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.table().keys().cloned().collect()
    }
}
