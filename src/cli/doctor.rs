//! `taskbell doctor`: looks an installation over and tells each thing in one line: configuration, database, clock, the way
//! between nodes, Redis, files, disks, and whether the public address passes WebSockets on.
//!
//! Changes nothing. What it tells is the answer, on standard output. Exit status: 0 no fault, 1 a fault.

use super::check_config::unrunnable;
use crate::app::doctor;
use crate::config::{Settings, environment};
use crate::core::finding::{Finding, Grade};
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Error as SocketError;
use url::Url;

/// How long the public address may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs the command. `natives` are the names of the handlers compiled into the binary.
#[must_use]
pub fn run(config: Option<&Path>, natives: &[&str]) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => {
            eprintln!("taskbell: {e}");
            return ExitCode::from(super::EXIT_FAULT);
        }
    };
    let found = runtime.block_on(examine(config, natives));
    let sick = found.iter().any(|finding| finding.grade == Grade::Fault);
    // Whoever asked may have closed the output; the exit status is the answer.
    let _ = tell(&mut io::stdout().lock(), &found);
    ExitCode::from(u8::from(sick))
}

async fn examine(config: Option<&Path>, natives: &[&str]) -> Vec<Finding> {
    const PART: &str = "configuration";
    let loaded = match Settings::load(config, environment(), false) {
        Ok(loaded) => loaded,
        Err(faults) => return faults.0.iter().map(|fault| Finding::fault(PART, fault.to_string())).collect(),
    };
    let faults = if loaded.demo { Vec::new() } else { unrunnable(&loaded.settings, natives).0 };
    let mut found: Vec<Finding> = match (faults.is_empty(), loaded.demo) {
        (true, true) => vec![Finding::good(PART, "the demo (no file and no settings)")],
        (true, false) => vec![Finding::good(PART, format!("valid; {} action(s)", loaded.settings.actions.len()))],
        (false, _) => faults.iter().map(|fault| Finding::fault(PART, fault.to_string())).collect(),
    };
    found.extend(loaded.not_active().0.iter().map(|note| Finding::note(PART, note.to_string())));
    found.extend(doctor::examine(&loaded.settings).await);
    if let Some(address) = &loaded.settings.server.public_url {
        found.push(way_in(address).await);
    }
    found
}

/// Whether a WebSocket comes through at the public address: anything on the way may swallow it.
async fn way_in(address: &Url) -> Finding {
    const PART: &str = "public address";
    let shown = address.as_str().trim_end_matches('/');
    let mut socket = address.clone();
    let scheme = if address.scheme() == "https" { "wss" } else { "ws" };
    socket.set_path(&format!("{}/api/v1/ws", address.path().trim_end_matches('/')));
    if socket.set_scheme(scheme).is_err() {
        return Finding::fault(PART, format!("{shown} is no address of a web server"));
    }
    match tokio::time::timeout(PATIENCE, connect_async(socket.as_str())).await {
        Ok(Ok(_)) => Finding::good(PART, format!("WebSockets come through at {shown}")),
        Ok(Err(SocketError::Http(answer))) => Finding::fault(
            PART,
            format!("{shown} answers {} to a WebSocket: let the proxy pass Upgrade and Connection on", answer.status()),
        ),
        Ok(Err(e)) => Finding::note(PART, format!("nobody answers at {shown} ({e}): is the server up?")),
        Err(_) => Finding::note(PART, format!("nobody answers at {shown} within {} s", PATIENCE.as_secs())),
    }
}

fn tell(out: &mut impl io::Write, found: &[Finding]) -> io::Result<()> {
    for Finding { grade, part, text } in found {
        let word = match grade {
            Grade::Good => "ok",
            Grade::Note => "note",
            Grade::Fault => "FAULT",
        };
        writeln!(out, "{word:<6} {part:<15} {}", text.replace(['\n', '\r'], " "))?;
    }
    out.flush()
}
