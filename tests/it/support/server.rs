//! A real server process on a ground of its own, or beside others on one: started, asked, killed, started again.
//!
//! The process is ended by its id when the value is dropped. What it said on standard error is kept in its folder, and is part of the message when it does not come up.

use super::eventually;
use super::ground::Ground;
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

const START_LIMIT: Duration = Duration::from_secs(60);
const DATABASE_URL: &str = "TASKBELL__DATABASE__URL";
const END_LIMIT: Duration = Duration::from_secs(60);

/// How a server is started.
#[derive(Clone, Debug, Default)]
pub struct Spec {
    /// The text of the configuration file; none = the demo.
    pub config: Option<String>,
    /// Settings by environment, beside the address to listen on.
    pub env: Vec<(String, String)>,
    /// The port; none = a free one.
    pub port: Option<u16>,
    /// What of a node; none = everything.
    pub role: Option<&'static str>,
    /// A binary with handlers of its own; none = taskbell's.
    pub exe: Option<PathBuf>,
}

impl Spec {
    /// The demo with fresh data.
    pub fn demo() -> Self {
        Self::default()
    }

    /// A server with a configuration file.
    pub fn with_config(text: &str) -> Self {
        Self { config: Some(text.to_owned()), ..Self::default() }
    }

    /// With a setting by environment, such as `TASKBELL__ENGINE__LEASE_MS`.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A setting by environment, unless the test has given it.
    fn or_else(&mut self, name: &str, value: &str) {
        if self.env.iter().all(|(given, _)| given != name) {
            self.env.push((name.to_owned(), value.to_owned()));
        }
    }

    /// With this part of a node: `web` or `work`.
    pub fn role(mut self, role: &'static str) -> Self {
        self.role = Some(role);
        self
    }

    /// As a binary with handlers of its own.
    pub fn exe(mut self, exe: PathBuf) -> Self {
        self.exe = Some(exe);
        self
    }

    /// On a port that is known before.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Starts it on the usual database, and waits until it is ready.
    pub async fn start(self) -> Server {
        self.start_on(Arc::new(Ground::usual().await)).await
    }

    /// Starts it on a ground that the test has chosen, and waits until it is ready. Several may share one on a server.
    pub async fn start_on(mut self, ground: Arc<Ground>) -> Server {
        if let Some(text) = &self.config {
            fs::write(ground.path().join("taskbell.toml"), text).unwrap();
        }
        if let Some(database) = ground.database() {
            self.or_else(DATABASE_URL, &database.url());
            // What a killed node held is taken over when its leases end, and not at the next start as on a file.
            for (name, ms) in [("LEASE", "3000"), ("HEARTBEAT", "1000"), ("SWEEP", "500")] {
                self.or_else(&format!("TASKBELL__ENGINE__{name}_MS"), ms);
            }
        }
        let port = self.port.unwrap_or_else(free_port);
        let process = launch(&self, ground.path(), port).await.unwrap_or_else(|said| panic!("{said}"));
        Server { spec: self, ground, port, process }
    }
}

/// A port that nobody listens on at this moment.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A running server.
pub struct Server {
    spec: Spec,
    port: u16,
    process: Child,
    ground: Arc<Ground>,
}

impl Server {
    /// The folder it works in: `taskbell.toml`, `data/`, and its log.
    pub fn folder(&self) -> &Path {
        self.ground.path()
    }

