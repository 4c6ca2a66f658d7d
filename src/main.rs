//! The binary: all that it does is in the library, so that a binary of one's own does the same with its own handlers.

use std::process::ExitCode;
use taskbell::app::NativeHandlers;

fn main() -> ExitCode {
    taskbell::cli::main(NativeHandlers::new())
}
