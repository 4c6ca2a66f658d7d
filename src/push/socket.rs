//! The little that a session needs of a WebSocket, so that it knows no web framework and a test can be the other end.

use bytes::Bytes;
use std::future::Future;

/// What came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A text frame.
    Text(String),
    /// A binary frame; its content does not matter, the protocol has none.
    Binary,
    /// A ping or pong of the WebSocket itself; the library has answered it.
    Control,
    /// What cannot be a frame: too large, not UTF-8, a broken header. Nothing more comes in after it.
    Faulty,
}

/// What goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// A text frame: its UTF-8, which many connections may share.
    Text(Bytes),
    /// The last frame.
    Close {
        /// One of the contract's close codes.
        code: u16,
        /// A few words for whoever debugs.
        reason: &'static str,
    },
}

/// The connection is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

/// One WebSocket.
pub trait Socket: Send + 'static {
    /// The next frame; `None` when the peer is gone or has closed. Must be safe to drop and call again.
    fn receive(&mut self) -> impl Future<Output = Option<Incoming>> + Send;
    /// Writes a frame and flushes it. Must not queue more than this one. One that is dropped half-way is finished by the next
    /// call, before that call's own frame.
    fn send(&mut self, frame: Outgoing) -> impl Future<Output = Result<(), Lost>> + Send;
}
