//! The binary: arguments to one role.

fn main() {}
