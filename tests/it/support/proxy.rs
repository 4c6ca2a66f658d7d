//! A small TCP proxy before a server: it can be cut, stalled and mended, and counts requests by path.
//!
//! Cut means: open connections end at once, and new ones are closed as soon as they come. Stalled means: nothing passes in
//! either direction, and nobody is told. Requests are read from the bytes that pass, up to an upgrade or to what is no
//! request at all; the bytes themselves are not touched.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// More than this without an end is no head of a request.
const HEAD_BYTES: usize = 64 * 1024;

/// What becomes of the bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Whole,
    Stalled,
    Cut,
}

/// A running proxy.
pub struct Proxy {
    port: u16,
    server: Arc<AtomicU16>,
    line: watch::Sender<Line>,
    seen: Arc<Mutex<BTreeMap<String, usize>>>,
    refused: Arc<Mutex<Vec<String>>>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Starts one on a free port before a server's port, which nobody needs to listen on yet.
    pub async fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let line = watch::Sender::new(Line::Whole);
        let seen = Arc::new(Mutex::new(BTreeMap::new()));
        let refused = Arc::new(Mutex::new(Vec::new()));
        let notes = Notes { seen: seen.clone(), refused: refused.clone() };
        let server = Arc::new(AtomicU16::new(server));
        let accepting = tokio::spawn(accept(listener, server.clone(), line.clone(), notes));
        Self { port, server, line, seen, refused, accepting }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Cuts every connection and lets no new one through.
    pub fn cut(&self) {
        self.line.send_replace(Line::Cut);
    }

    /// Leads new connections to the server at another port; those that are open stay where they are.
    pub fn lead_to(&self, server: u16) {
        self.server.store(server, Ordering::SeqCst);
    }

    /// Holds back whatever comes, without a word to anybody.
    pub fn stall(&self) {
        self.line.send_replace(Line::Stalled);
    }

    /// Lets connections through again.
    pub fn mend(&self) {
        self.line.send_replace(Line::Whole);
    }

    /// Ends every connection on which one of these paths is asked for, as a proxy does that knows no WebSocket; none: all pass.
    pub fn refuse(&self, paths: &[&str]) {
        *self.refused.lock().unwrap() = paths.iter().map(|&path| path.to_owned()).collect();
    }

    /// Requests since the start or the last call, by method and path without its query.
    pub fn take_seen(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, server: Arc<AtomicU16>, line: watch::Sender<Line>, notes: Notes) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let (mut cut, notes, lines) = (line.subscribe(), notes.clone(), [line.subscribe(), line.subscribe()]);
        if *cut.borrow() == Line::Cut {
            continue;
        }
        let server = server.load(Ordering::SeqCst);
        tokio::spawn(async move {
            let Ok(upstream) = TcpStream::connect(("127.0.0.1", server)).await else { return };
            let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), upstream.into_split());
            let [to_the_server, to_the_client] = lines;
            tokio::select! {
                () = copy(from_client, to_server, to_the_server, |bytes, requests| requests.read(bytes, &notes)) => {}
                () = copy(from_server, to_client, to_the_client, |_, _| true) => {}
                _ = cut.wait_for(|line| *line == Line::Cut) => {}
            }
        });
    }
}

async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut line: watch::Receiver<Line>,
    look: impl Fn(&[u8], &mut Requests) -> bool,
) {
    let mut requests = Requests::default();
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if !look(&buffer[..count], &mut requests) {
            return;
        }
        let open = line.wait_for(|line| *line == Line::Whole).await.is_ok();
        if !open || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

/// What all connections share: what was asked for, and what is not let through.
#[derive(Clone)]
struct Notes {
    seen: Arc<Mutex<BTreeMap<String, usize>>>,
    refused: Arc<Mutex<Vec<String>>>,
}

/// The heads of the requests of one connection, as they pass.
#[derive(Default)]
struct Requests {
    head: Vec<u8>,
    body_left: usize,
    upgraded: bool,
}

impl Requests {
    /// Reads on; answers whether the connection may go on.
    fn read(&mut self, mut bytes: &[u8], notes: &Notes) -> bool {
        while !bytes.is_empty() && !self.upgraded {
            let skipped = self.body_left.min(bytes.len());
            self.body_left -= skipped;
            bytes = &bytes[skipped..];
            let Some((byte, rest)) = bytes.split_first() else { break };
            self.head.push(*byte);
            bytes = rest;
            self.upgraded |= self.head.len() > HEAD_BYTES;
            if self.head.ends_with(b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.head).into_owned();
                self.head.clear();
                if !self.note(&head, notes) {
                    return false;
                }
            }
        }
        true
    }

    fn note(&mut self, head: &str, notes: &Notes) -> bool {
        let mut words = head.split([' ', '?']);
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        *notes.seen.lock().unwrap().entry(format!("{method} {path}")).or_default() += 1;
        for (name, value) in head.lines().filter_map(|line| line.split_once(':')) {
            match name.to_ascii_lowercase().as_str() {
                "content-length" => self.body_left = value.trim().parse().unwrap_or(0),
                "upgrade" => self.upgraded = true,
                _ => {}
            }
        }
        !notes.refused.lock().unwrap().iter().any(|refused| refused == path)
    }
}
