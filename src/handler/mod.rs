//! What runs one chunk. One chunk in, one outcome out, the same for every kind of handler.
//!
//! A handler never sees the store: it gets a [`ChunkContext`] through which it reports, logs, asks whether it should stop
//! and writes effects. What it returns is an outcome and not an error; [`HandlerError`] is for what went wrong on the way.
//!
//! Kinds: native (a Rust value behind [`Handler`]), script (a JavaScript file run by a child process), http (an endpoint of
//! another application). To add one: a file
//! beside this one, a line where the registry is filled, a test, a section in docs/handlers.md.

pub mod answer;
pub mod children;
pub mod context;
pub mod demo;
pub mod http;
pub mod native;
pub mod script;
pub mod tables;

pub use context::{ChunkContext, ChunkHost, ChunkIn, Counted, FileContent, TaskInfo};

use crate::core::chunk::{Failure, Outcome};
use crate::core::task::ErrorKind;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// Something that can run a chunk of a task.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Runs one bounded step and says how to go on. It may be called again with the same chunk after a crash, a lost lease
    /// or a failure, so whatever it does outside [`ChunkContext::execute`] must bear a repetition.
    async fn run(&self, cx: &ChunkContext) -> Result<Outcome, HandlerError>;
}

/// A chunk that did not come to an outcome.
#[derive(Debug, thiserror::Error)]
pub enum HandlerError {
    /// Trying again may help.
    #[error("{message}")]
    Retry {
        /// A stable code.
        code: String,
        /// Safe to show to the user.
        message: String,
    },
    /// Trying again is useless.
    #[error("{message}")]
    Permanent {
        /// A stable code.
        code: String,
        /// Safe to show to the user.
        message: String,
    },
    /// A failure with all its facts, such as a budget.
    #[error("{}", .0.message)]
    Failed(Box<Failure>),
    /// The chunk was told to stop, or its place was lost, before it came to an outcome. Uses no attempt.
    #[error("handed back")]
    HandedBack,
}

impl HandlerError {
    /// Trying again may help.
    pub fn retry(code: &str, message: impl Into<String>) -> Self {
        Self::Retry { code: code.to_owned(), message: message.into() }
    }

    /// Trying again is useless.
    pub fn permanent(code: &str, message: impl Into<String>) -> Self {
        Self::Permanent { code: code.to_owned(), message: message.into() }
    }

    /// The failure that it is recorded as; `None` when the chunk is handed back.
    #[must_use]
    pub fn into_failure(self) -> Option<Failure> {
        match self {
            Self::Retry { code, message } => Some(Failure::new(ErrorKind::Handler, &code, message)),
            Self::Permanent { code, message } => Some(Failure::new(ErrorKind::Permanent, &code, message)),
            Self::Failed(failure) => Some(*failure),
            Self::HandedBack => None,
        }
    }
}

/// Which handler runs which action. Copies share one table, which [`Registry::replace`] changes for all of them at once; a
/// chunk that runs ends with the handler that it began with.
#[derive(Clone, Default)]
pub struct Registry(Arc<RwLock<Handlers>>);

/// Handlers by the keys of their actions, and the packs that some of them belong to.
#[derive(Clone, Default)]
pub struct Handlers {
    /// By the key of the action.
    pub by_action: BTreeMap<String, Arc<dyn Handler>>,
    /// The packs whose tasks this node may run.
    pub packs: Vec<String>,
}

impl Registry {
    /// The table of a set of (action key, handler), none of them of a pack.
    #[must_use]
    pub fn new(handlers: impl IntoIterator<Item = (String, Arc<dyn Handler>)>) -> Self {
        let by_action = handlers.into_iter().collect();
        Self(Arc::new(RwLock::new(Handlers { by_action, packs: Vec::new() })))
    }

    /// Puts another set in place of the one that there is.
    pub fn replace(&self, handlers: Handlers) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = handlers;
    }

    fn read(&self) -> RwLockReadGuard<'_, Handlers> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of it, as it is now.
    #[must_use]
    pub fn table(&self) -> Handlers {
        self.read().clone()
    }

    /// The handler of an action.
    #[must_use]
    pub fn get(&self, action: &str) -> Option<Arc<dyn Handler>> {
        self.read().by_action.get(action).cloned()
    }

    /// The actions that this node can run.
    #[must_use]
    pub fn actions(&self) -> Vec<String> {
        self.read().by_action.keys().cloned().collect()
    }

    /// The packs whose tasks this node may run.
    #[must_use]
    pub fn packs(&self) -> Vec<String> {
        self.read().packs.clone()
    }
}
