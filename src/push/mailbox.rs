//! What one connection has yet to be told: the latest of each changed task, never a queue.
//!
//! The hub puts in, the session takes out; neither waits for the other. The mailbox also knows up to which head of its
//! owner everything has arrived (see the essay in [`super`]), and asks for a new snapshot where it cannot know.
//!
//! Invariants: at most [`Limits::mailbox_count`] changes; nothing at or below the head of the last snapshot.

use super::item::Item;
use super::limits::Limits;
use super::locked;
use crate::core::ids::{Head, Revision, TaskId};
use crate::core::time::Mono;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// The topic through which a change reaches a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// The owner's own center.
    Me,
    /// A subscribed task.
    Task,
    /// A room, by the number that the connection has there.
    Room(u16),
}

/// What became of a task.
#[derive(Clone, Debug)]
pub enum What {
    /// It is now like this.
    Is(Arc<Item>),
    /// It is deleted; one above its last revision.
    Gone(Revision),
}

/// A change on its way to a connection.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The task.
    pub id: TaskId,
    /// The owner's head with this change.
    pub head: Head,
    /// What became of it.
    pub what: What,
    /// More than progress: a state, a mark, an end.
    pub urgent: bool,
}

impl Delivery {
    fn revision(&self) -> Revision {
        match &self.what {
            What::Is(item) => item.task.revision,
            What::Gone(revision) => *revision,
        }
    }
}

/// Topics whose snapshot is to be sent again.
#[derive(Debug, Default)]
pub struct Stale {
    /// All of them.
    pub all: bool,
    /// The center, because an estimate was withdrawn by time alone.
    pub me_stalled: bool,
    /// The same for subscribed tasks.
    pub tasks_stalled: BTreeSet<TaskId>,
    /// The same for rooms.
    pub rooms_stalled: BTreeSet<u16>,
}

/// What a session does about its mailbox, and by when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// A change of state, a mark, an end, counts.
    pub urgent: bool,
    /// Progress.
    pub progress: bool,
    /// New snapshots of all topics.
    pub stale_at: Option<Mono>,
    /// New snapshots for the sake of estimates that were withdrawn.
    pub stalled: bool,
    /// Log lines may be there.
    pub logs: bool,
    /// When a missing head counts as lost.
    pub gap_at: Option<Mono>,
    /// When the connection has to go because the node does.
    pub leave_at: Option<Mono>,
    /// The node drains and the client was not told yet.
    pub tell_drain: bool,
    /// The identity was taken back.
    pub revoked: bool,
}

/// What was taken out.
#[derive(Debug, Default)]
pub struct Taken {
    /// Ordered by head, then id.
    pub changes: Vec<(Lane, Delivery)>,
    /// Counts changed with them.
    pub counts: bool,
    /// Rooms whose counts changed.
    pub room_counts: BTreeSet<u16>,
    /// The head that the connection knows once all of it was sent.
    pub head: Head,
}

#[derive(Debug, Default)]
struct State {
    changes: HashMap<(Lane, TaskId), Delivery>,
    /// Some of `changes` are urgent.
    urgent: bool,
    /// Some of `changes` may be progress alone.
    progress: bool,
    counts: bool,
    /// The head of the last snapshot that was sent; stays when the rest is distrusted.
    shown: Head,
    /// All heads up to this have arrived; absent while only a snapshot can tell.
    known: Option<Head>,
    /// Heads above it that have arrived.
    ahead: BTreeSet<Head>,
    /// The highest head that is said to exist.
    expected: Head,
    /// The last head before a missing one, and since when that one is missing.
    gap: Option<(Head, Mono)>,
    stale_at: Option<Mono>,
    me_stalled: bool,
    tasks_stalled: BTreeSet<TaskId>,
    rooms_stalled: BTreeSet<u16>,
    room_counts: BTreeSet<u16>,
    logs: HashMap<TaskId, i64>,
    leave_at: Option<Mono>,
    drain_told: bool,
    revoked: bool,
}

/// What one connection has yet to be told.
#[derive(Debug)]
pub struct Mailbox {
    state: Mutex<State>,
    /// Rung whenever something was put in.
    pub wake: Notify,
    most: usize,
    gap_ms: u64,
}

impl Mailbox {
    /// An empty one that knows no head yet.
    pub fn new(limits: &Limits) -> Self {
        let (most, gap_ms) = (limits.mailbox_count, limits.gap_ms);
        Self { state: Mutex::default(), wake: Notify::new(), most, gap_ms }
    }

