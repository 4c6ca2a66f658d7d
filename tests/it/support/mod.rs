//! What tests of all kinds stand on: waiting for a condition, time that stands still, real server processes.

pub mod api;
pub mod clock;
pub mod node;
#[allow(dead_code, reason = "the browser tests use it too, and each binary a part of it")]
pub mod proxy;
#[allow(dead_code, reason = "the browser tests use it too, and each binary a part of it")]
pub mod server;
pub mod waiting;

pub use waiting::eventually;
