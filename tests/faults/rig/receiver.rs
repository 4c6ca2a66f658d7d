//! A system outside that is told of effects: it counts how often it hears of each key.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// It lives as long as the value.
pub struct Receiver {
    port: u16,
    heard: Arc<Mutex<BTreeMap<String, u64>>>,
    serving: JoinHandle<()>,
}

impl Receiver {
    /// Starts one.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(BTreeMap::new()));
        let counted = Arc::clone(&heard);
        let router = axum::Router::new().fallback(move |uri: axum::http::Uri| async move {
            *counted.lock().unwrap().entry(uri.path().to_owned()).or_default() += 1;
        });
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { port, heard, serving }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many keys it has heard of, and in how many calls.
    pub fn counts(&self) -> (usize, u64) {
        let heard = self.heard.lock().unwrap();
        (heard.len(), heard.values().sum())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
