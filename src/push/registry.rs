//! Who is connected and who watches what: from a change to the mailboxes that have to know of it.
//!
//! Holds no task and no history, only the [`Facts`] by which progress is told from a changed state. A change that nobody
//! here watches costs two look-ups.

use super::counts::SharedCounts;
use super::item::{Facts, Item};
use super::limits::Limits;
use super::mailbox::{Delivery, Lane, Mailbox, What};
use super::room::RoomKey;
use super::rooms::Rooms;
use super::silence::Leases;
use crate::core::change::Change;
use crate::core::eta::Activity;
use crate::core::ids::{Head, Revision, TaskId};
use crate::core::task::{RecordRef, Task};
use crate::core::time::{Millis, Mono};
use crate::core::view::activity;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

mod behind;

/// Facts of ended tasks that are kept for an owner, against announcements that come the wrong way round.
const ENDED_FACTS: usize = 1_024;

/// Tenant and user.
pub type OwnerKey = (String, String);

/// What owners have to hear: changes, and the heads that arrive with them.
type ForOwners = HashMap<OwnerKey, (Vec<Delivery>, Vec<Head>)>;

/// What the connections of one owner share.
#[derive(Debug, Default)]
pub struct Owner {
    pub(super) counts: SharedCounts,
}

#[derive(Default)]
struct OwnerEntry {
    shared: Arc<Owner>,
    mailboxes: Vec<Arc<Mailbox>>,
    facts: HashMap<TaskId, Facts>,
}

#[derive(Default)]
struct Watched {
    mailboxes: Vec<Arc<Mailbox>>,
    facts: Option<Facts>,
    /// Whose it is, and the revision that was the first to be shown.
    shown: Option<(OwnerKey, Revision)>,
    /// Up to where its log is known to have grown.
    log: i64,
}

struct Stall {
    at: Millis,
    seen: Seen,
}

/// By what those are found who see a task.
#[derive(Clone, Debug)]
pub struct Seen {
    owner: OwnerKey,
    record: Option<RecordRef>,
}

impl Seen {
    /// Those who see this one.
    #[must_use]
    pub fn of(task: &Task) -> Self {
        Self { owner: (task.tenant.clone(), task.owner.clone()), record: task.record.clone() }
    }
}

struct Connection {
    mailbox: Arc<Mailbox>,
    credential: Option<String>,
}

/// Why a connection is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// The user has too many.
    TooMany,
    /// The node goes.
    Draining,
}

/// Who is connected and who watches what.
#[derive(Default)]
pub struct Registry {
    owners: HashMap<OwnerKey, OwnerEntry>,
    watched: HashMap<TaskId, Watched>,
    connections: HashMap<u64, Connection>,
    /// Who stands in which room.
    pub(super) rooms: Rooms,
    /// When the estimate of a task is withdrawn if nothing moves, and who may be told of it.
    stalls: HashMap<TaskId, Stall>,
    /// The leases of tasks that somebody here sees.
    pub(super) leases: Leases,
    last_id: u64,
    /// The node goes; nobody is taken in any more.
    pub draining: bool,
}

impl Registry {
    /// Takes a connection in; from now on its mailbox gathers.
    pub fn add(
        &mut self,
        owner: &OwnerKey,
        credential: Option<String>,
        limits: &Limits,
    ) -> Result<(u64, Arc<Mailbox>, Arc<Owner>), NotTaken> {
        if self.draining {
            return Err(NotTaken::Draining);
        }
        if self.owners.get(owner).is_some_and(|entry| entry.mailboxes.len() >= limits.user_connections) {
            return Err(NotTaken::TooMany);
        }
        let entry = self.owners.entry(owner.clone()).or_default();
        let mailbox = Arc::new(Mailbox::new(limits));
        entry.mailboxes.push(mailbox.clone());
        self.last_id += 1;
        self.connections.insert(self.last_id, Connection { mailbox: mailbox.clone(), credential });
        Ok((self.last_id, mailbox, entry.shared.clone()))
    }

    /// Forgets a connection.
    pub fn remove(&mut self, id: u64, owner: &OwnerKey) {
        let Some(connection) = self.connections.remove(&id) else { return };
        if let Some(entry) = self.owners.get_mut(owner) {
            entry.mailboxes.retain(|mailbox| !Arc::ptr_eq(mailbox, &connection.mailbox));
            if entry.mailboxes.is_empty() {
                self.owners.remove(owner);
            }
        }
    }

