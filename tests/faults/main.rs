//! What must hold when nodes are killed, cut off or starved: real server processes, real databases, effects that are counted.
//!
//! The binary is also the server of its tests: started with [`rig::nodes::NODE`] in its environment it is taskbell with the
//! handlers of [`rig::ledger`]. It needs the feature `failpoints`, which `tests/run` switches on:
//! `cargo test --features failpoints --test faults -- WORD…`. Each run prints its seed; `TASKBELL_SEED` repeats one.
//! `TASKBELL_TEST_LONG=1` runs the full figures of docs/guarantees.md, without it a short form of the same.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]
#![allow(clippy::print_stdout, reason = "seeds and figures are for whoever runs it")]

#[path = "../it/store/invariants.rs"]
mod invariants;
mod rig;
#[path = "../it/support/mod.rs"]
#[allow(dead_code, unused_imports, unused_macros, reason = "the tests use it too, and each a part of it")]
mod support;

mod bounded_key;
mod clocks;
mod crash_matrix;
mod crash_soak;
mod frozen;
mod load_held;
mod lost_answers;
mod partitions;
mod power_cuts;

use libtest_mimic::Arguments;
use std::process::ExitCode;

fn main() -> ExitCode {
    // The processes of its scripts know nothing of the environment.
    if std::env::var_os(rig::nodes::NODE).is_some() || std::env::args().nth(1).is_some_and(|a| a == "script-worker") {
        return taskbell::cli::main(rig::ledger::handlers());
    }
    let tests = [
        bounded_key::tests(),
        clocks::tests(),
        crash_matrix::tests(),
        crash_soak::tests(),
        frozen::tests(),
        load_held::tests(),
        lost_answers::tests(),
        partitions::tests(),
        power_cuts::tests(),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests.into_iter().flatten().collect()).exit_code()
}
