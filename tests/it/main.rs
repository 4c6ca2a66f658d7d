//! The integration tests: one binary, so that they are linked once and may share what they start.
//!
//! A folder for each kind: what the tree looks like, the stores, whole nodes, the API, push, handlers. A test is named after
//! the promise that it proves, waits on conditions with a limit, and never takes a pause for a proof.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod acceptance;
mod api;
mod architecture;
mod between;
mod cli;
mod deploy;
mod docs;
mod eta;
mod guarantees;
mod handler;
mod outbound;
mod pages;
mod push;
mod rows;
mod scenario;
mod store;
mod support;
