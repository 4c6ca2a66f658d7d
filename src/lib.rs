//! taskbell: durable, chunked background tasks with true progress, beside a business application.
//!
//! One crate, library and binary. The layers, from the inside out, and who may import whom:
//!
//! | layer | is | may import |
//! |---|---|---|
//! | [`core`] | decisions, pure: no I/O, no clock and no randomness of its own | nothing |
//! | [`config`] | the settings, each with its unit, its default and its faults | core |
//! | [`store`] | the port to the database and its adapters: the only place with SQL | core |
//! | [`bus`] | wake-up and fan-out between the parts of a node, later between nodes | core |
//! | [`outbound`] | calls to other hosts: only to those that are listed | core |
//! | [`handler`] | what runs one chunk: native code, scripts, calls over HTTP | core, outbound |
//! | [`engine`] | claim, run, group commit, heartbeat, sweep, drain; the command handle | core, store, bus, outbound, handler |
//! | [`push`] | WebSocket protocol, hub, sessions, snapshots | core, store, bus |
//! | [`web`] | HTTP API and pages | core, store, push, the engine's command handle |
//! | [`telemetry`] | the process's own log, secrets masked; its numbers | core, config |
//! | [`demo`] | the demo's tables, rows and files, made before the server starts | core, store, handler |
//! | [`app`] | composition root, the only file that knows every layer | all |
//! | [`cli`] | the command line | core, config, telemetry, outbound, handler, app |
//! | `failpoint` | where processes of tests die; nothing without its feature | nothing |
//!
//! `tests/it/architecture/` reads the `use` lines and fails with the rule's text.
//!
//! Shutdown runs from the outside in: readiness goes off, the engine stops claiming and drains, sockets are closed with
//! 1012, the last logs are written, the stores are closed.

#[macro_use]
mod failpoint;

pub mod app;
pub mod bus;
pub mod cli;
pub mod config;
pub mod core;
pub mod demo;
pub mod engine;
pub mod handler;
pub mod outbound;
pub mod push;
pub mod store;
pub mod telemetry;
pub mod web;
