//! The limits of push in one table. Nothing else in this folder holds a number that an operator might want to know.

/// Limits and rhythms. Lengths of time are milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a connection may take to say hello.
    pub hello_ms: u64,
    /// How often a quiet connection is pinged.
    pub ping_ms: u64,
    /// How long the answer to a ping may take.
    pub pong_ms: u64,
    /// How long one frame may wait to be written.
    pub write_ms: u64,
    /// How long a closed connection may take to answer the close.
    pub close_ms: u64,
    /// The least time between two frames that carry a changed state.
    pub state_ms: u64,
    /// The least time between two frames that carry progress alone.
    pub progress_ms: u64,
    /// The least time between two readings of a log's tail.
    pub log_ms: u64,
    /// Snapshots that are sent again are spread over this time.
    pub jitter_ms: u64,
    /// How long a head may be missing before the bus is taken to have lost it.
    pub gap_ms: u64,
    /// How often the change log is read for those who are connected, where other nodes write to the same database and do not
    /// tell of it.
    pub heads_ms: u64,
    /// The same while they do, for what got lost.
    pub heads_calm_ms: u64,
    /// How often the rooms in which somebody stands are looked at, where other nodes write to the same database; and how often
    /// the counts of `ops` are read while its states change.
    pub room_ms: u64,
    /// Tasks in the snapshot of a room.
    pub room_items: usize,
    /// How long a snapshot serves others who ask for the same head.
    pub snapshot_ms: u64,
    /// How long a rendered item serves others.
    pub render_ms: u64,
    /// How long before its end an identity is asked for a new token.
    pub expiry_warning_ms: u64,
    /// How often it is looked whether keys and sessions of open connections still count: they may be taken back on another
    /// node, or by the command line.
    pub credential_ms: u64,
    /// The pause that clients are asked to make when the node drains, and over how long they are to spread.
    pub drain_retry_ms: u64,
    /// See [`Self::drain_retry_ms`].
    pub drain_spread_ms: u64,
    /// Snapshots read at once on this node.
    pub snapshot_count: usize,
    /// Items in one delta.
    pub frame_items: usize,
    /// Bytes of items or log lines in one frame that may be split.
    pub frame_bytes: usize,
    /// Bytes of items in a snapshot, which is one frame; what does not fit is told by `more`.
    pub snapshot_bytes: usize,
    /// Bytes of a frame that a client sends.
    pub incoming_bytes: usize,
    /// Bytes that may wait to be written to one connection; above all that one frame may have.
    pub pending_bytes: usize,
    /// Frames a second that a client may send, and how many may come in one burst.
    pub commands_per_second: u32,
    /// Faults of a client before it is closed; one is forgiven each second.
    pub fault_count: u32,
    /// Topics of one connection beside `me`.
    pub topic_count: usize,
    /// Connections of one user on this node.
    pub user_connections: usize,
    /// Connections from one address on this node.
    pub address_connections: usize,
    /// Connections on this node.
    pub node_connections: usize,
    /// Changes that may wait in one mailbox.
    pub mailbox_count: usize,
    /// Lines of a log at the start of its tail, and in one reading.
    pub log_lines: usize,
    /// A tail that is further behind than this starts over at the end; the client sees the gap.
    pub log_behind: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            hello_ms: 10_000,
            ping_ms: 25_000,
            pong_ms: 10_000,
            write_ms: 10_000,
            close_ms: 1_000,
            state_ms: 50,
            progress_ms: 250,
            log_ms: 250,
            jitter_ms: 1_000,
            gap_ms: 1_000,
            heads_ms: 500,
            heads_calm_ms: 5_000,
            room_ms: 1_000,
            room_items: 50,
            snapshot_ms: 1_500,
            render_ms: 1_000,
            expiry_warning_ms: 60_000,
            credential_ms: 2_000,
            drain_retry_ms: 500,
            drain_spread_ms: 5_000,
            snapshot_count: 4,
            frame_items: 64,
            frame_bytes: 32 * 1024,
            snapshot_bytes: 192 * 1024,
            incoming_bytes: 32 * 1024,
            pending_bytes: 256 * 1024,
            commands_per_second: 20,
            fault_count: 20,
            topic_count: 32,
            user_connections: 20,
            address_connections: 100,
            node_connections: 5_000,
            mailbox_count: 1_000,
            log_lines: 200,
            log_behind: 2_000,
        }
    }
}
