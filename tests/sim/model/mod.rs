//! What the database must hold: a second book, kept from what each commit wrote, against which every commit is checked
//! before anybody else can see it.
//!
//! Rows that a commit changed are checked at once; the whole table, and this book against the store's own, now and then.

mod families;
mod keys;
mod ledger;
mod packs;
mod rows;
mod whole;

use crate::violation::{Checked, Invariant, must};
use families::Families;
pub use families::title_of_child;
use keys::Keys;
pub use ledger::Item;
use ledger::Ledger;
use packs::Packs;
use std::collections::{BTreeMap, BTreeSet};
use taskbell::core::ids::{FencingToken, Head, TaskId};
use taskbell::core::submit::Submit;
use taskbell::core::task::{Task, TimelineEvent};
use taskbell::core::time::Millis;
use taskbell::store::PackRow;

/// What one transaction wrote.
#[derive(Default)]
pub struct Changes {
    /// The database's now.
    pub now: Millis,
    /// Rows as they are after it.
    pub written: Vec<Task>,
    /// Rows that are gone.
    pub removed: Vec<TaskId>,
    /// Timeline entries.
    pub events: Vec<TimelineEvent>,
    /// Rows of the business table.
    pub items: Vec<Item>,
    /// Where the next chunk of a task goes on.
    pub checkpoints: Vec<(TaskId, i64)>,
    /// Leases that were lengthened, and until when.
    pub renewed: Vec<(TaskId, Millis)>,
    /// New heads of owners.
    pub heads: Vec<((String, String), Head)>,
    /// Packs that were switched.
    pub packs: Vec<PackRow>,
}

/// The second book.
#[derive(Default)]
pub struct Model {
    rows: BTreeMap<TaskId, Task>,
    heads: BTreeMap<(String, String), Head>,
    ledger: Ledger,
    keys: Keys,
    packs: Packs,
    families: Families,
    /// Ids whose submit was answered with success.
    accepted: BTreeSet<TaskId>,
    deleted: BTreeSet<TaskId>,
    unfinished: usize,
    /// Keys a slot of which was given back by the last commit that touched them.
    pub freed: BTreeSet<(String, String)>,
    /// Commits so far.
    pub commits: u64,
}

impl Model {
    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = &Task> {
        self.rows.values()
    }

    /// Whether every task has ended.
    pub fn all_ended(&self) -> bool {
        self.unfinished == 0
    }

    /// Those that have not, in words.
    pub fn open(&self) -> String {
        format!("not ended: {:#?}", self.rows.values().filter(|t| !t.state.is_final()).collect::<Vec<_>>())
    }

    /// The newest token of a task; 0 for one that is gone.
    pub fn token(&self, id: TaskId) -> FencingToken {
        self.rows.get(&id).map_or(FencingToken(0), |t| t.fencing_token)
    }

    /// Where the next chunk of a task goes on.
    pub fn checkpoint(&self, id: TaskId) -> i64 {
        self.ledger.checkpoint(id)
    }

    /// A click is on its way; if it becomes a task, these are the keys that it claims.
    pub fn clicked(&mut self, item: &Submit) {
        self.keys.clicked(item);
    }

    /// A caller was told that its click is this task.
    pub fn accept(&mut self, id: TaskId) -> Checked {
        let known = self.rows.contains_key(&id) || self.deleted.contains(&id);
        must(known, Invariant::AcceptedOnce, || format!("{id} was answered and is not there"))?;
        self.accepted.insert(id);
        Ok(())
    }

    /// A chunk was told that it has submitted this child.
    pub fn submitted(&self, id: TaskId) -> Checked {
        let known = self.rows.contains_key(&id) || self.deleted.contains(&id);
        must(known, Invariant::Families, || format!("{id} was submitted by a chunk that counts, and is not there"))
    }

