//! The stores: one body of tests for each port, run on every kind of store.

mod above;
mod accounts;
mod asking;
mod children;
mod chunks;
mod claiming;
mod fixture;
mod generated;
mod invariants;
mod lent;
mod logs;
mod migrations;
mod newer;
mod packs;
mod pictures;
mod reading;
mod slots;
mod statements;
mod statements_postgres;
mod storm;
mod submitting;
mod switches;
mod transactions;
mod words;
