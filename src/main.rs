//! The binary: arguments to one role.

use std::process::ExitCode;
use taskbell::cli::{self, Cli, Command};

fn main() -> ExitCode {
    let (config, command) = match Cli::read() {
        Ok(cli) => cli.command(),
        Err(status) => return status,
    };
    match command {
        Command::CheckConfig => cli::check_config::run(config.as_deref(), &[]),
        Command::Submit(args) => cli::submit::run(&args),
        Command::Watch(args) => cli::watch::run(&args),
        Command::ScriptWorker => cli::script_worker::run(),
        Command::Serve(_) | Command::Migrate | Command::Key(_) => {
            eprintln!("taskbell: this command is not part of this build");
            ExitCode::from(cli::EXIT_FAULT)
        }
    }
}
