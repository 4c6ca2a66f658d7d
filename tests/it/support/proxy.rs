//! A small TCP proxy before a server of any protocol: it can be cut, reset, stalled, lossy, slow and mended, and counts requests
//! by path where they are HTTP.
//!
//! What can be wrong with the line is a [`Line`]. Bytes that are lost are gone for good: a connection that lost some passes
//! nothing any more in that direction, even when the line is mended, and neither side is told (half-open). Requests are read
//! from the bytes that pass, up to an upgrade or to what is no request at all; the bytes themselves are not touched.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// More than this without an end is no head of a request.
const HEAD_BYTES: usize = 64 * 1024;

/// What becomes of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// They pass.
    Whole,
    /// They wait in both directions, and nobody is told.
    Stalled,
    /// Open connections end at once, and new ones are closed as soon as they come.
    Cut,
    /// The same, with a reset and not with an end.
    Reset,
    /// They are lost in both directions.
    Lost,
    /// Those to the server are lost.
    RequestsLost,
    /// Those to the client are lost.
    RepliesLost,
    /// Those to the server pass, and the first that would come back ends the connection.
    RepliesCut,
}

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    ToServer,
    ToClient,
}

impl Line {
    fn is_cut(self) -> bool {
        matches!(self, Self::Cut | Self::Reset)
    }

    fn loses(self, way: Way) -> bool {
        self == Self::Lost || self == if way == Way::ToServer { Self::RequestsLost } else { Self::RepliesLost }
    }
}

/// A running proxy.
pub struct Proxy {
    port: u16,
    server: Arc<AtomicU16>,
    line: watch::Sender<Line>,
    delay_ms: Arc<AtomicU64>,
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
        let delay_ms = Arc::<AtomicU64>::default();
        let accepting = tokio::spawn(accept(listener, server.clone(), line.clone(), delay_ms.clone(), notes));
        Self { port, server, line, delay_ms, seen, refused, accepting }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Makes the line so.
    pub fn becomes(&self, line: Line) {
        self.line.send_replace(line);
    }

    /// Cuts every connection and lets no new one through.
    pub fn cut(&self) {
        self.becomes(Line::Cut);
    }

    /// Lets bytes take so much longer, in each direction.
    pub fn delay(&self, by: Duration) {
        self.delay_ms.store(u64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }

    /// Leads new connections to the server at another port; those that are open stay where they are.
    pub fn lead_to(&self, server: u16) {
        self.server.store(server, Ordering::SeqCst);
    }

    /// Holds back whatever comes, without a word to anybody.
    pub fn stall(&self) {
        self.becomes(Line::Stalled);
    }

    /// Lets connections through again.
    pub fn mend(&self) {
        self.becomes(Line::Whole);
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

async fn accept(
    listener: TcpListener,
    server: Arc<AtomicU16>,
    line: watch::Sender<Line>,
    delay_ms: Arc<AtomicU64>,
    notes: Notes,
) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let (mut cut, notes, lines) = (line.subscribe(), notes.clone(), [line.subscribe(), line.subscribe()]);
        let now = *cut.borrow();
        if now.is_cut() {
            if now == Line::Reset {
                client.set_zero_linger().unwrap();
            }
            continue;
        }
        let (server, delay_ms) = (server.load(Ordering::SeqCst), delay_ms.clone());
        tokio::spawn(async move {
            let Ok(upstream) = TcpStream::connect(("127.0.0.1", server)).await else { return };
            let (mut client, mut upstream) = (client, upstream);
            {
                let ((from_client, to_client), (from_server, to_server)) = (client.split(), upstream.split());
                let [to_the_server, to_the_client] = lines.map(|line| Wire { line, delay_ms: delay_ms.clone() });
                tokio::select! {
                    () = to_the_server.copy(from_client, to_server, Way::ToServer, |b, requests| requests.read(b, &notes)) => {}
                    () = to_the_client.copy(from_server, to_client, Way::ToClient, |_, _| true) => {}
                    _ = cut.wait_for(|line| line.is_cut()) => {}
                }
            }
            if *cut.borrow() == Line::Reset {
                let _ = (client.set_zero_linger(), upstream.set_zero_linger());
            }
        });
    }
}

/// One direction of one connection.
struct Wire {
    line: watch::Receiver<Line>,
    delay_ms: Arc<AtomicU64>,
}

impl Wire {
    async fn copy(
        mut self,
        mut from: ReadHalf<'_>,
        mut to: WriteHalf<'_>,
        way: Way,
        look: impl Fn(&[u8], &mut Requests) -> bool,
    ) {
        let (mut requests, mut lost) = (Requests::default(), false);
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            if !look(&buffer[..count], &mut requests) {
                return;
            }
            let delay = Duration::from_millis(self.delay_ms.load(Ordering::SeqCst));
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            let Ok(line) = self.line.wait_for(|line| *line != Line::Stalled).await.map(|line| *line) else { return };
            if line == Line::RepliesCut && way == Way::ToClient {
                return;
            }
            lost |= line.loses(way);
            if !lost && to.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
        if lost {
            // The end is lost as well.
            std::future::pending().await
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
