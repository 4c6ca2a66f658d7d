//! A Redis server of one test, which may take it down. It ends with the value, or with the process.

use super::script;
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

    /// How many clients are connected, this question left out.
    pub async fn client_count(&self) -> usize {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let listed: String = redis::cmd("CLIENT").arg("LIST").query_async(&mut connection).await.unwrap();
        listed.lines().count() - 1
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = script::command("redis", self.folder.path(), "stop", &[]).status();
    }
}
