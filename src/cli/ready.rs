//! `taskbell ready`: asks a server whether it can work, for health checks of containers and for scripts that wait.
//!
//! Exit status: 0 it can; 3 it cannot, or does not answer within [`PATIENCE`]. Needs no key.

use super::client::{Client, ClientError};
use super::{ServerArgs, exit};
use reqwest::Method;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

/// Above the server's own patience with its parts, below that of the usual health check.
const PATIENCE: Duration = Duration::from_secs(4);

/// The answer of `/readyz`.
#[derive(Deserialize)]
struct Readiness {
    parts: BTreeMap<String, String>,
}

/// Runs the command.
#[must_use]
pub fn run(args: &ServerArgs) -> ExitCode {
    exit(ask(args))
}

async fn ask(args: &ServerArgs) -> Result<u8, ClientError> {
    let client = Client::new(args)?;
    let request = client.request(Method::GET, client.address(&["readyz"])).timeout(PATIENCE);
    let Readiness { parts } = client.send(request).await?;
    let parts: Vec<String> = parts.into_iter().map(|(part, word)| format!("{part} {word}")).collect();
    // Whoever asked may have closed the output; the exit status is the answer.
    let _ = writeln!(std::io::stdout(), "ready: {}", parts.join(", "));
    Ok(0)
}
