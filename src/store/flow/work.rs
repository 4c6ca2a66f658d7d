//! The working set of one transaction: tasks as they were, tasks as they are to be, and the use of concurrency keys.
//!
//! Every change goes through [`Work::apply`], which keeps the count of holders and waiters of each key that was looked at.
//! [`Work::finish`] then opens gates: slots are freed and given on in the same commit, so none can leak.

use super::super::Result;
use super::super::row::only_advanced;
use super::super::tx::{Document, Rows, SlotKey, Tx, Under};
mod family;

use super::picture::draw;
use crate::core::change::Change;
use crate::core::concurrency::KeyUse;
use crate::core::ids::TaskId;
use crate::core::lifecycle::Step;
use crate::core::picture::due;
use crate::core::task::Task;
use std::collections::{BTreeMap, BTreeSet};

/// All that a set holds: tasks, what their keys hold and admit, and keys with a place that became free.
type Whole = (BTreeMap<TaskId, Entry>, BTreeMap<SlotKey, KeyUse>, BTreeSet<SlotKey>);

/// A point to which the changes of one item can be taken back.
pub(super) struct Mark {
    tasks: Vec<Task>,
    events: usize,
    documents: usize,
    /// The whole set, where an item may change more than is known before.
    all: Option<Box<Whole>>,
}

/// How many waiters of a key are counted where it matters only that there are some: more are never let in at once.
const WAITERS_SEEN: u32 = 1_000;

#[derive(Clone)]
struct Entry {
    before: Option<Task>,
    task: Task,
}

/// The working set.
pub(super) struct Work {
    /// When and by whom; gathers timeline entries.
    pub step: Step,
    /// Documents to store.
    pub documents: Vec<Document>,
    /// Waiters of a key are counted up to here, so that the end of a chunk costs the same with a hundred thousand of them.
    pub count_waiters: u32,
    /// Loads with tasks their ancestors, so that their rows are locked in order. Needed after a first try has met somebody
    /// who was changing one: usually nobody does, and few ends of chunks concern a parent.
    pub with_ancestors: bool,
    tasks: BTreeMap<TaskId, Entry>,
    uses: BTreeMap<SlotKey, KeyUse>,
    freed: BTreeSet<SlotKey>,
}

impl Work {
    /// An empty working set at the database's now.
    pub async fn begin(tx: &mut dyn Tx) -> Result<Self> {
        Ok(Self {
            step: Step::at(tx.now().await?),
            documents: Vec::new(),
            count_waiters: WAITERS_SEEN,
            with_ancestors: false,
            tasks: BTreeMap::new(),
            uses: BTreeMap::new(),
            freed: BTreeSet::new(),
        })
    }

    /// Takes loaded tasks in; one that is in already stays as it is.
    pub fn take(&mut self, tasks: Vec<Task>) {
        for task in tasks {
            self.tasks.entry(task.id).or_insert_with(|| Entry { before: Some(task.clone()), task });
        }
    }

    /// Loads tasks that are not in yet.
    pub async fn load(&mut self, tx: &mut dyn Tx, ids: impl IntoIterator<Item = TaskId>) -> Result<()> {
        let missing: BTreeSet<TaskId> = ids.into_iter().filter(|id| !self.tasks.contains_key(id)).collect();
        if !missing.is_empty() {
            let ids: Vec<TaskId> = missing.into_iter().collect();
            self.take(tx.load(&ids).await?);
        }
        Ok(())
    }

    /// The same, with the concurrency keys of these tasks, and others, locked first.
    pub async fn load_with_slots(
        &mut self,
        tx: &mut dyn Tx,
        keys: &[SlotKey],
        ids: impl IntoIterator<Item = TaskId>,
    ) -> Result<()> {
        let mut ids: Vec<TaskId> = ids.into_iter().collect();
        if self.with_ancestors && !ids.is_empty() {
            ids.extend(tx.ancestors(&ids).await?);
        }
        tx.lock_slots(keys, &ids).await?;
        self.load(tx, ids).await
    }

    /// The same for a sweep: of what is overdue, only what nobody is writing at this moment. That may be the end of the very
    /// chunk whose lease is over, on a slow line; the next sweep sees what has become of it.
    pub async fn load_overdue(
        &mut self,
        tx: &mut dyn Tx,
        keys: &[SlotKey],
        overdue: &[TaskId],
        others: impl IntoIterator<Item = TaskId>,
    ) -> Result<()> {
        let mut others: Vec<TaskId> = others.into_iter().collect();
        let all = [overdue, &others].concat();
        if self.with_ancestors && !all.is_empty() {
            others.extend(tx.ancestors(&all).await?);
        }
        tx.lock_slots(keys, &[overdue, &others].concat()).await?;
        self.load(tx, others).await?;
        let overdue: Vec<TaskId> = overdue.iter().filter(|id| !self.tasks.contains_key(id)).copied().collect();
        if !overdue.is_empty() {
            self.take(tx.load_unheld(&overdue).await?);
        }
        Ok(())
    }

