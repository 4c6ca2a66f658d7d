//! Handlers that are Rust values: named in a table that an embedding binary fills, and referred to from the configuration
//! by `handler = { native = "name" }`.

use super::Handler;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Native handlers by name.
#[derive(Clone, Default)]
pub struct NativeHandlers(BTreeMap<String, Arc<dyn Handler>>);

impl NativeHandlers {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a handler under a name; a later one replaces an earlier one.
    #[must_use]
    pub fn with(mut self, name: &str, handler: impl Handler + 'static) -> Self {
        self.0.insert(name.to_owned(), Arc::new(handler));
        self
    }

    /// These and all of another table; of two with one name the other table's wins.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The handler of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<dyn Handler>> {
        self.0.get(name).cloned()
    }

    /// All names.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}
