//! The API as its callers meet it: over HTTP, on a real port.

mod control;
mod errors;
mod files;
mod jwt;
mod limits;
mod lists;
mod login;
mod many;
mod metrics;
pub mod newer;
mod openapi;
mod page_rules;
mod reads;
mod rights;
mod slow;
mod submit;
mod worker;