    /// Puts a new task in.
    pub fn insert(&mut self, task: Task) {
        self.tasks.insert(task.id, Entry { before: None, task });
    }

    /// A task as it is to be.
    pub fn get(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(&id).map(|e| &e.task)
    }

    /// Changes a task that is in the set, and keeps the counts of its key.
    pub fn apply<T>(&mut self, id: TaskId, change: impl FnOnce(&mut Task, &mut Step) -> T) -> T {
        let entry = self.tasks.get_mut(&id).expect("a flow changes only what it has taken in");
        let (held, gated) = (entry.task.slot_held, entry.task.gated);
        let answer = change(&mut entry.task, &mut self.step);
        let task = &entry.task;
        if let Some(key) = slot_key(task) {
            if held && !task.slot_held {
                self.freed.insert(key.clone());
            }
            if let Some(in_use) = self.uses.get_mut(&key) {
                in_use.held = shifted(in_use.held, held, task.slot_held);
                in_use.waiting = shifted(in_use.waiting, gated, task.gated);
            }
        }
        answer
    }

    /// Remembers tasks as they are now, before an item changes them and nothing else.
    pub fn mark(&self, ids: &[TaskId]) -> Mark {
        Mark {
            tasks: ids.iter().filter_map(|id| self.get(*id)).cloned().collect(),
            events: self.step.events.len(),
            documents: self.documents.len(),
            all: None,
        }
    }

    /// Remembers everything, before an item that makes tasks or changes others than are known before.
    pub fn mark_all(&self) -> Mark {
        let all = (self.tasks.clone(), self.uses.clone(), self.freed.clone());
        Mark { all: Some(Box::new(all)), ..self.mark(&[]) }
    }

    /// Takes back what was decided since, as if the item had not come. What items before it did to the same tasks stays.
    pub fn back_to(&mut self, mark: Mark) {
        self.step.events.truncate(mark.events);
        self.documents.truncate(mark.documents);
        if let Some(all) = mark.all {
            (self.tasks, self.uses, self.freed) = *all;
        }
        for before in mark.tasks {
            self.apply(before.id, |task, _| *task = before);
        }
    }

    /// How a concurrency key is used, this transaction's own changes included; waiters counted up to `count_waiters`.
    pub async fn key_use(&mut self, tx: &mut dyn Tx, key: &SlotKey) -> Result<KeyUse> {
        if let Some(known) = self.uses.get(key) {
            return Ok(*known);
        }
        // Those that this transaction lets in are still among the waiters in the database.
        let most = self.count_waiters.saturating_add(self.tasks.len() as u32);
        let mut in_use = tx.key_use(key, most).await?;
        for entry in self.tasks.values().filter(|e| slot_key(&e.task).as_ref() == Some(key)) {
            let (held, gated) = entry.before.as_ref().map_or((false, false), |b| (b.slot_held, b.gated));
            in_use.held = shifted(in_use.held, held, entry.task.slot_held);
            in_use.waiting = shifted(in_use.waiting, gated, entry.task.gated);
        }
        self.uses.insert(key.clone(), in_use);
        Ok(in_use)
    }

    /// Whether a task that comes to a key now has to wait: all slots are held, or others came first.
    pub async fn must_wait(&mut self, tx: &mut dyn Tx, key: &SlotKey, limit: u32) -> Result<bool> {
        let in_use = self.key_use(tx, key).await?;
        if in_use.waiting > 0 && in_use.held < limit {
            self.recheck(key.clone());
        }
        Ok(in_use.waiting > 0 || in_use.held >= limit)
    }

    /// Ids of the tasks under a key, this transaction's own changes included.
    pub async fn key_tasks(&mut self, tx: &mut dyn Tx, key: &SlotKey, under: Under) -> Result<Vec<TaskId>> {
        let changed = self.tasks.len();
        let in_use = self.key_use(tx, key).await?;
        let count = if under == Under::Holders { in_use.held } else { in_use.waiting };
        self.take(tx.key_tasks(key, under, count as usize + changed).await?);
        let mut found: Vec<&Task> = self
            .tasks
            .values()
            .map(|e| &e.task)
            .filter(|t| if under == Under::Holders { t.slot_held } else { t.gated })
            .filter(|t| slot_key(t).as_ref() == Some(key))
            .collect();
        found.sort_by_key(|t| (-t.priority, t.due_at, t.id));
        Ok(found.into_iter().map(|t| t.id).collect())
    }

