//! What one test plays on: a demo server with fresh data, the proxy before it, and the browser.

use super::browser::Browser;
use super::page::LIMIT;
use crate::eventually;
use crate::proxy::Proxy;
use crate::server::{Client, Server, Spec, free_port};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thirtyfour::WebDriver;
use tokio::sync::Mutex;

/// The stage of one test.
pub struct Stage {
    /// The browser, as new.
    pub browser: Arc<Browser>,
    /// Between the browser and the server.
    pub proxy: Proxy,
    /// The demo.
    pub server: Mutex<Server>,
}

impl Stage {
    pub(super) async fn build(browser: Arc<Browser>) -> Self {
        let port = free_port();
        let proxy = Proxy::before(port).await;
        let server = Spec::demo().port(port).env("TASKBELL__SERVER__PUBLIC_URL", &proxy.url()).start().await;
        Self { browser, proxy, server: Mutex::new(server) }
    }

    /// What drives the browser.
    pub fn driver(&self) -> &WebDriver {
        &self.browser.driver
    }

    /// An API client as the demo's user, past the proxy, so that its calls are not counted.
    pub async fn client(&self) -> Client {
        self.server.lock().await.client("user", "user").await
    }

    /// The folder that the server works in.
    pub async fn folder(&self) -> PathBuf {
        self.server.lock().await.folder().to_owned()
    }

    /// Waits until the server has so many sockets open.
    pub async fn until_sockets(&self, count: usize) {
        let url = format!("{}/metrics", self.server.lock().await.url());
        let line = format!("taskbell_sockets {count}");
        let held = async || {
            let text = reqwest::get(&url).await.ok()?.text().await.ok()?;
            text.lines().any(|each| each == line).then_some(())
        };
        eventually(&line, LIMIT, held).await;
    }

    /// Takes the window off the screen, so that all its tabs are hidden, as they are to the browser itself.
    pub async fn hide(&self) {
        self.driver().minimize_window().await.unwrap();
        assert_eq!(self.eval("document.hidden").await, true);
    }

    /// Puts the window back.
    pub async fn unhide(&self) {
        self.driver().set_window_rect(0, 0, 1280, 900).await.unwrap();
        self.until(LIMIT, "!document.hidden").await;
    }

    /// Shows the pages as on a screen of this size.
    pub async fn screen(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.browser.devtools("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// Shows the pages as for somebody who likes them dark, or light.
    pub async fn scheme(&self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": value}]});
        self.browser.devtools("Emulation.setEmulatedMedia", features).await;
    }

    /// Keeps a picture of the page in `target/browser/pictures/`.
    pub async fn picture(&self, name: &str) {
        let folder = folder().join("pictures");
        fs::create_dir_all(&folder).unwrap();
        self.driver().screenshot(&folder.join(format!("{name}.png"))).await.unwrap();
    }

    /// Keeps in `failed/` what can tell why a test failed: each window, what the browser logged, what the server said.
    pub(super) async fn keep(&self, name: &str) -> PathBuf {
        let folder = folder().join("failed").join(name);
        fs::create_dir_all(&folder).unwrap();
        // Whatever can be kept is kept; a browser in a bad state must not hide the fault of the test.
        for (index, window) in self.driver().windows().await.unwrap_or_default().into_iter().enumerate() {
            let _ = self.driver().switch_to_window(window).await;
            let _ = self.driver().screenshot(&folder.join(format!("window-{index}.png"))).await;
            let source = self.driver().source().await.unwrap_or_default();
            let _ = fs::write(folder.join(format!("window-{index}.html")), source);
        }
        let log = self.driver().browser_log().await.unwrap_or_default();
        let _ = fs::write(folder.join("browser.log"), log.iter().map(|e| format!("{e:?}\n")).collect::<String>());
        let _ = fs::write(folder.join("server.log"), self.server.lock().await.said());
        folder
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("browser")
}

/// Takes away what the run before kept of its failures, so that what is there is of this run.
pub(super) fn forget_failures() {
    let _ = fs::remove_dir_all(folder().join("failed"));
}
