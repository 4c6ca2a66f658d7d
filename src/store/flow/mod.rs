//! The flow of each writing verb, written once for all databases: load and lock rows, let the core decide, write back.
//!
//! Every flow gathers its changes in a [`work::Work`] and ends with [`work::Work::finish`], which moves revisions and heads,
//! opens the gates of freed concurrency keys and writes everything in a handful of batched statements.

/// A point of a verb where a test can let it fail as it does when the database cannot be reached.
macro_rules! store_point {
    ($name:expr) => {
        failpoint!($name, $crate::store::StoreError::Unavailable)
    };
}

pub mod ask;
pub mod chunk;
pub mod claim;
pub mod family;
pub mod packs;
mod picture;
pub mod remove;
pub mod submit;
pub mod sweep;
mod work;