    /// Looks at a key again at the end, whether or not this transaction freed a slot of it.
    pub fn recheck(&mut self, key: SlotKey) {
        self.freed.insert(key);
    }

    async fn open_gates(&mut self, tx: &mut dyn Tx) -> Result<()> {
        for key in std::mem::take(&mut self.freed) {
            while self.key_use(tx, &key).await?.waiting > 0 {
                let mut opened = false;
                for id in self.first_waiters(tx, &key).await? {
                    let limit = self.get(id).and_then(|t| t.concurrency.as_ref()).map_or(0, |c| c.limit);
                    if self.key_use(tx, &key).await?.held >= limit {
                        opened = false;
                        break;
                    }
                    opened |= self.apply(id, Task::open_gate).is_ok();
                }
                if !opened {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The next waiters in line.
    async fn first_waiters(&mut self, tx: &mut dyn Tx, key: &SlotKey) -> Result<Vec<TaskId>> {
        const GATES_AT_ONCE: usize = 64;
        let changed = self.tasks.len();
        self.take(tx.key_tasks(key, Under::Waiters, GATES_AT_ONCE + changed).await?);
        let mut found: Vec<&Task> =
            self.tasks.values().map(|e| &e.task).filter(|t| t.gated && slot_key(t).as_ref() == Some(key)).collect();
        found.sort_by_key(|t| (-t.priority, t.due_at, t.id));
        Ok(found.into_iter().take(GATES_AT_ONCE).map(|t| t.id).collect())
    }

    /// Opens gates, moves revisions, and writes everything. Answers what changed.
    pub async fn finish(self, tx: &mut dyn Tx) -> Result<(Vec<Change>, BTreeMap<TaskId, Task>)> {
        let mut ready = self.ready(tx).await?;
        tx.write(&mut ready.rows).await?;
        Ok(ready.written())
    }

    /// Opens gates and moves revisions: all that is left to do is to write.
    pub async fn ready(mut self, tx: &mut dyn Tx) -> Result<Ready> {
        // Whoever gets a slot now may belong to somebody else: who freed it is nothing of that one's timeline.
        (self.step.actor, self.step.node) = (None, None);
        self.tell_parents(tx).await?;
        self.open_gates(tx).await?;
        let now = self.step.now;
        let mut owners: BTreeSet<(String, String)> = BTreeSet::new();
        let (mut rows, mut same, mut drawn) = (Rows::default(), BTreeMap::new(), Vec::new());
        for (id, Entry { before, mut task }) in self.tasks {
            if before.as_ref() == Some(&task) {
                same.insert(id, task);
                continue;
            }
            task.revision = task.revision.next();
            task.updated_at = now;
            owners.insert((task.tenant.clone(), task.owner.clone()));
            if let Some(due) = before.as_ref().and_then(|before| due(before, &task, now)) {
                drawn.push((due, task.clone()));
            }
            match &before {
                None => rows.fresh.push(task),
                Some(before) if only_advanced(before, &task) => rows.advanced.push(task),
                Some(_) => rows.changed.push(task),
            }
        }
        draw(tx, now, &drawn).await?;
        // The rows of heads are what transactions wait for that have nothing else in common, so they are taken last.
        rows.owners = owners.into_iter().collect();
        (rows.documents, rows.events) = (self.documents, self.step.events);
        Ok(Ready { rows, same })
    }
}

/// What a transaction has decided.
pub(super) struct Ready {
    rows: Rows,
    /// What it has looked at and left as it is.
    same: BTreeMap<TaskId, Task>,
}

impl Ready {
    /// Writes it, and makes it true.
    pub async fn commit(mut self, tx: Box<dyn Tx>) -> Result<(Vec<Change>, BTreeMap<TaskId, Task>)> {
        tx.write_and_commit(&mut self.rows).await?;
        Ok(self.written())
    }

    /// What changed, and all tasks as they are now.
    fn written(self) -> (Vec<Change>, BTreeMap<TaskId, Task>) {
        let (mut changes, mut tasks) = (Vec::new(), self.same);
        for task in self.rows.fresh.into_iter().chain(self.rows.advanced).chain(self.rows.changed) {
            tasks.insert(task.id, task.clone());
            changes.push(Change::Task(Box::new(task)));
        }
        (changes, tasks)
    }
}

/// The concurrency key of a task, with its tenant.
pub(super) fn slot_key(task: &Task) -> Option<SlotKey> {
    task.concurrency.as_ref().map(|c| (task.tenant.clone(), c.key.clone()))
}

fn shifted(count: u32, before: bool, after: bool) -> u32 {
    match (before, after) {
        (false, true) => count + 1,
        (true, false) => count.saturating_sub(1),
        _ => count,
    }
}
