//! The flow of each writing verb, written once for all databases: load and lock rows, let the core decide, write back.
//!
//! Every flow gathers its changes in a [`work::Work`] and ends with [`work::Work::finish`], which moves revisions and heads,
//! opens the gates of freed concurrency keys and writes everything in a handful of batched statements.

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