    /// Puts in what one commit changed; `heads` of the owner have arrived with it.
    pub fn deliver(&self, lane: Lane, changes: &[Delivery], heads: &[Head], now: Mono) {
        let mut state = locked(&self.state);
        for change in changes {
            if lane == Lane::Me && change.head <= state.known.unwrap_or_default().max(state.shown) {
                continue;
            }
            let slot = state.changes.entry((lane, change.id)).or_insert_with(|| change.clone());
            if slot.revision() < change.revision() {
                *slot = Delivery { urgent: slot.urgent || change.urgent, ..change.clone() };
            }
            state.urgent |= change.urgent;
            state.progress |= !change.urgent;
            state.counts |= lane == Lane::Me && change.urgent;
        }
        for head in heads {
            state.arrived(*head, now);
        }
        if state.changes.len() > self.most || state.ahead.len() > self.most {
            state.changes.clear();
            state.ahead.clear();
            state.distrust(now);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// The owner's counts changed.
    pub fn recount(&self) {
        locked(&self.state).counts = true;
        self.wake.notify_one();
    }

    /// A head is said to exist; when it does not arrive soon, the bus has lost something.
    pub fn expect(&self, head: Head, now: Mono) {
        let mut state = locked(&self.state);
        state.expected = state.expected.max(head);
        state.look_for_gap(now);
        if state.gap.is_some() {
            self.wake.notify_one();
        }
    }

    /// Everything the connection knows may be old: it gets new snapshots at `at`.
    pub fn stale_all(&self, at: Mono) {
        locked(&self.state).distrust(at);
        self.wake.notify_one();
    }

    /// An estimate was withdrawn by time alone.
    pub fn stalled(&self, lane: Lane, task: TaskId) {
        let mut state = locked(&self.state);
        match lane {
            Lane::Me => state.me_stalled = true,
            Lane::Task => drop(state.tasks_stalled.insert(task)),
            Lane::Room(slot) => drop(state.rooms_stalled.insert(slot)),
        }
        drop(state);
        self.wake.notify_one();
    }

    /// The counts of a room changed.
    pub fn room_counted(&self, slot: u16) {
        let mut state = locked(&self.state);
        state.room_counts.insert(slot);
        state.reflag();
        drop(state);
        self.wake.notify_one();
    }

    /// A subscribed task's log has grown.
    pub fn log_grew(&self, task: TaskId, newest: i64) {
        let mut state = locked(&self.state);
        let seen = state.logs.entry(task).or_insert(newest);
        *seen = newest.max(*seen);
        drop(state);
        self.wake.notify_one();
    }

    /// The node drains; this connection is to go at `at`.
    pub fn leave(&self, at: Mono) {
        locked(&self.state).leave_at.get_or_insert(at);
        self.wake.notify_one();
    }

    /// The identity was taken back.
    pub fn revoke(&self) {
        locked(&self.state).revoked = true;
        self.wake.notify_one();
    }

    /// What there is to do.
    pub fn pending(&self) -> Pending {
        let state = locked(&self.state);
        Pending {
            urgent: state.counts || state.urgent,
            progress: state.progress,
            stale_at: state.stale_at,
            stalled: state.me_stalled || !state.tasks_stalled.is_empty() || !state.rooms_stalled.is_empty(),
            logs: !state.logs.is_empty(),
            gap_at: state.gap.map(|(_, since)| since + self.gap_ms),
            leave_at: state.leave_at,
            tell_drain: state.leave_at.is_some() && !state.drain_told,
            revoked: state.revoked,
        }
    }

    /// Takes changes out; progress stays in unless it is wanted.
    pub fn take(&self, progress: bool) -> Taken {
        let mut state = locked(&self.state);
        let mut changes: Vec<(Lane, Delivery)> =
            state.changes.extract_if(|_, change| progress || change.urgent).map(|((lane, _), c)| (lane, c)).collect();
        // An idle mailbox keeps no room.
        state.changes.shrink_to_fit();
        let room_counts = if progress { std::mem::take(&mut state.room_counts) } else { BTreeSet::new() };
        state.reflag();
        changes.sort_by_key(|(lane, change)| (change.head, change.id, *lane));
        let counts = std::mem::take(&mut state.counts);
        Taken { changes, counts, room_counts, head: state.told() }
    }

    /// Up to which head all has arrived; absent where that is not known.
    pub fn known(&self) -> Option<Head> {
        locked(&self.state).known
    }

    /// A snapshot of the center was sent: what it holds is told.
    pub fn snapshot_sent(&self, head: Head, now: Mono) {
        let mut state = locked(&self.state);
        state.changes.retain(|(lane, _), change| *lane != Lane::Me || change.head > head);
        state.counts = state.changes.iter().any(|((lane, _), change)| *lane == Lane::Me && change.urgent);
        state.reflag();
        (state.shown, state.known) = (head, Some(head));
        state.ahead = state.ahead.split_off(&head.next());
        state.close_up();
        state.look_for_gap(now);
    }

    /// A snapshot of a subscribed task was sent.
    pub fn task_sent(&self, task: TaskId, revision: Revision) {
        let key = (Lane::Task, task);
        let mut state = locked(&self.state);
        if state.changes.get(&key).is_some_and(|change| change.revision() <= revision) {
            state.changes.remove(&key);
            state.reflag();
        }
    }

    /// A snapshot of a room was sent, with these tasks in it.
    pub fn room_sent(&self, slot: u16, shown: &[(TaskId, Revision)]) {
        let mut state = locked(&self.state);
        for (task, revision) in shown {
            let key = (Lane::Room(slot), *task);
            if state.changes.get(&key).is_some_and(|change| change.revision() <= *revision) {
                state.changes.remove(&key);
            }
        }
        state.room_counts.remove(&slot);
        state.reflag();
    }

    /// A room is not watched any more.
    pub fn forget_room(&self, slot: u16) {
        let mut state = locked(&self.state);
        state.changes.retain(|(lane, _), _| *lane != Lane::Room(slot));
        state.room_counts.remove(&slot);
        state.rooms_stalled.remove(&slot);
        state.reflag();
    }

    /// A task is not watched any more.
    pub fn forget(&self, task: TaskId) {
        let mut state = locked(&self.state);
        state.changes.remove(&(Lane::Task, task));
        state.reflag();
        state.tasks_stalled.remove(&task);
        state.logs.remove(&task);
    }

    /// Takes out what is stale by now; what only time has changed stays in unless it is `seen`.
    pub fn take_stale(&self, now: Mono, seen: bool) -> Stale {
        let mut state = locked(&self.state);
        let all = state.stale_at.take_if(|at| *at <= now).is_some();
        if !seen {
            return Stale { all, ..Stale::default() };
        }
        let me_stalled = std::mem::take(&mut state.me_stalled);
        let tasks_stalled = std::mem::take(&mut state.tasks_stalled);
        Stale { all, me_stalled, tasks_stalled, rooms_stalled: std::mem::take(&mut state.rooms_stalled) }
    }

    /// Takes out which logs have grown, and up to where.
    pub fn take_logs(&self) -> HashMap<TaskId, i64> {
        std::mem::take(&mut locked(&self.state).logs)
    }

    /// The client was told that the node drains.
    pub fn drain_told(&self) {
        locked(&self.state).drain_told = true;
    }

    /// The missing head is given up: the bus has lost it, and what else it has lost nobody knows.
    pub fn give_up_gap(&self, at: Mono) {
        locked(&self.state).distrust(at);
    }
}

impl State {
    fn arrived(&mut self, head: Head, now: Mono) {
        if self.known.is_none_or(|known| head > known) {
            self.ahead.insert(head);
            self.close_up();
        }
        self.look_for_gap(now);
    }

    /// Takes into `known` what follows it without a gap.
    fn close_up(&mut self) {
        let Some(mut known) = self.known else { return };
        while self.ahead.first() == Some(&known.next()) {
            known = known.next();
            self.ahead.pop_first();
        }
        self.known = Some(known);
    }

    fn look_for_gap(&mut self, now: Mono) {
        self.gap = match self.known {
            Some(known) if !self.ahead.is_empty() || self.expected > known => match self.gap {
                Some((before, since)) if before == known => Some((before, since)),
                _ => Some((known, now)),
            },
            _ => None,
        };
    }

    /// Only a new snapshot can tell what the connection knows.
    fn distrust(&mut self, at: Mono) {
        self.stale_at.get_or_insert(at);
        self.known = None;
        self.gap = None;
        self.reflag();
    }

    fn reflag(&mut self) {
        self.urgent = self.changes.values().any(|change| change.urgent);
        let waits = self.changes.values().any(|change| !change.urgent);
        self.progress = waits || !self.room_counts.is_empty();
    }

    /// The head that the connection knows when all that was taken has been sent.
    fn told(&self) -> Head {
        let held = self.changes.iter().filter(|((lane, _), _)| *lane == Lane::Me).map(|(_, change)| change.head).min();
        let known = self.known.unwrap_or_default();
        held.map_or(known, |held| known.min(Head(held.0 - 1)))
    }
}

#[cfg(test)]
mod tests;
