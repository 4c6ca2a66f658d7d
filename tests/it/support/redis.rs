//! A Redis server of one test, which may take it down. It ends with the value, or with the process.

use super::{eventually, script};
use std::time::Duration;
use tempfile::TempDir;

/// A running server.
pub struct Redis {
    port: u16,
    folder: TempDir,
}

impl Redis {
    /// Starts one, with lines of configuration such as `user tb on >p ~* +@all`.
    pub async fn start(lines: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pid = std::process::id().to_string();
        let more: Vec<&str> = std::iter::once(pid.as_str()).chain(lines.iter().copied()).collect();
        let port = script::tell("redis", folder.path(), "start", &more).await.parse().unwrap();
        Self { port, folder }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Ends it at once, as a crash does.
    pub async fn kill(&self) {
        script::tell("redis", self.folder.path(), "kill", &[]).await;
    }

    /// Starts it again on the same port.
    pub async fn restart(&self) {
        script::tell("redis", self.folder.path(), "restart", &[]).await;
    }

    /// Waits until so many clients are connected, those that ask this left out: one that was dropped a moment ago may be
    /// listed still.
    pub async fn until_clients(&self, count: usize) {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        redis::cmd("CLIENT").arg("SETNAME").arg("asks").exec_async(&mut connection).await.unwrap();
        eventually(&format!("{count} clients"), Duration::from_secs(30), async || {
            let listed: String = redis::cmd("CLIENT").arg("LIST").query_async(&mut connection.clone()).await.unwrap();
            let others = listed.lines().filter(|line| !line.contains(" name=asks ")).count();
            (others == count).then_some(())
        })
        .await;
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = script::command("redis", self.folder.path(), "stop", &[]).status();
    }
}
