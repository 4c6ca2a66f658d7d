//! What tests of all kinds stand on: waiting for a condition, time that stands still, real server processes.

pub mod clock;
pub mod node;
pub mod waiting;

pub use waiting::eventually;
