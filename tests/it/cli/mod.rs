//! The command line as a user meets it: the binary itself, its output, its exit status.
//!
//! The client's half of the protocol is tested against a server that says exactly what a test wants it to say
//! ([`scripted`]), cuts and refusals included.

mod check_config;
mod client;
mod conformance;
mod doctor;
mod postgres;
mod scripted;
mod server;
mod user;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// How long any of these commands may take, with the pauses of a reconnect.
const LIMIT: Duration = Duration::from_secs(30);

/// What a command left behind.
pub struct Ran {
    /// Its exit status.
    pub status: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// Runs the binary in a folder with these variables and no other settings of its own.
pub async fn taskbell(dir: &Path, args: &[&str], env: &[(&str, &str)]) -> Ran {
    taskbell_told(dir, args, env, "").await
}

/// The same, with a text on its standard input.
pub async fn taskbell_told(dir: &Path, args: &[&str], env: &[(&str, &str)], input: &str) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taskbell"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().to_uppercase().starts_with("TASKBELL") || name.to_string_lossy().ends_with("_proxy") {
            command.env_remove(name);
        }
    }
    command.args(args).env("TZ", "UTC").env("LC_ALL", "C.UTF-8").envs(env.iter().copied()).current_dir(dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn().unwrap();
    let mut stdin = process.stdin.take().unwrap();
    // A command that does not read it may be gone already.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    let ended = tokio::time::timeout(LIMIT, process.wait_with_output());
    let ran = ended.await.expect("the command ends in time").unwrap();
    Ran {
        status: ran.status.code().expect("the command exits by itself"),
        out: String::from_utf8(ran.stdout).unwrap(),
        err: String::from_utf8(ran.stderr).unwrap(),
    }
}
