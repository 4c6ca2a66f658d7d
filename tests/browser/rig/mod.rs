//! What a browser test stands on: the browser, the proxy before the server, and the stage that a test plays on.

pub mod browser;
pub mod page;
pub mod proxy;
pub mod runner;
pub mod stage;
