//! The pure core: every decision as a function of (state, event, now, randomness).
//!
//! Must never name tokio, sqlx, axum or redis, and must never read a clock or draw a random number of its own: both come
//! in as arguments or as the traits of [`time`]. The engine, all stores and the tests use the same functions.

pub mod account;
pub mod action;
pub mod budget;
pub mod callback;
pub mod canonical;
pub mod change;
pub mod child;
pub mod chunk;
pub mod concurrency;
pub mod effect;
pub mod eta;
pub mod family;
pub mod finding;
pub mod hosts;
pub mod idempotency;
pub mod ids;
pub mod json;
pub mod lifecycle;
pub mod logline;
pub mod metric;
pub mod node;
pub mod pack;
pub mod params_check;
pub mod picture;
pub mod principal;
pub mod progress;
pub mod redact;
pub mod resolve;
pub mod retention;
pub mod retry;
pub mod schema;
pub mod signing;
pub mod submit;
pub mod tables;
pub mod task;
pub mod time;
pub mod transition;
pub mod view;
