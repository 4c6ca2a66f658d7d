//! A WebSocket by hand, byte by byte, for what no library would send.

use crate::support::server::Server;
use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const LIMIT: Duration = Duration::from_secs(30);

pub const CONTINUED: u8 = 0x0;
pub const TEXT: u8 = 0x1;
pub const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
pub const PING: u8 = 0x9;

/// What the other end did last.
#[derive(Debug, PartialEq, Eq)]
pub enum Got {
    Frame(Value),
    Closed(u16),
    /// The connection ended without a close, or with one without a code.
    Gone,
}

pub struct Raw(TcpStream);

impl Raw {
    /// Asks for a socket; answers the status, and the connection as it then is.
    pub async fn ask(server: &Server, headers: &[(&str, &[u8])]) -> (u16, Self) {
        Self::ask_at(server, "/api/v1/ws", headers).await
    }

    pub async fn ask_at(server: &Server, path: &str, headers: &[(&str, &[u8])]) -> (u16, Self) {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
        let mut head = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Protocol: taskbell.v1\r\n",
            server.port()
        )
        .into_bytes();
        for (name, value) in headers {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        stream.write_all(&head).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(tokio::time::timeout(LIMIT, stream.read_u8()).await.expect("an answer comes").unwrap());
        }
        let answer = String::from_utf8(answer).unwrap();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), Self(stream))
    }

    /// A socket of a caller, before its hello.
    pub async fn open(server: &Server, key: &str) -> Self {
        Self::open_from(server, key, None).await
    }

    /// The same, as a trusted proxy brings it from elsewhere.
    pub async fn open_from(server: &Server, key: &str, from: Option<&str>) -> Self {
        let bearer = format!("Bearer {key}").into_bytes();
        let mut headers = vec![("authorization", bearer.as_slice())];
        headers.extend(from.map(|from| ("x-forwarded-for", from.as_bytes())));
        let (status, raw) = Self::ask(server, &headers).await;
        assert_eq!(status, 101);
        raw
    }

    /// The connection itself.
    pub fn into_inner(self) -> TcpStream {
        self.0
    }

    /// Sends a frame as a client does: masked.
    pub async fn send(&mut self, last: bool, kind: u8, payload: &[u8]) {
        self.send_bits(if last { 0x80 } else { 0 } | kind, payload, true).await;
    }

    /// Sends a frame with this first byte. A server that has closed may not take it.
    pub async fn send_bits(&mut self, first: u8, payload: &[u8], masked: bool) {
        let mask = if masked { 0x80 } else { 0 };
        let mut frame = vec![first];
        match payload.len() {
            small @ 0..126 => frame.push(mask | small as u8),
            middle @ 126..65_536 => {
                frame.push(mask | 126);
                frame.extend_from_slice(&(middle as u16).to_be_bytes());
            }
            large => {
                frame.push(mask | 127);
                frame.extend_from_slice(&(large as u64).to_be_bytes());
            }
        }
        let key = [1, 2, 3, 4];
        if masked {
            frame.extend_from_slice(&key);
            frame.extend(payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
        } else {
            frame.extend_from_slice(payload);
        }
        let _ = self.0.write_all(&frame).await;
    }

    /// Sends a text frame.
    pub async fn say(&mut self, text: &str) {
        self.send(true, TEXT, text.as_bytes()).await;
    }

    /// The next text frame or the end; pings and pongs of the WebSocket itself are passed over.
    pub async fn next(&mut self) -> Got {
        tokio::time::timeout(LIMIT, self.read()).await.expect("a frame or the end comes").unwrap_or(Got::Gone)
    }

    async fn read(&mut self) -> std::io::Result<Got> {
        loop {
            let kind = self.0.read_u8().await? & 0xf;
            let size = match self.0.read_u8().await? {
                126 => u64::from(self.0.read_u16().await?),
                127 => self.0.read_u64().await?,
                small => u64::from(small),
            };
            let mut payload = vec![0; usize::try_from(size).unwrap()];
            self.0.read_exact(&mut payload).await?;
            match (kind, payload.as_slice()) {
                (TEXT, text) => return Ok(Got::Frame(serde_json::from_slice(text).unwrap())),
                (CLOSE, [high, low, ..]) => return Ok(Got::Closed(u16::from_be_bytes([*high, *low]))),
                (CLOSE, _) => return Ok(Got::Gone),
                _ => {}
            }
        }
    }

    /// The first frame of a kind.
    pub async fn frame(&mut self, t: &str) -> Value {
        loop {
            match self.next().await {
                Got::Frame(frame) if frame["t"] == t => return frame,
                Got::Frame(_) => {}
                other => panic!("{t} was to come, not {other:?}"),
            }
        }
    }

    /// How it ends; frames before it are passed over.
    pub async fn end(&mut self) -> Got {
        loop {
            match self.next().await {
                Got::Frame(_) => {}
                end => return end,
            }
        }
    }
}