    /// The settings that it has by environment.
    pub fn env(&self) -> Vec<(&str, &str)> {
        self.spec.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    /// What it stands on.
    pub fn ground(&self) -> &Ground {
        &self.ground
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Its id as a process.
    pub fn pid(&self) -> u32 {
        self.process.id().expect("the server runs")
    }

    /// What it said so far.
    pub fn said(&self) -> String {
        fs::read_to_string(log_file(self.folder(), self.port)).unwrap_or_default()
    }

    /// Ends it as a crash does, at once and without a word to it.
    pub async fn kill(&mut self) {
        self.process.kill().await.unwrap();
    }

    /// Asks it to end by SIGTERM, as an operator does; answers its exit status.
    pub async fn terminate(&mut self) -> std::process::ExitStatus {
        terminate(self.pid()).await;
        tokio::time::timeout(END_LIMIT, self.process.wait())
            .await
            .expect("the server ends when it is asked to")
            .unwrap()
    }

    /// Starts it again in the same folder on the same port, after it was ended.
    pub async fn start_again(&mut self) {
        self.process = launch(&self.spec, self.folder(), self.port).await.unwrap_or_else(|said| panic!("{said}"));
    }

    /// The same with a setting by environment for this start alone; false when it ended before it was ready.
    pub async fn start_again_with(&mut self, name: &str, value: &str) -> bool {
        let spec = self.spec.clone().env(name, value);
        let started = launch(&spec, self.folder(), self.port).await;
        started.map(|process| self.process = process).is_ok()
    }

    /// Waits until it has ended by itself.
    pub async fn ended(&mut self, limit: Duration) -> bool {
        tokio::time::timeout(limit, self.process.wait()).await.is_ok()
    }

    /// Runs another command of the binary in the same folder with the same settings; answers its standard output.
    pub async fn command(&self, args: &[&str]) -> String {
        self.command_told(args, "").await
    }

    /// The same, with a text on its standard input.
    pub async fn command_told(&self, args: &[&str], input: &str) -> String {
        let mut command = taskbell(&self.spec, self.folder(), self.port);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut stdin = process.stdin.take().unwrap();
        // A command that does not read it may be gone already.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let output = process.wait_with_output().await.unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// A client with a fresh key for a user of a role in the tenant `default`.
    pub async fn client(&self, user: &str, role: &str) -> Client {
        let key = self.command(&["key", "create", "--tenant", "default", "--user", user, "--role", role]).await;
        Client::new(&self.url(), &key)
    }
}

/// Asks a process to end by SIGTERM.
pub async fn terminate(pid: u32) {
    let asked = Command::new("kill").args(["-TERM", &pid.to_string()]).status().await.unwrap();
    assert!(asked.success());
}

/// An API client with a key.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    /// The key it shows.
    pub key: String,
}

impl Client {
    /// A client of a server at an address, with a key.
    pub fn new(base: &str, key: &str) -> Self {
        Self { http: reqwest::Client::new(), base: base.to_owned(), key: key.to_owned() }
    }

    /// Asks for a path; answers the status and the JSON, `Null` where there is none.
    pub async fn get(&self, path: &str) -> (u16, Value) {
        self.send(self.http.get(format!("{}{path}", self.base))).await
    }

    /// Posts JSON to a path.
    pub async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send(self.http.post(format!("{}{path}", self.base)).json(body)).await
    }

    /// Deletes what a path names; answers the status.
    pub async fn delete(&self, path: &str) -> u16 {
        self.send(self.http.delete(format!("{}{path}", self.base))).await.0
    }

    /// Posts JSON to a path that may refuse it; answers the status, what `Retry-After` says, and the JSON.
    pub async fn try_post(&self, path: &str, body: &Value) -> (u16, Option<String>, Value) {
        self.ask(path, body).await.unwrap()
    }

    /// The same of a server that may be away.
    pub async fn ask(&self, path: &str, body: &Value) -> reqwest::Result<(u16, Option<String>, Value)> {
        let request = self.http.post(format!("{}{path}", self.base)).json(body);
        let answer = request.bearer_auth(&self.key).send().await?;
        let later = answer.headers().get("retry-after").map(|v| v.to_str().unwrap().to_owned());
        Ok((answer.status().as_u16(), later, answer.json().await.unwrap_or_default()))
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> (u16, Value) {
        let answer = request.bearer_auth(&self.key).send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or_default())
    }

    /// Submits a task that has to be accepted; answers it.
    pub async fn submit(&self, body: Value) -> Value {
        let (status, task) = self.post("/api/v1/tasks", &body).await;
        assert_eq!(status, 201, "{task}");
        task
    }

    /// Waits until a task is as wished; answers it.
    pub async fn until(&self, id: &str, limit: Duration, wished: impl Fn(&Value) -> bool) -> Value {
        self.until_any(&format!("/api/v1/tasks/{id}"), limit, wished).await
    }

    /// Waits until what a path answers is as wished; answers it.
    pub async fn until_any(&self, path: &str, limit: Duration, wished: impl Fn(&Value) -> bool) -> Value {
        eventually(&format!("{path} is as wished"), limit, async || Some(self.get(path).await.1).filter(&wished)).await
    }

    /// Uploads a file; answers its id.
    pub async fn upload(&self, name: &str, bytes: Vec<u8>) -> String {
        let request = self.http.post(format!("{}/api/v1/uploads?name={name}", self.base));
        let (status, file) = self.send(request.header("content-type", "application/octet-stream").body(bytes)).await;
        assert_eq!(status, 201, "{file}");
        file["id"].as_str().unwrap().to_owned()
    }
}

/// The binary with the settings of a server, and with nothing of the environment that the tests run in.
fn taskbell(spec: &Spec, folder: &Path, port: u16) -> Command {
    let own = Path::new(env!("CARGO_BIN_EXE_taskbell"));
    let mut command = Command::new(spec.exe.as_deref().unwrap_or(own));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TASKBELL")) {
        command.env_remove(name);
    }
    command.current_dir(folder).stdin(Stdio::null()).envs(spec.env.iter().cloned());
    command.env("TASKBELL__SERVER__LISTEN", format!("127.0.0.1:{port}"));
    if spec.config.is_some() {
        command.arg("--config").arg(folder.join("taskbell.toml"));
    }
    command
}

/// Starts a process and waits until it is ready; what it said when it ended before.
async fn launch(spec: &Spec, folder: &Path, port: u16) -> Result<Child, String> {
    let log = OpenOptions::new().create(true).append(true).open(log_file(folder, port)).unwrap();
    let mut command = taskbell(spec, folder, port);
    command.arg("serve");
    if let Some(role) = spec.role {
        command.args(["--role", role]);
    }
    if spec.config.is_none() {
        command.arg("--demo");
    }
    command.stdout(Stdio::null()).stderr(log).kill_on_drop(true);
    let mut process = command.spawn().unwrap();
    let ready = format!("http://127.0.0.1:{port}/readyz");
    let end = tokio::time::Instant::now() + START_LIMIT;
    loop {
        if let Ok(answer) = reqwest::get(&ready).await
            && answer.status().is_success()
        {
            return Ok(process);
        }
        let ended = process.try_wait().unwrap();
        let said = || fs::read_to_string(log_file(folder, port)).unwrap_or_default();
        if let Some(status) = ended {
            return Err(format!("the server ended with {status}:\n{}", said()));
        }
        assert!(tokio::time::Instant::now() < end, "the server is not ready within {START_LIMIT:?}:\n{}", said());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn log_file(folder: &Path, port: u16) -> PathBuf {
    folder.join(format!("server-{port}.log"))
}
