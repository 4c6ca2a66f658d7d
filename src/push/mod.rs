//! Push: what changed reaches whoever watches, over one WebSocket a page.
//!
//! # What is promised
//! State is small, absolute and latest-wins, and the database is the truth. A connection gets a consistent snapshot and
//! from then on what is newer; a change may be skipped when a later one of the same task is there already, and the last one
//! is never skipped. Only the log tail has a cursor, and it is read from the log store, not kept here.
//!
//! # The order that makes it true
//! 1. The connection is registered with the [`hub::Hub`], so that its [`mailbox`] gathers every change from now on.
//! 2. The owner's head and, unless the client has it already, the notification center are read in one consistent look.
//! 3. The snapshot goes out. What the mailbox gathered at or below its head is in it and is dropped; the rest follows.
//!
//! Were the read first and the registration second, a change between the two would be lost, and the page would stay old
//! until the next one.
//!
//! # What a connection has been told
//! Heads of an owner grow by one with each commit. A connection may only be told a head when all up to it was sent: a page
//! that comes back with that head is answered `same`. So the head of a delta stays below what is held back (progress for a
//! hidden page) and below a head that did not arrive yet (two commits may be announced the wrong way round). A head that
//! stays missing for a second means that the bus lost something, and the snapshot is sent again.
//!
//! # Rooms
//! `record:TYPE:ID` and `ops` show tasks of many owners, and so have no head. A [`room`] remembers which revision of a task was
//! announced in it; whatever a look into the database finds above that is told to all who stand there, each once. What a look
//! finds is what the bus lost, or what another node has committed. The rights of a caller are part of the room's key.
//!
//! # What it may cost
//! An idle connection holds a small future, an empty mailbox and no channel. A busy one holds at most one change a task,
//! shared with all other connections; a mailbox that would grow beyond its limit is emptied and the snapshot sent again. A
//! frame that cannot be written in time ends the connection, and none is larger than what may wait. So memory is bounded by
//! construction. How many come in is counted at the `door`, by node and by address, before anything is said.
//!
//! Must never name a database driver or a route, never count up or down by itself (counts are read), and never tell a
//! viewer of a task that it may not see.

mod counts;
mod door;
mod elsewhere;
mod frames;
pub mod hub;
pub mod item;
pub mod limits;
pub mod mailbox;
pub mod protocol;
pub mod registry;
pub mod room;
pub mod rooms;
mod session;
mod silence;
pub mod snapshot;
pub mod socket;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use hub::{Hub, HubParts, Ways};
pub use limits::Limits;
pub use session::{Authenticate, Identity, Opening};
pub use socket::{Incoming, Lost, Outgoing, Socket};

/// Takes a lock. What the locks of this folder guard is whole after each statement, so a panic elsewhere spoils nothing.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
