//! Who stands in which room, and what was announced there: brings changes, and what a look into the database finds to be
//! newer, to all who stand in it, each once.
//!
//! A look is healing and nothing else: what it finds was announced before, unless the bus lost it or another node has
//! committed it. So a look that finds nothing new costs the connections nothing.

use super::item::{Facts, Item};
use super::mailbox::{Delivery, Lane, Mailbox, What};
use super::protocol::CountsView;
use super::registry::Judged;
use super::room::{Room, RoomKey, RoomView};
use crate::core::change::Change;
use crate::core::ids::{Head, TaskId};
use crate::core::time::Mono;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Tasks of a room whose announcements are remembered; above it the ended ones are forgotten, and if that does not help all.
const KNOWN: usize = 4_096;
/// Tasks that one look asks for by id, because its page does not show them.
const ASKED: usize = 200;

#[derive(Debug)]
struct Known {
    facts: Facts,
    /// When it was last heard of or asked for.
    at: Mono,
}

#[derive(Debug)]
struct Entry {
    room: Arc<Room>,
    members: Vec<(Arc<Mailbox>, u16)>,
    known: HashMap<TaskId, Known>,
    /// States have changed since the counts were read.
    uncounted: bool,
    /// The counts that all in the room have been told, or will be.
    told: Option<Arc<CountsView>>,
}

/// The rooms of a node.
#[derive(Debug, Default)]
pub struct Rooms {
    entries: HashMap<RoomKey, Entry>,
}

impl Rooms {
    /// A connection comes into a room, under a number of its own.
    pub(super) fn enter(&mut self, key: &RoomKey, mailbox: &Arc<Mailbox>, slot: u16) -> Arc<Room> {
        let entry = self.entries.entry(key.clone()).or_insert_with(|| Entry {
            room: Arc::new(Room::new(key.clone())),
            members: Vec::new(),
            known: HashMap::new(),
            uncounted: false,
            told: None,
        });
        entry.members.push((mailbox.clone(), slot));
        entry.room.clone()
    }

    /// And leaves it.
    pub(super) fn exit(&mut self, key: &RoomKey, mailbox: &Arc<Mailbox>, slot: u16) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.members.retain(|(known, at)| !(Arc::ptr_eq(known, mailbox) && *at == slot));
            if entry.members.is_empty() {
                self.entries.remove(key);
            }
        }
    }

    /// Whether a change concerns any room.
    pub(super) fn concern(&self, change: &Change) -> bool {
        !self.entries.is_empty() && RoomKey::of_change(change).iter().any(|key| self.entries.contains_key(key))
    }

    /// Whether somebody stands in one of these.
    pub(super) fn any_of(&self, keys: &[RoomKey]) -> bool {
        keys.iter().any(|key| self.entries.contains_key(key))
    }

    /// Brings a change into the rooms it belongs to.
    pub(super) fn dispatch(&mut self, change: &Change, what: &What, facts: Facts, now: Mono) {
        if self.entries.is_empty() {
            return;
        }
        for key in RoomKey::of_change(change) {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.announce(change.task_id(), change.head(), what, facts, now);
            }
        }
    }

    /// The estimate of a task has ended by time alone.
    pub(super) fn stalled(&self, keys: &[RoomKey], task: TaskId) {
        for entry in keys.iter().filter_map(|key| self.entries.get(key)) {
            entry.members.iter().for_each(|(mailbox, slot)| mailbox.stalled(Lane::Room(*slot), task));
        }
    }

    /// All rooms.
    pub(super) fn all(&self) -> Vec<Arc<Room>> {
        self.entries.values().map(|entry| entry.room.clone()).collect()
    }

    /// Rooms whose counts are old by now.
    pub(super) fn uncounted(&self) -> Vec<Arc<Room>> {
        let old = self.entries.values().filter(|entry| entry.uncounted);
        old.map(|entry| entry.room.clone()).collect()
    }

    /// The counts of a room are about to be read: what changes from now on makes them old again.
    pub(super) fn counting(&mut self, key: &RoomKey) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.uncounted = false;
        }
    }

    /// They were read: who stands in the room hears of them if they are others than before.
    pub(super) fn counted(&mut self, key: &RoomKey, counts: &Arc<CountsView>) {
        if let Some(entry) = self.entries.get_mut(key)
            && entry.told.as_ref() != Some(counts)
        {
            entry.told = Some(counts.clone());
            entry.members.iter().for_each(|(mailbox, slot)| mailbox.room_counted(*slot));
        }
    }

    /// Brings what a reading shows to all in the room who have not heard of it.
    pub(super) fn reconcile(&mut self, key: &RoomKey, view: &RoomView, now: Mono) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.heard_of(&view.items, now);
        }
        if let Some(counts) = &view.counts {
            self.counted(key, counts);
        }
    }

    /// Tasks that were announced before a reading began and that it does not show: ended, deleted, or further down.
    pub(super) fn unseen_in(&mut self, key: &RoomKey, view: &RoomView, now: Mono) -> Vec<TaskId> {
        let Some(entry) = self.entries.get_mut(key) else { return Vec::new() };
        let shown: HashSet<TaskId> = view.items.iter().map(|item| item.task.id).collect();
        let ends_matter = !key.is_ops();
        let wanted = |(id, known): &(&TaskId, &Known)| {
            known.at < view.begun && !shown.contains(id) && (ends_matter || !known.facts.ended)
        };
        let mut unseen: Vec<(Mono, TaskId)> = entry.known.iter().filter(wanted).map(|(id, k)| (k.at, *id)).collect();
        unseen.sort_unstable();
        unseen.truncate(ASKED);
        for (_, id) in &unseen {
            entry.known.entry(*id).and_modify(|known| known.at = now);
        }
        unseen.into_iter().map(|(_, id)| id).collect()
    }

    /// What became of those.
    pub(super) fn found(&mut self, key: &RoomKey, asked: &[TaskId], found: &[Arc<Item>], now: Mono) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.heard_of(found, now);
        for id in asked.iter().filter(|id| found.iter().all(|item| item.task.id != **id)) {
            if let Some(known) = entry.known.get(id).filter(|known| !known.facts.is_gone()) {
                let revision = known.facts.revision.next();
                entry.announce(*id, Head::default(), &What::Gone(revision), Facts::gone(revision), now);
            }
        }
    }
}

impl Entry {
    fn heard_of(&mut self, items: &[Arc<Item>], now: Mono) {
        for item in items {
            let (task, what) = (&item.task, What::Is(item.clone()));
            self.announce(task.id, task.head, &what, Facts::of(task), now);
        }
    }

    fn announce(&mut self, id: TaskId, head: Head, what: &What, facts: Facts, now: Mono) {
        let judged = Judged::by(self.known.get(&id).map(|known| &known.facts), &facts);
        if judged == Judged::Old {
            return;
        }
        if self.known.len() >= KNOWN {
            self.known.retain(|_, known| !known.facts.ended);
            if self.known.len() >= KNOWN {
                self.known.clear();
            }
        }
        self.known.insert(id, Known { facts, at: now });
        let (ops, changed) = (self.room.key.is_ops(), judged == Judged::Changed);
        self.uncounted |= ops && changed;
        // What goes on in a whole tenant is told at the pace of progress, whatever it is.
        let delivery = Delivery { id, head, what: what.clone(), urgent: changed && !ops };
        for (mailbox, slot) in &self.members {
            mailbox.deliver(Lane::Room(*slot), std::slice::from_ref(&delivery), &[], now);
        }
    }
}
