//! The tables and their indexes. Every write of a task goes through [`Tables::set_task`], which keeps the indexes true, so
//! that they can only hold what the rows say. Indexes are there for the same reason as in a database: the cost of a step
//! must not grow with the number of rows that it does not touch.

use super::super::tx::{DocumentKind, KeyName, KeyRow, SlotKey};
use super::super::{ApiKey, FileRow, OwnerHeads, PackRow, Session, Took, User, Usual};
use crate::core::ids::TaskId;
use crate::core::node::Node;
use crate::core::picture::Point;
use crate::core::task::{State, Task, TimelineEvent};
use crate::core::time::Millis;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A tenant and an owner.
pub(super) type Owner = (String, String);
/// The order of those that wait for a slot: priority, then first come.
pub(super) type Turn = (i32, Millis, TaskId);

/// All rows.
#[derive(Default)]
pub(super) struct Tables {
    tasks: BTreeMap<TaskId, Task>,
    /// May be claimed, by tenant, in claim order.
    pub claimable: BTreeMap<String, BTreeSet<(i64, TaskId)>>,
    /// Leases by their end.
    pub leases: BTreeSet<(Millis, TaskId)>,
    /// Deadlines of unfinished tasks.
    pub deadlines: BTreeSet<(Millis, TaskId)>,
    /// Holders of concurrency keys.
    pub holders: BTreeMap<SlotKey, BTreeSet<TaskId>>,
    /// Those that wait for one.
    pub waiters: BTreeMap<SlotKey, BTreeSet<Turn>>,
    /// Children of a task.
    pub children: BTreeMap<TaskId, BTreeSet<TaskId>>,
    /// Tasks of an owner.
    pub owned: BTreeMap<Owner, BTreeSet<TaskId>>,
    pub documents: BTreeMap<(TaskId, DocumentKind), Value>,
    pub events: BTreeMap<TaskId, Vec<TimelineEvent>>,
    /// Pictures, by instant.
    pub points: BTreeMap<TaskId, BTreeMap<Millis, Point>>,
    pub keys: BTreeMap<KeyName, KeyRow>,
    pub heads: BTreeMap<Owner, OwnerHeads>,
    pub api_keys: BTreeMap<String, ApiKey>,
    pub sessions: BTreeMap<String, Session>,
    pub users: BTreeMap<String, User>,
    pub files: BTreeMap<String, FileRow>,
    pub packs: BTreeMap<String, PackRow>,
    pub nodes: BTreeMap<String, Node>,
    /// When workers last asked, by (tenant, action).
    pub asks: BTreeMap<(String, String), Millis>,
}

impl Tables {
    /// A row.
    pub fn task(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(&id)
    }

    /// All rows, in id order.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values()
    }

    /// Writes a row, or takes it away, and answers what was there before.
    pub fn set_task(&mut self, id: TaskId, task: Option<Task>) -> Option<Task> {
        let before = self.tasks.remove(&id);
        if let Some(before) = &before {
            self.index(before, false);
        }
        if let Some(task) = task {
            self.index(&task, true);
            self.tasks.insert(id, task);
        }
        before
    }

    /// The children of a task, by id.
    pub fn children_of(&self, id: TaskId) -> impl Iterator<Item = &Task> {
        self.children.get(&id).into_iter().flatten().filter_map(|child| self.task(*child))
    }

    /// The picture of a task, in order.
    pub fn picture(&self, id: TaskId) -> Vec<Point> {
        self.points.get(&id).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }

    /// What the last 20 successes of an action took.
    pub fn usual(&self, tenant: &str, action: &str) -> Usual {
        let mut ended: Vec<(Millis, Took)> = self
            .tasks()
            .filter(|t| t.state == State::Succeeded && t.tenant == tenant && t.action == action)
            .filter_map(|t| {
                let duration_ms = t.finished_at?.since(t.started_at?);
                let took = Took { duration_ms, active_ms: t.estimator.active_ms(), units: t.progress.current };
                Some((t.finished_at?, took))
            })
            .collect();
        ended.sort_by_key(|(at, _)| Reverse(*at));
        Usual::of(&ended.into_iter().take(20).map(|(_, took)| took).collect::<Vec<_>>())
    }

    fn index(&mut self, task: &Task, present: bool) {
        let id = task.id;
        if task.claimable() {
            set_in(&mut self.claimable, &task.tenant, (task.rank(), id), present);
        }
        if let Some(until) = task.lease_until {
            set(&mut self.leases, (until, id), present);
        }
        if let Some(deadline) = task.deadline.filter(|_| !task.state.is_final()) {
            set(&mut self.deadlines, (deadline, id), present);
        }
        if let Some(c) = task.concurrency.as_ref().filter(|_| task.slot_held || task.gated) {
            let key = (task.tenant.clone(), c.key.clone());
            if task.slot_held {
                set_in(&mut self.holders, &key, id, present);
            }
            if task.gated {
                set_in(&mut self.waiters, &key, (-task.priority, task.due_at, id), present);
            }
        }
        if let Some(parent) = &task.parent {
            set_in(&mut self.children, &parent.id, id, present);
        }
        set_in(&mut self.owned, &(task.tenant.clone(), task.owner.clone()), id, present);
    }
}

fn set<T: Ord>(index: &mut BTreeSet<T>, entry: T, present: bool) {
    if present {
        index.insert(entry);
    } else {
        index.remove(&entry);
    }
}

/// Keys without entries are dropped, so that an index is never larger than its rows.
fn set_in<K: Ord + Clone, T: Ord>(index: &mut BTreeMap<K, BTreeSet<T>>, key: &K, entry: T, present: bool) {
    if present {
        match index.get_mut(key) {
            Some(entries) => drop(entries.insert(entry)),
            None => drop(index.insert(key.clone(), BTreeSet::from([entry]))),
        }
    } else if let Some(entries) = index.get_mut(key) {
        entries.remove(&entry);
        if entries.is_empty() {
            index.remove(key);
        }
    }
}
