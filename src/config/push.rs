//! `[push]`: what a WebSocket may cost and how long a peer may take. Lengths of time are milliseconds.

use super::reader::Section;

/// `[push]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// How often a quiet connection is pinged.
    pub ping_ms: u64,
    /// How long the answer to a ping may take.
    pub pong_ms: u64,
    /// How long a connection may take to say hello.
    pub hello_ms: u64,
    /// How long one frame may wait to be written.
    pub write_ms: u64,
    /// Frames a second that a client may send.
    pub commands_per_second: u32,
    /// Topics of one connection beside `me`.
    pub topics_per_connection: usize,
    /// Connections of one user on this node.
    pub connections_per_user: usize,
    /// Connections from one address on this node.
    pub connections_per_address: usize,
    /// Connections on this node.
    pub connections_per_node: usize,
    /// Bytes of a frame that a client sends.
    pub frame_bytes: usize,
    /// Bytes that may wait to be written to one connection.
    pub pending_bytes: usize,
}

pub(super) fn push(mut section: Section<'_>) -> Push {
    let whole = |n: i64| usize::try_from(n).expect("the range of a number in a row starts at 0 or above");
    let ms = |n: i64| whole(n) as u64;
    let read = Push {
        ping_ms: ms(section.int("ping_ms")),
        pong_ms: ms(section.int("pong_ms")),
        hello_ms: ms(section.int("hello_ms")),
        write_ms: ms(section.int("write_ms")),
        commands_per_second: u32::try_from(section.int("commands_per_second")).expect("the range of commands is small"),
        topics_per_connection: whole(section.int("topics_per_connection")),
        connections_per_user: whole(section.int("connections_per_user")),
        connections_per_address: whole(section.int("connections_per_address")),
        connections_per_node: whole(section.int("connections_per_node")),
        frame_bytes: whole(section.int("frame_bytes")),
        pending_bytes: whole(section.int("pending_bytes")),
    };
    section.finish();
    read
}
