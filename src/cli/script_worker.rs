//! `taskbell script-worker`: run chunks of scripts for the server that started this process.

use crate::handler::script::worker;
use std::process::ExitCode;

/// Runs until the server closes the pipe.
#[must_use]
pub fn run() -> ExitCode {
    worker::run()
}