    /// A sweep has asked the children of stopped parents, beginning at this instant.
    pub fn taken_down(&self, asked_at: Millis) -> Checked {
        self.families.taken_down(&self.rows, asked_at)
    }

    /// A caller was told that its click became nothing.
    pub fn refuse(&mut self, id: TaskId) -> Checked {
        let row = self.rows.get(&id);
        must(row.is_none(), Invariant::AcceptedOnce, || format!("a click was refused and made {row:?}"))
    }

    /// Takes over what a transaction wrote, unless it breaks a promise.
    pub fn commit(&mut self, changes: Changes) -> Checked {
        self.commits += 1;
        self.freed.clear();
        let now = changes.now;
        for (owner, head) in changes.heads {
            let known = self.heads.insert(owner, head).unwrap_or_default();
            must(head == known.next(), Invariant::Push, || format!("a head went from {known} to {head}"))?;
        }
        self.ledger.commit(&self.rows, &changes.items, &changes.checkpoints)?;
        self.families.made(&self.rows, &changes.written)?;
        for after in &changes.written {
            let before = self.rows.get(&after.id);
            self.families.note(before, after, now);
            self.packs.starts(before, after)?;
            rows::changed(before, after, &changes.events)?;
            rows::fits(after)?;
            self.ledger.holds(after)?;
            let head = self.heads.get(&(after.tenant.clone(), after.owner.clone())).copied();
            must(head == Some(after.head), Invariant::Push, || {
                format!("{head:?} is the head of the owner of {after:?}")
            })?;
            if before.is_some_and(|b| b.slot_held) && !after.slot_held {
                self.freed.extend(rows::slot_key(after));
            }
        }
        self.packs.switched(changes.packs);
        let families = changes.written.iter().any(|t| t.parent.is_some() || t.awaits.is_some());
        let serial = changes.written.iter().any(|t| t.pack.is_some());
        let slots = changes.written.iter().any(|t| t.concurrency.is_some());
        let fresh: Vec<TaskId> =
            changes.written.iter().map(|t| t.id).filter(|id| !self.rows.contains_key(id)).collect();
        for task in changes.written {
            self.unfinished += usize::from(!task.state.is_final());
            let before = self.rows.insert(task.id, task);
            self.unfinished -= usize::from(before.is_some_and(|b| !b.state.is_final()));
        }
        for (id, until) in changes.renewed {
            if let Some(task) = self.rows.get_mut(&id) {
                task.lease_until = Some(until);
            }
        }
        for id in fresh {
            must(!self.deleted.contains(&id), Invariant::AcceptedOnce, || format!("{id} came back"))?;
            self.keys.took(id, &self.rows, now)?;
        }
        for id in changes.removed {
            let row = self.rows.remove(&id);
            let ended = row.as_ref().is_none_or(|t| t.state.is_final());
            must(ended, Invariant::AcceptedOnce, || format!("{row:?} was deleted before it ended"))?;
            self.deleted.insert(id);
        }
        if families {
            self.families.wait(&self.rows)?;
        }
        if serial {
            self.packs.one_at_a_time(self.rows.values())?;
        }
        if slots { whole::slots(&self.rows) } else { Ok(()) }
    }

    /// Checks the whole table, and what the store says that it holds.
    pub fn check(&self, stored: &[Task], heads: &BTreeMap<(String, String), Head>) -> Checked {
        whole::equal(&self.rows, stored)?;
        must(*heads == self.heads, Invariant::Push, || format!("heads are {heads:?}, not {:?}", self.heads))?;
        let missing = self.accepted.iter().find(|id| !self.rows.contains_key(id) && !self.deleted.contains(id));
        must(missing.is_none(), Invariant::AcceptedOnce, || format!("{missing:?} was accepted and is lost"))?;
        whole::orphans(self.rows.values())
    }

    /// Owners that have had a task.
    pub fn owners(&self) -> impl Iterator<Item = &(String, String)> {
        self.heads.keys()
    }
}
