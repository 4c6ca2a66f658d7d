//! Handlers that are endpoints of another application: `handler = { http = "https://…", secret = … }`.
//!
//! A chunk is one signed POST ([`call`]), its answer is the outcome ([`answer`]). While the chunk runs the application may
//! call back by the address and token in the body. A stop is told through the lease that it asks for there; a chunk that
//! does not ask is dropped at its timeout, which closes the connection.
//!
//! Must never: go elsewhere than the guarded client lets it, follow a redirect, send a chunk twice within one attempt
//! (whether to try again is the engine's to decide), or put the secret into a log, an error or an address.

pub mod answer;
pub mod call;

pub use call::{CallbackTo, HttpHandler};
