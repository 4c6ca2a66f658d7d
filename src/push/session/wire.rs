//! The socket with its time limits: a frame that cannot be written in time ends the connection.

use super::super::limits::Limits;
use super::super::protocol::{ErrorCode, ServerFrame, close};
use super::super::socket::{Incoming, Outgoing, Socket};
use super::End;
use crate::core::metric;
use bytes::Bytes;
use metrics::counter;
use std::time::Duration;

/// A connection that was too slow for so many limits of one frame may still hear why.
const TOO_SLOW_LIMITS: u32 = 6;

/// One socket.
pub(super) struct Wire<S> {
    socket: S,
    write_limit: Duration,
    close_limit: Duration,
}

impl<S: Socket> Wire<S> {
    pub fn new(socket: S, limits: &Limits) -> Self {
        let [write_limit, close_limit] = [limits.write_ms, limits.close_ms].map(Duration::from_millis);
        Self { socket, write_limit, close_limit }
    }

    /// The next frame; `None` when the peer is gone. Safe to drop and call again.
    pub async fn receive(&mut self) -> Option<Incoming> {
        self.socket.receive().await
    }

    /// Writes a frame.
    pub async fn send(&mut self, frame: &ServerFrame<'_>) -> Result<(), End> {
        self.send_made(frame.word(), frame.text().into()).await
    }

    /// Writes a frame that was made before, and maybe for others too.
    pub async fn send_made(&mut self, word: &'static str, text: Bytes) -> Result<(), End> {
        match tokio::time::timeout(self.write_limit, self.socket.send(Outgoing::Text(text))).await {
            Ok(Ok(())) => {
                counter!(metric::FRAMES, "frame" => word).increment(1);
                Ok(())
            }
            Ok(Err(_)) => Err(End::Lost),
            Err(_) => Err(End::Close(close::TOO_SLOW, "too slow")),
        }
    }

    /// Tells that a frame was not followed.
    pub async fn refuse(&mut self, code: ErrorCode, topic: Option<&str>) -> Result<(), End> {
        self.send(&ServerFrame::Err { code, retryable: code.retryable(), topic }).await
    }

    /// Closes, and reads on for a moment: a socket that is dropped with unread input is reset, and the close lost with it.
    ///
    /// A peer that was too slow may be asleep, and gets more time to hear why: what waits for it is the rest of one frame.
    pub async fn farewell(&mut self, code: u16, reason: &'static str) {
        let limit = if code == close::TOO_SLOW { self.write_limit * TOO_SLOW_LIMITS } else { self.close_limit };
        let close = async {
            if self.socket.send(Outgoing::Close { code, reason }).await.is_ok() {
                while self.socket.receive().await.is_some_and(|frame| frame != Incoming::Faulty) {}
            }
        };
        // A peer that does not even take the close is dropped.
        let _ = tokio::time::timeout(limit, close).await;
    }
}
