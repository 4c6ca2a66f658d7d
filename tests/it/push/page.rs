//! A page over real sockets of real servers: what it knows outlives its connections, and it comes back by the rules of
//! `static/connection.js`.

use super::model::Model;
use crate::support::server::Server;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use taskbell::core::principal::{Principal, Role, Scope};
use taskbell::store::Store;
use taskbell::store::migrate::Mode;
use taskbell::store::sqlite::{SqliteOptions, SqliteStore};
use taskbell::web::auth::new_api_key;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{WebSocketStream, client_async};

/// The first return after a loss waits up to this, ms; later ones double a second up to [`LONGEST_MS`].
const FIRST_MS: u64 = 2_000;
const LONGEST_MS: u64 = 30_000;
/// What waits longer than any test does.
const WELCOME: Duration = Duration::from_secs(60);

/// The database of a running server, opened beside it.
pub async fn store_of(server: &Server) -> Arc<dyn Store> {
    match server.ground().database() {
        Some(_) => server.ground().open().await,
        None => {
            let options = SqliteOptions::new(server.folder().join("data/taskbell.db"));
            Arc::new(SqliteStore::open(options, Mode::Apply, &mut |_, _, _| {}).await.unwrap())
        }
    }
}

/// Keys of as many users of the tenant `default`, put into the database as the command line does.
pub async fn keys(store: &dyn Store, users: usize, role: Role) -> Vec<String> {
    let now = store.now().await.unwrap();
    let mut keys = Vec::with_capacity(users);
    for n in 0..users {
        let who = Principal { tenant: "default".into(), user: name(n), role, scopes: Scope::default_for(role) };
        let (key, row) = new_api_key(who, None, now).unwrap();
        store.put_api_key(row).await.unwrap();
        keys.push(key);
    }
    keys
}

/// The name of a user.
pub fn name(n: usize) -> String {
    format!("user-{n}")
}

/// Resident memory of a server, bytes.
pub fn resident_bytes(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1_024
}

/// What a page is made of.
#[derive(Clone)]
pub struct Plan {
    /// The servers, any of which it may come to, as a balancer would send it.
    pub ports: Vec<u16>,
    /// Its key.
    pub key: String,
    /// How long it looks away after its hello, ms: what comes meanwhile waits.
    pub blink_ms: Range<u64>,
    /// Handshakes at once, so that the test's own machine does not stand still.
    pub gate: Arc<Semaphore>,
}

/// How it went.
#[derive(Default)]
pub struct Story {
    pub model: Model,
    /// When it was welcomed.
    pub entered_at: Vec<Instant>,
    /// How connections ended that it did not cut itself: whether a drain was told, and the code of the close.
    pub ends: Vec<(bool, Option<u16>)>,
    pub connected: bool,
}

impl Story {
    fn take(&mut self, frame: &Value) {
        if frame["t"] == "welcome" {
            self.entered_at.push(Instant::now());
            self.connected = true;
        }
        self.model.take(frame);
    }
}

/// What a test does to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hand {
    Reads,
    /// Takes nothing from its socket.
    Stares,
    /// Cuts its connection, once for each number.
    Cut(u64),
}

/// A page.
pub struct Page {
    pub owner: usize,
    story: Arc<Mutex<Story>>,
    hand: watch::Sender<Hand>,
    living: JoinHandle<()>,
}

impl Page {
    pub fn open(owner: usize, plan: Plan) -> Self {
        let (story, hand) = (Arc::new(Mutex::default()), watch::Sender::new(Hand::Reads));
        let living = tokio::spawn(live(plan, Arc::clone(&story), hand.subscribe()));
        Self { owner, story, hand, living }
    }

    /// Looks at its story.
    pub fn story<T>(&self, look: impl FnOnce(&Story) -> T) -> T {
        assert!(!self.living.is_finished(), "a page broke down");
        look(&self.story.lock().unwrap())
    }

    /// Cuts its connection without a word; it comes back by the rules.
    pub fn cut(&self, n: u64) {
        self.hand.send_replace(Hand::Cut(n));
    }

    /// Reads nothing any more, or again.
    pub fn stare(&self, stares: bool) {
        self.hand.send_replace(if stares { Hand::Stares } else { Hand::Reads });
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.living.abort();
    }
}

async fn live(plan: Plan, story: Arc<Mutex<Story>>, mut hand: watch::Receiver<Hand>) {
    let mut attempt = 0;
    loop {
        let drain = connection(&plan, &story, &mut hand, &mut attempt).await;
        story.lock().unwrap().connected = false;
        let wait_ms = match drain {
            Some(frame) => {
                let [retry, spread] = ["retryMs", "spreadMs"].map(|name| frame[name].as_u64().unwrap());
                retry + rand::random_range(0..=spread)
            }
            None => rand::random_range(0..=if attempt == 0 { FIRST_MS } else { LONGEST_MS.min(1_000 << attempt) }),
        };
        attempt = (attempt + 1).min(16);
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
    }
}

async fn enter(plan: &Plan) -> Option<WebSocketStream<TcpStream>> {
    let _place = plan.gate.acquire().await.unwrap();
    let port = plan.ports[rand::random_range(0..plan.ports.len())];
    let mut request = format!("ws://127.0.0.1:{port}/api/v1/ws").into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {}", plan.key).parse().unwrap());
    request.headers_mut().insert("sec-websocket-protocol", "taskbell.v1".parse().unwrap());
    let stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    client_async(request, stream).await.ok().map(|(socket, _)| socket)
}

/// One connection to its end; the drain that was told on it, if one was.
async fn connection(
    plan: &Plan,
    story: &Mutex<Story>,
    hand: &mut watch::Receiver<Hand>,
    attempt: &mut u32,
) -> Option<Value> {
    let mut socket = enter(plan).await?;
    let have = story.lock().unwrap().model.have();
    socket.send(Message::text(json!({"t": "hello", "have": have}).to_string())).await.ok()?;
    if !plan.blink_ms.is_empty() {
        tokio::time::sleep(Duration::from_millis(rand::random_range(plan.blink_ms.clone()))).await;
    }
    let mut drain = None;
    let code = loop {
        let reads = *hand.borrow_and_update() != Hand::Stares;
        tokio::select! {
            changed = hand.changed() => {
                changed.ok()?;
                if matches!(*hand.borrow(), Hand::Cut(_)) {
                    return None;
                }
            }
            frame = tokio::time::timeout(WELCOME, socket.next()), if reads => {
                match frame.expect("a server says something from time to time") {
                    Some(Ok(Message::Text(text))) => {
                        let frame: Value = serde_json::from_str(&text).unwrap();
                        story.lock().unwrap().take(&frame);
                        match frame["t"].as_str().unwrap() {
                            "welcome" => *attempt = 0,
                            "drain" => drain = Some(frame),
                            // Where it cannot be said any more, the end comes next.
                            "ping" => drop(socket.send(Message::text(r#"{"t":"pong"}"#)).await),
                            _ => {}
                        }
                    }
                    Some(Ok(Message::Close(close))) => break close.map(|close| close.code.into()),
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => break None,
                }
            }
        }
    };
    story.lock().unwrap().ends.push((drain.is_some(), code));
    drain
}
