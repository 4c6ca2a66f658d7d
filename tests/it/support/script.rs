//! The scripts of tests/ that start and end a server of one test: tests/postgres and tests/redis, which take the same words.

use std::path::Path;
use std::process::{Command, Stdio};

/// A word to the script of this name, about the server of a folder.
pub fn command(script: &str, folder: &Path, word: &str, more: &[&str]) -> Command {
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script));
    command.arg(word).arg(folder.join("note")).args(more).stdin(Stdio::null());
    command
}

/// Has the script do something; what it printed.
pub async fn tell(script: &str, folder: &Path, word: &str, more: &[&str]) -> String {
    let mut command = tokio::process::Command::from(command(script, folder, word, more));
    let output = command.output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tests/{script} {word}: {said}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
