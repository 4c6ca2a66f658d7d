//! The clients: the same for both servers, as cheap as a client can be, so that they take as little of the machine as they
//! can. Each reads frames from its socket, looks at their first bytes, and takes the instant of a delivery from its text.

use crate::child::{Door, now_us};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

/// Unfinished tasks in the center of each user.
pub const CENTER_TASKS: usize = 10;
/// Bytes of a delivery and of a snapshot of the reference: as many as taskbell's have here.
pub const NEWS: usize = 1_190;
/// See [`NEWS`].
pub const SNAPSHOT: usize = 6_900;
/// Sockets that share a source address, so that ports do not run out.
const PER_ADDRESS: usize = 5_000;
/// Connections that are opened at once where nothing is measured.
const AT_ONCE: usize = 64;
/// Rounds that may be under way.
const ROUNDS: u64 = 2;
const LIMIT: Duration = Duration::from_secs(60);

/// Which sockets: how many, how many of one user, how many in a room.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    pub sockets: usize,
    pub per_user: usize,
    pub per_room: usize,
    /// Bytes of the first frame of the reference. Its library keeps a buffer of the largest frame for each socket.
    pub first: usize,
}

impl Crowd {
    pub fn users(self) -> usize {
        self.sockets.div_ceil(self.per_user)
    }

    pub fn rooms(self) -> usize {
        self.sockets.div_ceil(self.per_room)
    }
}

#[derive(Default)]
struct Shared {
    ready: AtomicUsize,
    deliveries: AtomicU64,
    bytes: AtomicU64,
    latencies_us: Mutex<Vec<i64>>,
    /// Rounds that were begun; when the last ones were, and how many sockets have not heard of them.
    begun: AtomicU64,
    begun_at: [AtomicI64; 4],
    left: [AtomicUsize; 4],
    changed: Notify,
}

/// Open sockets.
pub struct Swarm {
    shared: Arc<Shared>,
    readers: JoinSet<()>,
    pub crowd: Crowd,
}

impl Swarm {
    /// Opens sockets, a few at a time, or all at once; returns when each has its snapshot, with the time that it took.
    pub async fn open(door: &Door, crowd: Crowd, at_once: bool) -> (Self, Duration) {
        let shared = Arc::new(Shared::default());
        let mut readers = JoinSet::new();
        let gate = Arc::new(Semaphore::new(if at_once { crowd.sockets } else { AT_ONCE }));
        let began = Instant::now();
        for n in 0..crowd.sockets {
            let (shared, gate, way) = (shared.clone(), gate.clone(), Way::of(door, crowd, n));
            readers.spawn(async move {
                let place = gate.acquire_owned().await.unwrap();
                let mut client = way.enter().await;
                drop(place);
                shared.ready.fetch_add(1, SeqCst);
                shared.changed.notify_one();
                client.read(&shared).await;
            });
        }
        let swarm = Self { shared, readers, crowd };
        swarm.until("all have their snapshots", |s| s.ready.load(SeqCst) == crowd.sockets).await;
        (swarm, began.elapsed())
    }

    async fn until(&self, what: &str, so: impl Fn(&Shared) -> bool) {
        let wait = async {
            while !so(&self.shared) {
                self.shared.changed.notified().await;
            }
        };
        tokio::time::timeout(LIMIT, wait).await.unwrap_or_else(|_| panic!("{what}: not so in time"));
        assert_eq!(self.readers.len(), self.crowd.sockets, "nobody may be lost");
    }

    /// Takes one more round under way when the one before the last has reached everybody.
    pub async fn next_round(&self) {
        let s = &self.shared;
        let next = s.begun.load(SeqCst);
        let oldest = next.saturating_sub(ROUNDS - 1);
        self.until("a round reaches everybody", |s| {
            (oldest.saturating_sub(1)..oldest).all(|r| s.left[slot(r)].load(SeqCst) == 0)
        })
        .await;
        s.begun_at[slot(next)].store(now_us(), SeqCst);
        s.left[slot(next)].store(self.crowd.sockets, SeqCst);
        s.begun.store(next + 1, SeqCst);
    }

    /// Deliveries so far.
    pub fn deliveries(&self) -> u64 {
        self.shared.deliveries.load(SeqCst)
    }

    /// Bytes of a delivery on average.
    pub fn bytes_each(&self) -> f64 {
        self.shared.bytes.load(SeqCst) as f64 / self.deliveries().max(1) as f64
    }

    /// Waits for so many deliveries in all, or for a moment without any.
    pub async fn delivered(&self, count: u64) {
        self.until("what was said arrives", |s| s.deliveries.load(SeqCst) >= count).await;
    }

    /// How long deliveries took, microseconds.
    pub fn take_latencies(&self) -> Vec<i64> {
        std::mem::take(&mut self.shared.latencies_us.lock().unwrap())
    }
}

fn slot(round: u64) -> usize {
    (round % 4) as usize
}

/// How one client comes in.
struct Way {
    from: SocketAddr,
    to: SocketAddr,
    request: String,
    /// What it says, and after each of it one snapshot comes.
    says: Vec<String>,
}

