//! A WebSocket as the push hub wants it: read and answered by the library, written past its buffers.
//!
//! The library copies each frame into a buffer of the connection that never shrinks again, so that one snapshot would cost
//! its size for as long as the page is open. Here a text goes out as it is, its header before it in the same system call, and
//! may be shared by any number of connections. What the library has to say by itself (a pong, the answer to a close) leaves
//! before it, so that frames never mix. A frame that was given up half-way stays here, and its rest leaves before anything
//! else: the peer that reads on sees whole frames and the close behind them.

use crate::push::{Incoming, Limits, Lost, Outgoing, Socket};
use bytes::buf::Chain;
use bytes::{Buf as _, Bytes};
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, FrameHeader};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

/// What is read at once, and so what an idle connection keeps for it, bytes. Frames of clients are small.
const READ_BYTES: usize = 512;

/// A WebSocket over a connection that was taken over from HTTP.
pub(super) struct Wire {
    stream: WebSocketStream<TcpStream>,
    /// The rest of a frame that was begun.
    rest: Option<Chain<Bytes, Bytes>>,
}

impl Wire {
    /// `None` for what is no connection of our own listener.
    pub async fn over(upgraded: Upgraded, limits: &Limits) -> Option<Self> {
        let parts = upgraded.downcast::<TokioIo<TcpStream>>().ok()?;
        let (io, early) = (parts.io.into_inner(), Vec::from(parts.read_buf));
        // Left to itself the system keeps megabytes for a peer that does not read. Where it cannot be told, it does.
        let _ = set_socket_send_buffer_size(&io, limits.pending_bytes);
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(0)
            .max_message_size(Some(limits.incoming_bytes))
            .max_frame_size(Some(limits.incoming_bytes));
        let stream = WebSocketStream::from_partially_read(io, early, Role::Server, Some(config)).await;
        Some(Self { stream, rest: None })
    }

    /// Writes what was begun.
    async fn write_rest(&mut self) -> Result<(), Lost> {
        if let Some(rest) = &mut self.rest {
            self.stream.get_mut().write_all_buf(rest).await.map_err(|_| Lost)?;
        }
        self.rest = None;
        Ok(())
    }
}

impl Socket for Wire {
    async fn receive(&mut self) -> Option<Incoming> {
        match self.stream.next().await? {
            Ok(Message::Text(text)) => Some(Incoming::Text(text.as_str().to_owned())),
            Ok(Message::Binary(_) | Message::Frame(_)) => Some(Incoming::Binary),
            Ok(Message::Ping(_) | Message::Pong(_)) => Some(Incoming::Control),
            Ok(Message::Close(_)) => None,
            Err(_) => Some(Incoming::Faulty),
        }
    }

    async fn send(&mut self, frame: Outgoing) -> Result<(), Lost> {
        self.write_rest().await?;
        match frame {
            Outgoing::Text(text) => {
                self.stream.flush().await.map_err(|_| Lost)?;
                let header = FrameHeader { opcode: OpCode::Data(Data::Text), ..FrameHeader::default() };
                let mut head = Vec::new();
                header.format(text.len() as u64, &mut head).expect("a vector takes what is written");
                self.rest = Some(Bytes::from(head).chain(text));
                self.write_rest().await
            }
            Outgoing::Close { code, reason } => {
                let close = CloseFrame { code: code.into(), reason: reason.into() };
                self.stream.send(Message::Close(Some(close))).await.map_err(|_| Lost)
            }
        }
    }
}
