//! What can go wrong with a store. One closed set; types of a database driver never leave the folder.

/// A fault of a store verb.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It does not exist, or not for this caller.
    #[error("not found")]
    NotFound,
    /// Somebody else changed it at the same time; the same verb may succeed when repeated.
    #[error("conflict: {0}")]
    Conflict(String),
    /// The writer is not the owner any more.
    #[error("stale")]
    Stale,
    /// Locked for longer than the store waits.
    #[error("busy: {0}")]
    Busy(String),
    /// The database cannot be reached or refuses connections.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// A limit of the store or a constraint of a business table was hit.
    #[error("limit: {0}")]
    Limit(String),
    /// What is stored cannot be understood.
    #[error("corrupt: {0}")]
    Corrupt(String),
    /// This kind of store does not have the ability.
    #[error("not supported by this store: {0}")]
    Unsupported(&'static str),
}

impl StoreError {
    /// Whether the same verb may succeed when it is repeated.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Conflict(_) | Self::Busy(_) | Self::Unavailable(_))
    }
}
