//! A server that answers by a script: whole answers, broken ones, and ones that never end. Keeps what it was sent.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// What was sent in one request.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Request line and headers.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Seen {
    /// The value of a header; empty when it is not there.
    pub fn header(&self, name: &str) -> String {
        let find = |line: &str| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        };
        self.head.lines().find_map(find).unwrap_or_default()
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// What is answered.
#[derive(Clone, Debug)]
pub enum Played {
    /// These bytes, then the connection is closed.
    Bytes(Vec<u8>),
    /// These bytes, then the second ones again and again, with a pause between.
    Endless(Vec<u8>, Vec<u8>, Duration),
    /// Nothing; the connection is reset.
    Reset,
    /// Nothing; the connection stays open.
    Silence,
}

impl Played {
    /// A whole answer with a status line such as `200 OK`, further header lines and a body.
    pub fn answer(status: &str, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::Bytes(
            format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}").into(),
        )
    }

    /// A 200 with JSON.
    pub fn json(body: &serde_json::Value) -> Self {
        Self::answer("200 OK", "content-type: application/json\r\n", &body.to_string())
    }
}

/// A server on a free port of an address.
pub struct Target {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    _serving: AbortOnDropHandle<()>,
}

impl Target {
    /// Answers each request by a function of what was sent and how many were before.
    pub async fn start(play: impl Fn(usize, &Seen) -> Played + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1:0", play).await
    }

    /// The same on an address.
    pub async fn at(address: &str, play: impl Fn(usize, &Seen) -> Played + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let (address, seen) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let (play, kept) = (Arc::new(play), seen.clone());
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, play.clone(), kept.clone()));
            }
        });
        Self { address, seen, _serving: AbortOnDropHandle::new(serving) }
    }

    /// What was sent so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// An address on it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

async fn serve(mut stream: TcpStream, play: Arc<impl Fn(usize, &Seen) -> Played>, kept: Arc<Mutex<Vec<Seen>>>) {
    let Some(seen) = read(&mut stream).await else { return };
    let count = {
        let mut all = kept.lock().unwrap();
        all.push(seen.clone());
        all.len() - 1
    };
    // What the other side does with the answer is what the test looks at.
    match play(count, &seen) {
        Played::Bytes(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        Played::Endless(first, again, pause) => {
            let _ = stream.write_all(&first).await;
            while stream.write_all(&again).await.is_ok() {
                tokio::time::sleep(pause).await;
            }
        }
        Played::Reset => {
            let _ = stream.set_zero_linger();
        }
        Played::Silence => {
            let _ = stream.read(&mut [0; 1]).await;
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let mut seen = Seen { head, body: bytes[end + 4..].to_vec() };
            let length: usize = seen.header("content-length").parse().unwrap_or(0);
            while seen.body.len() < length {
                if stream.read_buf(&mut seen.body).await.ok()? == 0 {
                    return None;
                }
            }
            return Some(seen);
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
