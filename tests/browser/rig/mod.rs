//! What a browser test stands on: the browser, and the stage that a test plays on.

pub mod axe;
pub mod browser;
pub mod page;
pub mod play;
pub mod runner;
pub mod stage;
