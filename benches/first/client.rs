//! A client of one connection that sends the same request over and over: what a load generator does, so that a figure of a
//! server which shares its machine with the clients holds as little of theirs as can be.
//!
//! It knows the part of HTTP/1.1 that the answers need: a head, then as many bytes as `content-length` says.

use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Answers of a task are some kilobytes.
const READ_BYTES: usize = 16 * 1024;
/// A figure that waits for ever says nothing.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection, with the request that it repeats.
pub struct Repeater {
    stream: TcpStream,
    request: Vec<u8>,
    read: Vec<u8>,
}

impl Repeater {
    /// Connects. The request is a POST of JSON.
    pub async fn connect(port: u16, path: &str, key: &str, body: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        Self { stream, request: request.into_bytes(), read: Vec::with_capacity(READ_BYTES) }
    }

    /// Sends the request so often, each time after the answer to the one before; every answer has to be of this status.
    pub async fn repeat(mut self, count: usize, status: u16) {
        let repeats = async {
            for _ in 0..count {
                self.stream.write_all(&self.request).await.unwrap();
                let answer = self.answer().await;
                assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
            }
        };
        tokio::time::timeout(PATIENCE, repeats).await.expect("the server answers");
    }

    /// The head of the next answer, once its body is here too.
    async fn answer(&mut self) -> String {
        self.read.clear();
        loop {
            assert!(self.stream.read_buf(&mut self.read).await.unwrap() > 0, "the server closed the connection");
            let Some(head) = self.read.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let text = std::str::from_utf8(&self.read[..head]).unwrap();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
            if self.read.len() >= head + 4 + length.parse::<usize>().unwrap() {
                return text.to_owned();
            }
        }
    }
}
