//! Figures of a real server process: clicks over HTTP, and what an idle socket costs in memory.
//!
//! The clients run in this process on the same machine, so an HTTP figure holds the client's share too.

use crate::across;
use crate::client::Repeater;
use crate::figures::{Figures, Unit};
use crate::support::server::{Server, Spec};
use crate::work::{CLIENTS, open as open_database, open_file};
use crate::{Kind, Scale};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use taskbell::core::principal::{Principal, Role, Scope};
use taskbell::push::protocol::SUBPROTOCOL;
use taskbell::web::auth::new_api_key;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

const SCRIPT: &str = "export default () => ({ hasMore: false });\n";
/// Sockets of one user.
const PER_USER: usize = 10;
/// Sockets that are opened before memory is looked at, so that what is made once is not counted.
const WARM: usize = 100;

type Client = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Takes the figures of this file.
pub async fn measure(figures: &mut Figures, scale: &Scale, kind: Kind) {
    let _ = rlimit::increase_nofile_limit(scale.sockets as u64 * 2 + 1_000);
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("noop.js");
    std::fs::write(&script, SCRIPT).unwrap();
    let action = format!("[[actions]]\nkey = \"noop\"\nhandler = {{ script = {script:?} }}\n");
    if kind == Kind::Postgres && scale.wants("pick-up across two nodes") {
        across::measure(figures, &action, scale.clicks).await;
    }
    // All clients are at one address.
    let config = format!("[push]\nconnections_per_address = {}\n{action}", WARM + scale.sockets + CLIENTS);
    let server = Spec::with_config(&config).start_on(Arc::new(kind.ground().await)).await;
    let keys = keys(&server, CLIENTS.max((WARM + scale.sockets) / PER_USER + 1)).await;
    if scale.wants("submits over HTTP") {
        for _ in 0..scale.rounds {
            let measure = || submits(&server, &keys, scale.submits / 4);
            figures.take("submits over HTTP, 32 at once", Unit::PerSecond, measure).await;
        }
    }
    if scale.wants("memory of an idle socket") {
        let mut sockets = Vec::new();
        open(&server, &keys, WARM, &mut sockets).await;
        let before = resident_kib(&server);
        open(&server, &keys, scale.sockets, &mut sockets).await;
        let each = (resident_kib(&server) - before) / scale.sockets as f64;
        figures.before_each().await;
        figures.tell(&format!("memory of an idle socket, of {}", scale.sockets), Unit::KiB, each);
    }
}

/// Keys of as many users, put into the file beside the server, as the command line does.
async fn keys(server: &Server, users: usize) -> Vec<String> {
    let store = match server.ground().database() {
        None => open_file(server.folder().join("data/taskbell.db")).await,
        Some(_) => open_database(server.ground()).await,
    };
    let now = store.now().await.unwrap();
    let mut keys = Vec::with_capacity(users);
    for user in 0..users {
        let who = Principal {
            tenant: "default".into(),
            user: format!("user-{user}"),
            role: Role::User,
            scopes: Scope::default_for(Role::User),
        };
        let (key, row) = new_api_key(who, None, now).unwrap();
        store.put_api_key(row).await.unwrap();
        keys.push(key);
    }
    keys
}

/// Submits a second by 32 clients, each on a connection of its own that stays open. The tasks start later, so that the
/// figure is of clicks alone.
async fn submits(server: &Server, keys: &[String], count: usize) -> f64 {
    let each = count / CLIENTS;
    let body = json!({"action": "noop", "params": {"customer": 4711}, "runAt": "2040-01-01T00:00:00Z"}).to_string();
    let mut connected = Vec::new();
    for key in &keys[..CLIENTS] {
        connected.push(Repeater::connect(server.port(), "/api/v1/tasks", key, &body).await);
    }
    let began = Instant::now();
    let clients: JoinSet<()> = connected.into_iter().map(|client| client.repeat(each, 201)).collect();
    clients.join_all().await;
    (each * CLIENTS) as f64 / began.elapsed().as_secs_f64()
}

/// Opens sockets, says hello on each and waits for its snapshot.
async fn open(server: &Server, keys: &[String], count: usize, sockets: &mut Vec<Client>) {
    for _ in 0..count {
        let key = &keys[sockets.len() / PER_USER];
        let mut request = format!("ws://127.0.0.1:{}/api/v1/ws", server.port()).into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
        request.headers_mut().insert("sec-websocket-protocol", SUBPROTOCOL.parse().unwrap());
        let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
        socket.send(Message::text(json!({"t": "hello", "lang": "en"}).to_string())).await.unwrap();
        let answered = async {
            while let Some(frame) = socket.next().await {
                if frame.unwrap().to_text().unwrap().contains(r#""t":"snap""#) {
                    return;
                }
            }
            panic!("the server closed the socket");
        };
        tokio::time::timeout(Duration::from_secs(10), answered).await.expect("a snapshot comes");
        sockets.push(socket);
    }
}

/// Resident memory of the server, KiB.
fn resident_kib(server: &Server) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
