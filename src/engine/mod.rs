//! The engine: claims chunks, runs them, commits what they answer, keeps their leases, sweeps what time has undone, and
//! drains. Must never name axum.

pub mod commands;
pub mod group;
pub mod logbook;
