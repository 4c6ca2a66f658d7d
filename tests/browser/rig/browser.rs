//! One headless Chromium behind one chromedriver, for the whole run.
//!
//! Both write only into a temporary folder, their home included. The driver is ended by its id, which ends the browser too.

use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use thirtyfour::prelude::*;
use thirtyfour::{ChromiumLikeCapabilities, DesiredCapabilities};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const ARGUMENTS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--lang=en-US",
    "--window-size=1280,900",
];

/// The browser.
pub struct Browser {
    /// What drives it.
    pub driver: WebDriver,
    process: Child,
    devtools: String,
    http: reqwest::Client,
    preloads: tokio::sync::Mutex<Vec<Value>>,
    _home: TempDir,
}

impl Browser {
    /// Starts both; says in words what is missing.
    pub async fn start() -> Result<Self, String> {
        let home = tempfile::tempdir().map_err(|e| e.to_string())?;
        let mut process = Command::new("chromedriver")
            .arg("--port=0")
            .env("HOME", home.path())
            .env("TMPDIR", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| {
                format!("chromedriver does not start ({e}); install the packages chromium and chromium-driver")
            })?;
        let url = format!("http://127.0.0.1:{}", port(&mut process).await?);
        let mut wishes = DesiredCapabilities::chrome();
        let profile = format!("--user-data-dir={}", home.path().join("profile").display());
        for argument in ARGUMENTS.iter().copied().chain([profile.as_str()]) {
            wishes.add_arg(argument).map_err(|e| e.to_string())?;
        }
        wishes.set("goog:loggingPrefs", json!({"browser": "ALL"})).map_err(|e| e.to_string())?;
        wishes.set("unhandledPromptBehavior", "ignore").map_err(|e| e.to_string())?;
        let driver = WebDriver::new(&url, wishes).await.map_err(|e| format!("chromium does not start: {e}"))?;
        let devtools = format!("{url}/session/{}/goog/cdp/execute", driver.session_id());
        Ok(Self { driver, process, devtools, http: reqwest::Client::new(), preloads: Default::default(), _home: home })
    }

    /// Asks the browser itself, by a command of its protocol for developers; what it says stands under `value`.
    pub async fn devtools(&self, command: &str, params: Value) -> Value {
        let body = json!({"cmd": command, "params": params});
        let answer = self.http.post(&self.devtools).json(&body).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap_or_default());
        assert!(status.is_success(), "{command}: {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Runs a script in every page from now on, before the page's own, until the test is over.
    pub async fn preload(&self, script: &str) {
        let told = self.devtools("Page.addScriptToEvaluateOnNewDocument", json!({"source": script})).await;
        self.preloads.lock().await.push(told["value"]["identifier"].clone());
    }

    /// Takes all of these scripts back.
    pub async fn clear_preloads(&self) {
        for identifier in self.preloads.lock().await.drain(..) {
            self.devtools("Page.removeScriptToEvaluateOnNewDocument", json!({"identifier": identifier})).await;
        }
    }

    /// As new: one empty window, no cookies, no wishes of a test before.
    pub async fn clear(&self) {
        let windows = self.driver.windows().await.unwrap();
        let (first, others) = windows.split_first().unwrap();
        for window in others {
            self.driver.switch_to_window(window.clone()).await.unwrap();
            self.driver.close_window().await.unwrap();
        }
        self.driver.switch_to_window(first.clone()).await.unwrap();
        self.driver.goto("about:blank").await.unwrap();
        self.driver.set_window_rect(0, 0, 1280, 900).await.unwrap();
        self.clear_preloads().await;
        self.devtools("Network.clearBrowserCookies", json!({})).await;
        self.devtools("Emulation.clearDeviceMetricsOverride", json!({})).await;
        self.devtools("Emulation.setEmulatedMedia", json!({"features": []})).await;
        self.devtools("Emulation.setTimezoneOverride", json!({"timezoneId": ""})).await;
        self.devtools("Network.enable", json!({})).await;
        self.devtools("Network.setBlockedURLs", json!({"urls": []})).await;
    }

    /// Ends both.
    pub async fn stop(mut self) {
        // A browser that has gone away already is as good as ended.
        let _ = self.driver.clone().quit().await;
        let _ = self.process.kill().await;
    }
}

/// The port that the driver chose.
async fn port(process: &mut Child) -> Result<u16, String> {
    let out = process.stdout.take().ok_or("chromedriver has no output")?;
    let mut lines = BufReader::new(out).lines();
    let found = tokio::time::timeout(Duration::from_secs(30), async {
        while let Ok(Some(line)) = lines.next_line().await {
            let port = line.rsplit_once("on port ").and_then(|(_, rest)| rest.trim_end_matches('.').parse().ok());
            if line.contains("started successfully")
                && let Some(port) = port
            {
                return Some(port);
            }
        }
        None
    });
    let port = found.await.ok().flatten().ok_or("chromedriver does not say its port")?;
    // Whoever writes into a pipe that nobody reads waits for ever.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok(port)
}
