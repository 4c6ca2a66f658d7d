//! The stores: one body of tests for each port, run on every kind of store.

mod above;
mod accounts;
mod asking;
mod children;
mod chunks;
mod claiming;
mod contests;
pub(crate) mod fixture;
mod generated;
pub(crate) mod invariants;
mod lent;
mod logs;
mod migrations;
mod newer;
mod nodes;
mod packs;
mod pictures;
mod races;
mod reading;
mod slots;
mod statements;
mod statements_postgres;
pub(crate) mod storm;
mod submitting;
mod switches;
mod transactions;
pub(crate) mod words;
