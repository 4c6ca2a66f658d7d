//! The WebSocket of a server, frame by frame.

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

const LIMIT: Duration = Duration::from_secs(30);

/// A connection.
pub struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    /// Connects to the server at an address, with these headers.
    pub async fn open(base: &str, headers: &[(&'static str, &str)]) -> Self {
        let mut request = format!("{}/api/v1/ws", base.replace("http", "ws")).into_client_request().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", "taskbell.v1".parse().unwrap());
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        Self(connect_async(request).await.unwrap().0)
    }

    /// Sends a frame.
    pub async fn say(&mut self, frame: Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    async fn next(&mut self) -> Message {
        tokio::time::timeout(LIMIT, self.0.next()).await.expect("something comes").unwrap().unwrap()
    }

    /// The next frame of a kind.
    pub async fn frame(&mut self, t: &str) -> Value {
        loop {
            match self.next().await {
                Message::Text(text) => {
                    let frame: Value = serde_json::from_str(&text).unwrap();
                    if frame["t"] == t {
                        return frame;
                    }
                }
                Message::Close(close) => panic!("{t} was to come, not a close: {close:?}"),
                _ => {}
            }
        }
    }

    /// Whether it is welcomed; else the server closes it.
    pub async fn is_welcomed(&mut self) -> bool {
        loop {
            match self.next().await {
                Message::Text(text) if text.contains("\"welcome\"") => return true,
                Message::Close(_) => return false,
                _ => {}
            }
        }
    }

    /// The code with which the server closes it.
    pub async fn close_code(&mut self) -> u16 {
        loop {
            if let Message::Close(frame) = self.next().await {
                return frame.unwrap().code.into();
            }
        }
    }
}
