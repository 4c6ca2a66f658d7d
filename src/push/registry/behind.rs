//! What the registry knows of the change log of others: who may be behind, and how it is caught up with.

use super::super::mailbox::{Delivery, Lane, What};
use super::{Facts, Mailbox, OwnerKey, Registry};
use crate::core::change::Change;
use crate::core::ids::{Head, Revision, TaskId};
use crate::core::time::Mono;
use std::sync::Arc;

impl Registry {
    /// Who is connected, with the head up to which all of an owner's connections were told of everything. Without those that
    /// only a snapshot can tell.
    pub fn known(&self) -> Vec<(OwnerKey, Head)> {
        let known = |mailboxes: &[Arc<Mailbox>]| mailboxes.iter().filter_map(|m| m.known()).min();
        let all = self.owners.iter();
        all.filter_map(|(owner, entry)| Some((owner.clone(), known(&entry.mailboxes)?))).collect()
    }

    /// Brings an owner all that changed after `from` and up to `to`: tasks as they are now, some of which several commits
    /// changed. So with them all of these heads arrive.
    pub fn catch_up(&mut self, owner: &OwnerKey, changes: &[Change], from: Head, to: Head, now: Mono) {
        let mut mine = self.sort_out(changes, now);
        let (_, heads) = mine.entry(owner.clone()).or_default();
        heads.extend((from.0 + 1..=to.0).map(Head));
        self.hand_out(mine, now);
    }

    /// The owner's change log up to `to` cannot be told change by change: connections that do not know it get new snapshots.
    pub fn overtaken(&self, owner: &OwnerKey, to: Head, at: Mono) {
        let mailboxes = self.owners.get(owner).into_iter().flat_map(|entry| &entry.mailboxes);
        mailboxes.filter(|m| m.known().is_some_and(|known| known < to)).for_each(|m| m.stale_all(at));
    }

    /// Tasks that somebody watches.
    pub fn watched(&self) -> Vec<TaskId> {
        self.watched.keys().copied().collect()
    }

    /// Watched tasks that no connected owner's change log tells of, with the newest revision that was told of each.
    pub fn watched_alone(&self) -> Vec<(TaskId, Revision)> {
        let alone = self.watched.iter().filter_map(|(id, watched)| {
            let (owner, shown) = watched.shown.as_ref()?;
            let known = watched.facts.map_or(*shown, |facts| facts.revision.max(*shown));
            (!self.owners.contains_key(owner)).then_some((*id, known))
        });
        alone.collect()
    }

    /// A watched task does not exist any more.
    pub fn is_gone(&mut self, id: TaskId, now: Mono) {
        let Some(watched) = self.watched.get_mut(&id) else { return };
        let shown = watched.shown.as_ref().map(|(_, revision)| *revision);
        let last = watched.facts.map(|facts| facts.revision).max(shown).unwrap_or_default();
        if watched.facts.is_some_and(|facts| facts.is_gone()) {
            return;
        }
        let revision = last.next();
        watched.facts = Some(Facts::gone(revision));
        // No head belongs to it: it is no change of the watcher's own center.
        let gone = Delivery { id, head: Head::default(), what: What::Gone(revision), urgent: true };
        for mailbox in &watched.mailboxes {
            mailbox.deliver(Lane::Task, std::slice::from_ref(&gone), &[], now);
        }
        self.stalls.remove(&id);
    }

    /// The log of a watched task has grown up to here.
    pub fn log_is_at(&mut self, task: TaskId, newest: i64) {
        if let Some(watched) = self.watched.get_mut(&task)
            && newest > watched.log
        {
            watched.log = newest;
            watched.mailboxes.iter().for_each(|mailbox| mailbox.log_grew(task, newest));
        }
    }
}
