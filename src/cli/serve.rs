//! `taskbell serve`: starts a node, waits for the word to stop, and drains it.
//!
//! The first SIGTERM or SIGINT begins the drain. A second one does not cut it short (an impatient supervisor sends two); a
//! third ends the process at once.

use super::{EXIT_FAULT, ServeArgs, ServeRole};
use crate::app::{NativeHandlers, Node, Role, Setup, StartError};
use crate::config::{Loaded, Settings, environment};
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long threads that are still busy are waited for after the drain.
const LAST_THREADS: Duration = Duration::from_millis(500);

/// Runs the command.
#[must_use]
pub fn run(config: Option<&Path>, args: &ServeArgs, natives: NativeHandlers) -> ExitCode {
    let loaded = match Settings::load(config, environment(), args.demo) {
        Ok(loaded) => loaded,
        Err(faults) => return told(&faults),
    };
    if let Err(e) = crate::telemetry::start(&loaded.settings.log, Arc::new(loaded.redactor())) {
        return told(&e);
    }
    for note in loaded.not_active().0.iter().chain(&loaded.settings.not_listed().0) {
        tracing::warn!("{note}");
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return told(&e),
    };
    let served = runtime.block_on(serve(&loaded, args.role, natives));
    // What blocks a thread by now is nobody's any more, and a process that was asked to end does not wait for it.
    runtime.shutdown_timeout(LAST_THREADS);
    match served {
        Ok(status) => status,
        // A fault of a library may quote an address with a password in it.
        Err(e) => told(&loaded.redactor().clean(&e.to_string())),
    }
}

fn told(what: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("taskbell: {what}");
    ExitCode::from(EXIT_FAULT)
}

async fn serve(loaded: &Loaded, role: Option<ServeRole>, natives: NativeHandlers) -> Result<ExitCode, StartError> {
    let role = match role {
        None | Some(ServeRole::All) => Role::All,
        Some(ServeRole::Web) => Role::Web,
        Some(ServeRole::Work) => Role::Work,
    };
    raise_file_limit();
    let mut signals = Signals::new().map_err(StartError::Signals)?;
    let node = Node::start(Setup { loaded, natives, script_exe: None, role }).await?;
    announce(loaded, &node);
    signals.next().await;
    tracing::info!("stopping: chunks under way may end, the rest is handed back");
    let drained = tokio::spawn(node.drain());
    tokio::select! {
        ended = drained => {
            if let Err(e) = ended {
                tracing::error!("the drain broke down: {e}");
                return Ok(ExitCode::from(EXIT_FAULT));
            }
        }
        () = async { signals.next().await; signals.next().await } => {
            tracing::warn!("stopped at the third signal; what was running is taken over at the next start");
            return Ok(ExitCode::from(EXIT_FAULT));
        }
    }
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// Each open page is a file to the system, and the usual limit of 1,024 is meant for programs without any.
fn raise_file_limit() {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(most) => tracing::debug!(most, "files that may be open at once"),
        Err(e) => tracing::warn!("the limit of open files stays as it is: {e}"),
    }
}

/// One line on standard output, for people and for whatever waits for the service to be up.
fn announce(loaded: &Loaded, node: &Node) {
    let demo = if loaded.demo { " (demo: sign in as `user` or `admin`, no password)" } else { "" };
    // Whoever started the service may have closed the output; the service runs all the same.
    let _ = writeln!(std::io::stdout(), "taskbell is listening on http://{}{demo}", node.address());
    tracing::info!(address = %node.address(), database = %loaded.settings.database.url, demo = loaded.demo, "started");
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