    /// The credential of a connection is another one now.
    pub fn credential(&mut self, id: u64, credential: Option<String>) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.credential = credential;
        }
    }

    /// A connection watches a task.
    pub fn watch(&mut self, task: TaskId, mailbox: &Arc<Mailbox>) {
        let watched = self.watched.entry(task).or_default();
        if !watched.mailboxes.iter().any(|known| Arc::ptr_eq(known, mailbox)) {
            watched.mailboxes.push(mailbox.clone());
        }
    }

    /// A connection does not watch it any more.
    pub fn unwatch(&mut self, task: TaskId, mailbox: &Arc<Mailbox>) {
        if let Some(watched) = self.watched.get_mut(&task) {
            watched.mailboxes.retain(|known| !Arc::ptr_eq(known, mailbox));
            if watched.mailboxes.is_empty() {
                self.watched.remove(&task);
            }
        }
    }

    /// Looks at tasks that a snapshot showed: their estimates may end by time alone. Facts are not learned from them, for
    /// what one connection read has not been announced to the others yet.
    pub fn shown<'a>(&mut self, tasks: impl Iterator<Item = &'a Task>) {
        for task in tasks {
            if let Some(watched) = self.watched.get_mut(&task.id) {
                let owner = || (task.tenant.clone(), task.owner.clone());
                watched.shown.get_or_insert_with(|| (owner(), task.revision));
            }
            self.note_stall(task);
            self.leases.note(task);
        }
    }

    /// Brings what commits changed to all who watch.
    pub fn dispatch(&mut self, changes: &[Change], now: Mono) {
        let mine = self.sort_out(changes, now);
        self.hand_out(mine, now);
    }

    /// Judges changes, brings them to those who watch the tasks, and answers what their owners have to hear.
    fn sort_out(&mut self, changes: &[Change], now: Mono) -> ForOwners {
        let mut mine = ForOwners::new();
        for change in changes {
            let (tenant, owner) = change.owner();
            let (id, key) = (change.task_id(), (tenant.to_owned(), owner.to_owned()));
            let watched = self.owners.contains_key(&key) || self.watched.contains_key(&id);
            if !watched && !self.rooms.concern(change) {
                continue;
            }
            let (what, facts) = match change {
                Change::Task(task) => (What::Is(Item::new((**task).clone())), Facts::of(task)),
                Change::Gone { revision, .. } => (What::Gone(*revision), Facts::gone(*revision)),
            };
            let delivery = |judged| {
                let urgent = judged == Judged::Changed;
                (judged != Judged::Old).then(|| Delivery { id, head: change.head(), what: what.clone(), urgent })
            };
            if let Some(entry) = self.owners.get_mut(&key) {
                let (deliveries, heads) = mine.entry(key.clone()).or_default();
                heads.push(change.head());
                deliveries.extend(delivery(entry.judge(id, facts)));
            }
            if let Some(watched) = self.watched.get_mut(&id)
                && let Some(delivery) = delivery(watched.judge(facts))
            {
                for mailbox in &watched.mailboxes {
                    mailbox.deliver(Lane::Task, std::slice::from_ref(&delivery), &[], now);
                }
            }
            self.rooms.dispatch(change, &what, facts, now);
            match change {
                Change::Task(task) => {
                    self.note_stall(task);
                    self.leases.note(task);
                }
                Change::Gone { .. } => {
                    self.stalls.remove(&id);
                    self.leases.forget(id);
                }
            }
        }
        mine
    }

    fn hand_out(&self, mine: ForOwners, now: Mono) {
        for (key, (deliveries, heads)) in mine {
            let Some(entry) = self.owners.get(&key) else { continue };
            if deliveries.iter().any(|delivery| delivery.urgent) {
                entry.shared.counts.changed();
            }
            for mailbox in &entry.mailboxes {
                mailbox.deliver(Lane::Me, &deliveries, &heads, now);
            }
        }
    }

    /// Marks of an owner changed.
    pub fn recount(&self, owner: &OwnerKey) {
        if let Some(entry) = self.owners.get(owner) {
            entry.shared.counts.changed();
            entry.mailboxes.iter().for_each(|mailbox| mailbox.recount());
        }
    }

    /// A log has grown.
    pub fn log_grew(&self, task: TaskId, newest: i64) {
        if let Some(watched) = self.watched.get(&task) {
            watched.mailboxes.iter().for_each(|mailbox| mailbox.log_grew(task, newest));
        }
    }

    /// Tells everybody whose estimate of a task ends by time alone.
    pub fn tell_stalled(&mut self, now: Millis) {
        let stalled: Vec<(TaskId, Stall)> = self.stalls.extract_if(|_, stall| stall.at < now).collect();
        for (task, stall) in stalled {
            self.tell_time(task, &stall.seen);
        }
    }

    /// Tasks whose leases seem to be over since `grace_ms`, as far as somebody here sees them.
    pub fn due_leases(&mut self, now: Millis, grace_ms: i64) -> Vec<TaskId> {
        let (owners, watched, rooms) = (&self.owners, &self.watched, &self.rooms);
        self.leases.retain(|id, Seen { owner, record }| {
            let keys = RoomKey::of_task((&owner.0, &owner.1), record.as_ref());
            owners.contains_key(owner) || watched.contains_key(id) || rooms.any_of(&keys)
        });
        self.leases.due(now, grace_ms)
    }

    /// Tells everybody who sees a task that time alone has changed what it shows.
    pub fn tell_time(&mut self, task: TaskId, Seen { owner, record }: &Seen) {
        self.rooms.stalled(&RoomKey::of_task((&owner.0, &owner.1), record.as_ref()), task);
        if let Some(entry) = self.owners.get(owner) {
            entry.mailboxes.iter().for_each(|mailbox| mailbox.stalled(Lane::Me, task));
        }
        if let Some(watched) = self.watched.get(&task) {
            watched.mailboxes.iter().for_each(|mailbox| mailbox.stalled(Lane::Task, task));
        }
    }

    /// All mailboxes.
    pub fn mailboxes(&self) -> impl Iterator<Item = &Arc<Mailbox>> {
        self.connections.values().map(|connection| &connection.mailbox)
    }

    /// The mailboxes of connections that came in by a credential.
    pub fn mailboxes_of<'a>(&'a self, credential: &'a str) -> impl Iterator<Item = &'a Arc<Mailbox>> {
        let came_by = move |connection: &&Connection| connection.credential.as_deref() == Some(credential);
        self.connections.values().filter(came_by).map(|connection| &connection.mailbox)
    }

    /// The credentials that connections came in by, each once.
    pub fn credentials(&self) -> Vec<String> {
        let all: BTreeSet<&String> = self.connections.values().filter_map(|c| c.credential.as_ref()).collect();
        all.into_iter().cloned().collect()
    }

    fn note_stall(&mut self, task: &Task) {
        let estimated = activity(task) == Activity::Working && task.progress.total.is_some_and(|total| total > 0);
        match task.estimator.stalls_at().filter(|_| estimated) {
            Some(at) => {
                self.stalls.insert(task.id, Stall { at, seen: Seen::of(task) });
            }
            None => drop(self.stalls.remove(&task.id)),
        }
    }
}

/// What an announced change is, by what was announced before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// This, or something newer, was announced already.
    Old,
    /// Progress alone.
    Progress,
    /// What a person would want to hear of at once.
    Changed,
}

impl Judged {
    /// What facts are to whoever heard of `before`.
    pub(super) fn by(before: Option<&Facts>, facts: &Facts) -> Self {
        match before {
            Some(before) if before.revision >= facts.revision => Self::Old,
            Some(before) if facts.only_progress_since(before) => Self::Progress,
            _ => Self::Changed,
        }
    }
}

impl OwnerEntry {
    fn judge(&mut self, id: TaskId, facts: Facts) -> Judged {
        if self.facts.len() > ENDED_FACTS {
            self.facts.retain(|_, known| !known.ended);
        }
        let judged = Judged::by(self.facts.get(&id), &facts);
        if judged != Judged::Old {
            self.facts.insert(id, facts);
        }
        judged
    }
}

impl Watched {
    fn judge(&mut self, facts: Facts) -> Judged {
        let judged = Judged::by(self.facts.as_ref(), &facts);
        if judged != Judged::Old {
            self.facts = Some(facts);
        }
        judged
    }
}

#[cfg(test)]
pub(in crate::push) mod tests;
