//! Pull workers as whole programs: those that docs/handlers.md shows, taken from the page as they stand, beside real servers.

mod kills;
mod shown;

use crate::docs::shown;
use crate::support::ground::Ground;
use crate::support::server::{Client, Server, Spec};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::{Child, Command};

/// How long a test waits for what takes a few seconds on a quiet machine.
const SOON: Duration = Duration::from_secs(60);

const CONFIG: &str = r#"
[[actions]]
key = "write-letters"
title = "Write letters"
handler = { pull = true }
retry = { max_attempts = 20, base = "1s", cap = "1s" }
chunk_timeout = "20s"
"#;

/// A language in which the page shows a worker.
#[derive(Clone, Copy, Debug)]
enum Language {
    Python,
    TypeScript,
    Bash,
}

/// A server with the action of the page and short leases.
async fn start(ground: Arc<Ground>) -> Server {
    let spec = Spec::with_config(CONFIG).env("TASKBELL__ENGINE__LEASE_MS", "3000");
    spec.env("TASKBELL__ENGINE__HEARTBEAT_MS", "1000").env("TASKBELL__ENGINE__SWEEP_MS", "300").start_on(ground).await
}

/// The key of a worker.
async fn key(server: &Server) -> String {
    let args = ["key", "create", "--tenant", "default", "--user", "letters", "--role", "user", "--scopes", "worker"];
    server.command(&args).await
}

/// The worker of the page, ready to be run: what to run, and the file.
async fn prepare(language: Language, folder: &Path) -> (String, PathBuf) {
    let write = |name: &str| {
        let file = folder.join(name);
        std::fs::write(&file, shown("docs/handlers.md", &format!("examples/{name}"))).unwrap();
        file
    };
    match language {
        Language::Python => ("python3".into(), write("worker.py")),
        Language::Bash => ("bash".into(), write("worker.sh")),
        Language::TypeScript => {
            let file = write("worker.ts");
            let compiler = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/node/node_modules/.bin/tsc");
            let strict = ["--strict", "--target", "es2022", "--module", "es2022", "--lib", "es2022,dom", "--types", ""];
            let compiled = Command::new(&compiler).args(strict).arg(&file).output().await;
            let compiled = compiled.unwrap_or_else(|e| panic!("{}: {e}; `tests/npm` installs it", compiler.display()));
            assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stdout));
            ("node".into(), file.with_extension("js"))
        }
    }
}

/// Runs a worker; what it says goes to the log of the test.
fn run((program, file): &(String, PathBuf), url: &str, key: &str) -> Child {
    let mut command = Command::new(program);
    command.arg(file).env("TASKBELL_URL", url).env("TASKBELL_KEY", key);
    command.stdin(Stdio::null()).kill_on_drop(true).spawn().unwrap_or_else(|e| panic!("{program}: {e}"))
}

/// Asks a process to end, and waits until it has.
async fn ended(mut worker: Child) -> std::process::ExitStatus {
    let pid = worker.id().expect("it runs").to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
    tokio::time::timeout(SOON, worker.wait()).await.expect("it ends when it is asked to").unwrap()
}

/// The user who clicks.
async fn alice(server: &Server) -> Client {
    server.client("alice", "user").await
}
