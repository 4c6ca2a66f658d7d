//! A Redis server that takes everything and delivers nothing: what a subscription is after some failovers.

use crate::push::world::World;
use crate::support::eventually;
use crate::support::ground::Ground;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use taskbell::app::clock::SystemRng;
use taskbell::bus::Between;
use taskbell::bus::redis::{Relay, Server};
use taskbell::push::Limits;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// Six seconds are promised.
const LIMIT: Duration = Duration::from_secs(18);

#[derive(Default)]
struct Shared {
    deaf: AtomicBool,
    subscribers: Mutex<Vec<tokio::sync::mpsc::UnboundedSender<Vec<u8>>>>,
}

/// Knows SUBSCRIBE and PUBLISH, and says OK to everything else.
async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let (read, write) = stream.into_split();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel::<Vec<u8>>();
    tokio::spawn(async move {
        let mut write: OwnedWriteHalf = write;
        while let Some(bytes) = receiver.recv().await {
            if write.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
    let mut read = BufReader::new(read);
    while let Some(words) = command(&mut read).await {
        let answer = match words[0].to_ascii_uppercase().as_slice() {
            b"SUBSCRIBE" => {
                shared.subscribers.lock().unwrap().push(sender.clone());
                [b"*3\r\n".to_vec(), bulk(b"subscribe"), bulk(&words[1]), b":1\r\n".to_vec()].concat()
            }
            b"PUBLISH" => {
                if !shared.deaf.load(Ordering::SeqCst) {
                    let message = [b"*3\r\n".to_vec(), bulk(b"message"), bulk(&words[1]), bulk(&words[2])].concat();
                    shared.subscribers.lock().unwrap().retain(|one| one.send(message.clone()).is_ok());
                }
                b":1\r\n".to_vec()
            }
            _ => b"+OK\r\n".to_vec(),
        };
        let _ = sender.send(answer);
    }
}

fn bulk(text: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", text.len()).into_bytes(), text.to_vec(), b"\r\n".to_vec()].concat()
}

async fn line(read: &mut BufReader<OwnedReadHalf>) -> Option<usize> {
    let mut line = String::new();
    read.read_line(&mut line).await.ok().filter(|count| *count > 0)?;
    line.get(1..)?.trim().parse().ok()
}

async fn command(read: &mut BufReader<OwnedReadHalf>) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    for _ in 0..line(read).await? {
        let mut word = vec![0; line(read).await? + 2];
        read.read_exact(&mut word).await.ok()?;
        word.truncate(word.len() - 2);
        words.push(word);
    }
    Some(words)
}

/// Proves: G7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p10_a_subscription_that_brings_nothing_costs_six_seconds_at_most() {
    let shared = Arc::new(Shared::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let serving = shared.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, serving.clone()));
        }
    });
    // While all is well the change log is not read, so that only the deafness itself can bring what it costs.
    let limits = Limits { heads_ms: 200, heads_calm_ms: 3_600_000, gap_ms: 3_600_000, ..Limits::default() };
    let world = World::on(Ground::postgres().await, limits).await;
    let server = Server::at(&url, None).unwrap();
    let _relay = Relay::start(server, world.store.epoch(), &world.bus, Arc::new(Notify::new()), Arc::new(SystemRng));
    let between = world.bus.between();
    let is = async |wanted: Between| {
        eventually("the relay notices", LIMIT, async || (*between.borrow() == wanted).then_some(())).await;
    };
    is(Between::Up).await;
    let (mut peer, _) = world.watch("alice").await;
    shared.deaf.store(true, Ordering::SeqCst);
    let id = world.submit_silently("alice").await.to_string();
    let shown = |frame: &Value| crate::push::peer::item(frame, &id).is_some();
    let told = tokio::time::timeout(LIMIT, async {
        let (mut late, mut here) = (false, false);
        while !(late && here) {
            let frame = peer.until("what is told", |_| true).await;
            late |= frame["t"] == "status" && frame["live"] == "degraded";
            here |= shown(&frame);
        }
    });
    told.await.expect("the page is told that it is late, and of the task");
    shared.deaf.store(false, Ordering::SeqCst);
    is(Between::Up).await;
    peer.until("that all is well", |frame| frame["t"] == "status" && frame["live"] == "ok").await;
}
