//! Kinds of handlers, each through the one trait that the engine knows.

mod demo;
mod http;
mod packs;
mod pull;
mod script;