impl Way {
    fn of(door: &Door, crowd: Crowd, n: usize) -> Self {
        let key =
            door.keys.get(n / crowd.per_user).map_or(String::new(), |key| format!("Authorization: Bearer {key}\r\n"));
        let room = n / crowd.per_room;
        let says = match door.topics.get(room) {
            _ if door.keys.is_empty() => vec![format!("{room} {}", crowd.first)],
            None => vec![r#"{"t":"hello","lang":"en"}"#.to_owned()],
            Some(topic) => vec![
                r#"{"t":"hello","lang":"en"}"#.to_owned(),
                format!(r#"{{"t":"sub","topic":"{topic}","log":false}}"#),
            ],
        };
        let request = format!(
            "GET /api/v1/ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             {}{key}\r\n",
            if door.keys.is_empty() { "" } else { "Sec-WebSocket-Protocol: taskbell.v1\r\n" }
        );
        let address = Ipv4Addr::new(127, 0, 0, 2 + (n / PER_ADDRESS) as u8);
        Self { from: (address, 0).into(), to: (Ipv4Addr::LOCALHOST, door.port).into(), request, says }
    }

    async fn enter(self) -> Client {
        let socket = TcpSocket::new_v4().unwrap();
        // Ports of the sockets that an earlier round closed wait for a minute; the next server listens on another port.
        socket.set_reuseaddr(true).unwrap();
        socket.bind(self.from).unwrap();
        let mut stream = socket.connect(self.to).await.unwrap();
        stream.set_nodelay(true).unwrap();
        stream.write_all(self.request.as_bytes()).await.unwrap();
        let mut client = Client { stream, bytes: Vec::new(), read: 0 };
        client.skip_head().await;
        for text in self.says {
            client.say(&text).await;
            while !client.frame().await.expect("the server answers").starts_with(r#"{"t":"snap""#) {}
        }
        client
    }
}

/// One socket.
struct Client {
    stream: TcpStream,
    bytes: Vec<u8>,
    /// How many of them were looked at.
    read: usize,
}

impl Client {
    async fn more(&mut self) -> Option<()> {
        self.bytes.drain(..std::mem::take(&mut self.read));
        if self.bytes.is_empty() {
            self.bytes.shrink_to(2_048);
        }
        self.stream.read_buf(&mut self.bytes).await.ok().filter(|count| *count > 0).map(drop)
    }

    async fn skip_head(&mut self) {
        loop {
            if let Some(end) = self.bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                assert!(self.bytes.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&self.bytes));
                self.read = end + 4;
                return;
            }
            self.more().await.expect("the server answers");
        }
    }

    /// Sends a short text; a mask of zeros is a mask.
    async fn say(&mut self, text: &str) {
        let mut frame = vec![0x81, 0x80 | text.len() as u8, 0, 0, 0, 0];
        assert!(text.len() < 126);
        frame.extend(text.as_bytes());
        self.stream.write_all(&frame).await.unwrap();
    }

    /// The next frame of the server, which neither masks nor splits it.
    async fn frame(&mut self) -> Option<&str> {
        let (begin, end) = loop {
            let rest = &self.bytes[self.read..];
            let (head, len) = match rest {
                [_, len @ 0..=125, ..] => (2, usize::from(*len)),
                [_, 126, a, b, ..] => (4, usize::from(u16::from_be_bytes([*a, *b]))),
                [_, 127, long @ ..] if long.len() >= 8 => {
                    (10, u64::from_be_bytes(long[..8].try_into().unwrap()) as usize)
                }
                _ => (0, usize::MAX),
            };
            if rest.len() >= len.saturating_add(head) {
                break (self.read + head, self.read + head + len);
            }
            self.more().await?;
        };
        self.read = end;
        Some(std::str::from_utf8(&self.bytes[begin..end]).expect("only texts come"))
    }

    async fn read(&mut self, shared: &Shared) {
        let mut next_round = 0;
        while let Some(frame) = self.frame().await {
            if frame.starts_with(r#"{"t":"ping""#) {
                self.say(r#"{"t":"pong"}"#).await;
                continue;
            }
            let Some(at) = frame.find(r#""current":"#) else { continue };
            if !frame.starts_with(r#"{"t":"delta""#) {
                continue;
            }
            let digits = frame[at + 10..].bytes().take_while(u8::is_ascii_digit);
            let said_at = digits.fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
            let bytes = frame.len() as u64;
            shared.bytes.fetch_add(bytes, SeqCst);
            shared.deliveries.fetch_add(1, SeqCst);
            shared.latencies_us.lock().unwrap().push(now_us() - said_at);
            while next_round < shared.begun.load(SeqCst) && shared.begun_at[slot(next_round)].load(SeqCst) <= said_at {
                if shared.left[slot(next_round)].fetch_sub(1, SeqCst) == 1 {
                    shared.changed.notify_one();
                }
                next_round += 1;
            }
            if shared.begun.load(SeqCst) == 0 {
                shared.changed.notify_one();
            }
        }
    }
}
