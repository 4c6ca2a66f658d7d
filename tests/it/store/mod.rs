//! The stores: one body of tests for each port, run on every kind of store.

mod logs;
