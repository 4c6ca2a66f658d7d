//! Tasks under way as this process has written them last, so that the end of a chunk need not read its row anew: a claim
//! has just done so.
//!
//! Never the truth. Whoever takes a task from here has locked its row and seen by its [`Marks`] that nobody else has changed
//! it since, or has that looked at in the statement that writes; where they differ, the row is read. So it may hold what is
//! old, and what another node has taken over.
//!
//! Holds tasks with a lease only, at most [`MOST`] of them.

use super::super::Result;
use super::super::row::{Columns, corrupt, task_id};
use super::super::tx::SlotKey;
use super::super::value::Batch;
use crate::core::ids::TaskId;
use crate::core::task::Task;
use crate::core::time::Millis;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most tasks; above it the oldest go.
const MOST: usize = 2_048;

/// How many claims take tenants for those that wait which waited a moment ago.
const TENANTS_HOLD: u32 = 8;

/// What is recalled, shared by the transactions of a store.
#[derive(Clone, Debug, Default)]
pub(super) struct Recall(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    tasks: Mutex<BTreeMap<TaskId, Task>>,
    /// Tenants that waited, and how many claims may still believe it.
    tenants: Mutex<(Vec<String>, u32)>,
    waited: Mutex<WaitedKey>,
}

/// Where a look at the concurrency keys behind which somebody waits has ended: a key, or a tenant of whom there are no more. Empty
/// texts come before all.
pub(super) type WaitedKey = (String, Option<String>);

/// What tells one version of a task's row from another. Each change moves the revision, but for the renewal of a lease. The
/// others are there because a database may have been restored from a backup, or a row mended by hand.
pub(super) struct Marks {
    pub id: TaskId,
    state: String,
    numbers: [Option<i64>; 4],
    lease_until: Option<Millis>,
}

impl Marks {
    /// From a row of the statement `lock_marks`.
    pub fn of(row: &mut impl Columns) -> Result<Self> {
        Ok(Self {
            id: task_id(&row.text()?.ok_or_else(|| corrupt("id"))?)?,
            state: row.text()?.unwrap_or_default(),
            numbers: [row.int()?, row.int()?, row.int()?, row.int()?],
            lease_until: row.int()?.map(Millis),
        })
    }

    fn are_of(&self, task: &Task) -> bool {
        self.state == task.state.as_str() && self.numbers == numbers_of(task).map(Some)
    }
}

fn numbers_of(task: &Task) -> [i64; 4] {
    [task.revision.0, task.head.0, task.fencing_token.0, task.updated_at.0]
}

/// The marks of a task as columns, without the end of its lease, which a renewal moves and nothing is decided on.
pub(super) fn marks_of(task: &Task, to: &mut Batch) {
    to.text(Some(&task.id.to_string()));
    to.text(Some(task.state.as_str()));
    numbers_of(task).into_iter().for_each(|number| to.int(Some(number)));
}

impl Recall {
    fn tasks(&self) -> MutexGuard<'_, BTreeMap<TaskId, Task>> {
        self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tenants_noted(&self) -> MutexGuard<'_, (Vec<String>, u32)> {
        self.0.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tenants that waited a few claims ago.
    pub fn tenants(&self) -> Option<Vec<String>> {
        let mut noted = self.tenants_noted();
        noted.1 = noted.1.checked_sub(1)?;
        Some(noted.0.clone())
    }

    /// These tenants wait.
    pub fn remember_tenants(&self, tenants: &[String]) {
        *self.tenants_noted() = (tenants.to_vec(), if tenants.is_empty() { 0 } else { TENANTS_HOLD });
    }

    fn waited(&self) -> MutexGuard<'_, WaitedKey> {
        self.0.waited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the next look goes on; from the start where the last one came to the end.
    pub fn looks_on(&self) -> WaitedKey {
        let (tenant, key) = std::mem::take(&mut *self.waited());
        if tenant.is_empty() { (tenant, Some(String::new())) } else { (tenant, key) }
    }

    /// A look has ended here and not at the end.
    pub fn looked_to(&self, key: WaitedKey) {
        *self.waited() = key;
    }

    /// All of these as this process has written them, if all are known.
    pub fn all(&self, ids: &[TaskId]) -> Option<Vec<Task>> {
        let tasks = self.tasks();
        ids.iter().map(|id| tasks.get(id).cloned()).collect()
    }

    /// Whether any of these is known.
    pub fn knows_one_of(&self, ids: &[TaskId]) -> bool {
        let tasks = self.tasks();
        ids.iter().any(|id| tasks.contains_key(id))
    }

    /// The task as it is, if it is known by these marks.
    pub fn task(&self, marks: &Marks) -> Option<Task> {
        let task = self.tasks().get(&marks.id).filter(|task| marks.are_of(task)).cloned();
        task.map(|task| Task { lease_until: marks.lease_until, ..task })
    }

    /// The concurrency keys of those that are known, which never change, and the ids of the others.
    pub fn slot_keys(&self, ids: &[TaskId]) -> (BTreeSet<SlotKey>, Vec<TaskId>) {
        let (mut keys, mut unknown) = (BTreeSet::new(), Vec::new());
        let tasks = self.tasks();
        for id in ids {
            match tasks.get(id) {
                Some(task) => keys.extend(task.concurrency.as_ref().map(|c| (task.tenant.clone(), c.key.clone()))),
                None => unknown.push(*id),
            }
        }
        (keys, unknown)
    }

    /// Takes over what a transaction has committed: tasks with a lease as they are now, and the ids of others.
    pub fn committed(&self, under_way: Vec<Task>, others: &[TaskId]) {
        let mut tasks = self.tasks();
        for id in others {
            tasks.remove(id);
        }
        tasks.extend(under_way.into_iter().map(|task| (task.id, task)));
        while tasks.len() > MOST {
            tasks.pop_first();
        }
    }
}
