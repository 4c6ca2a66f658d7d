//! The pure core: every decision as a function of (state, event, now, randomness).
//!
//! Must never name tokio, sqlx, axum or redis, and must never read a clock or draw a random number of its own: both come
//! in as arguments or as the traits of [`time`]. The engine, all stores and the tests use the same functions.

pub mod canonical;
pub mod eta;
pub mod ids;
pub mod json;
pub mod progress;
pub mod retry;
pub mod time;
