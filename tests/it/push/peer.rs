//! The client's end of a connection: an in-memory socket of small room, and a reader that waits with a limit.

use serde_json::Value;
use std::time::Duration;
use taskbell::push::{Incoming, Lost, Outgoing, Socket};
use tokio::sync::mpsc;

/// How long a test waits for what has to come.
pub const LIMIT: Duration = Duration::from_secs(20);

/// The server's end: like a real socket it takes a frame only when the one before has left.
pub struct ServerEnd {
    incoming: mpsc::UnboundedReceiver<Incoming>,
    outgoing: mpsc::Sender<Outgoing>,
}

impl Socket for ServerEnd {
    async fn receive(&mut self) -> Option<Incoming> {
        self.incoming.recv().await
    }

    async fn send(&mut self, frame: Outgoing) -> Result<(), Lost> {
        self.outgoing.send(frame).await.map_err(|_| Lost)
    }
}

/// What a client sees of the end.
#[derive(Debug, PartialEq, Eq)]
pub enum Seen {
    Frame(Value),
    Closed(u16),
    Gone,
}

/// The client's end.
pub struct Peer {
    to: mpsc::UnboundedSender<Incoming>,
    from: mpsc::Receiver<Outgoing>,
}

impl Peer {
    pub fn pair() -> (Self, ServerEnd) {
        let (to, incoming) = mpsc::unbounded_channel();
        let (outgoing, from) = mpsc::channel(1);
        (Self { to, from }, ServerEnd { incoming, outgoing })
    }

    pub fn send(&self, frame: Value) {
        self.send_raw(Incoming::Text(frame.to_string()));
    }

    pub fn send_raw(&self, frame: Incoming) {
        // A server that has closed does not listen any more, and the test will see it by what comes.
        let _ = self.to.send(frame);
    }

    pub async fn next(&mut self) -> Seen {
        match tokio::time::timeout(LIMIT, self.from.recv()).await.expect("a frame or the end comes in time") {
            Some(Outgoing::Text(text)) => Seen::Frame(serde_json::from_slice(&text).unwrap()),
            Some(Outgoing::Close { code, .. }) => Seen::Closed(code),
            None => Seen::Gone,
        }
    }

    /// The next frame, which is of this kind.
    pub async fn frame(&mut self, kind: &str) -> Value {
        match self.next().await {
            Seen::Frame(frame) if frame["t"] == kind => frame,
            other => panic!("{kind} was to come, not {other:?}"),
        }
    }

    /// The first frame of which `wanted` is true, pings answered on the way; others are passed over.
    pub async fn until(&mut self, what: &str, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        let search = async {
            loop {
                match self.next().await {
                    Seen::Frame(frame) if wanted(&frame) => return frame,
                    Seen::Frame(frame) if frame["t"] == "ping" => self.send(serde_json::json!({"t": "pong"})),
                    Seen::Frame(_) => {}
                    other => panic!("{what} was to come, not {other:?}"),
                }
            }
        };
        tokio::time::timeout(LIMIT, search).await.unwrap_or_else(|_| panic!("{what} comes in time"))
    }

    /// The code with which the server closes; frames before it are passed over.
    pub async fn close_code(&mut self) -> u16 {
        loop {
            match self.next().await {
                Seen::Frame(_) => {}
                Seen::Closed(code) => return code,
                Seen::Gone => panic!("the connection ended without a close"),
            }
        }
    }

    /// Waits until the server has dropped its end.
    pub async fn gone(&mut self) {
        while self.next().await != Seen::Gone {}
    }
}

/// The item of a task in a frame.
pub fn item<'a>(frame: &'a Value, id: &str) -> Option<&'a Value> {
    frame["items"].as_array()?.iter().find(|item| item["id"] == id)
}
