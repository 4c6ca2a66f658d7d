//! What the changes of a transaction mean for parents: the end of the last child makes its parent due, and that of one that
//! must succeed fails it, in the same commit. So no parent waits when nothing is left to wait for.
//!
//! A parent is locked before it is decided on, although its row changes seldom: of two children that end on two nodes at
//! once, the second one has to see the first. Its row is locked after those of the children, and so without waiting; where
//! somebody else has it, the verb begins anew and locks it in order (`with_ancestors`).
//!
//! Named failure case: a parent begins to wait while its last child ends. Both lock the parent; whoever is second sees the
//! other's commit, for each statement sees what was committed before it.

use super::super::super::Result;
use super::super::super::tx::{Kin, Tx};
use super::Work;
use crate::core::family::OnFailure;
use crate::core::ids::TaskId;
use crate::core::task::{State, Task};
use std::collections::{BTreeMap, BTreeSet};

/// What is to be found out about a parent.
#[derive(Default)]
struct Question {
    /// A child that ended without success in this transaction.
    fallen: Option<TaskId>,
    /// Children may have ended before it began to wait.
    began: bool,
}

/// What became of a task, as far as families go.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// It ended, and its parent has to know.
    Ended,
    /// It began to wait for its children.
    Began,
}

impl Work {
    /// Takes the ends of children to their parents, and those of parents to theirs, as far as they reach.
    pub(super) async fn tell_parents(&mut self, tx: &mut dyn Tx) -> Result<()> {
        let mut told = BTreeSet::new();
        loop {
            let questions = self.questions(&mut told);
            if questions.is_empty() {
                return Ok(());
            }
            let missing: Vec<TaskId> = questions.keys().filter(|id| !self.tasks.contains_key(id)).copied().collect();
            if !missing.is_empty() {
                self.take(tx.load_free(&missing).await?);
            }
            for (id, question) in questions {
                self.ask_after_children(tx, id, &question).await?;
            }
        }
    }

    /// The parents that have to be looked at, each change counted once. One task may count as both: it begins to wait, and
    /// fails at once with a child that had not succeeded.
    fn questions(&self, told: &mut BTreeSet<(TaskId, Change)>) -> BTreeMap<TaskId, Question> {
        let mut questions: BTreeMap<TaskId, Question> = BTreeMap::new();
        for (id, entry) in &self.tasks {
            let task = &entry.task;
            let ended = entry.before.as_ref().is_some_and(|b| !b.state.is_final()) && task.state.is_final();
            if let Some(parent) = task.parent.filter(|_| ended && told.insert((*id, Change::Ended))) {
                let question = questions.entry(parent.id).or_default();
                question.fallen = question.fallen.or((task.state != State::Succeeded).then_some(*id));
            }
            let same = entry.before.as_ref().is_some_and(|b| b.awaits == task.awaits && b.state == task.state);
            if task.awaits.is_some() && !task.state.is_final() && !same && told.insert((*id, Change::Began)) {
                questions.entry(*id).or_default().began = true;
            }
        }
        questions
    }

    /// Asks again about a parent, whether or not anything of it changed.
    pub async fn recheck_parent(&mut self, tx: &mut dyn Tx, id: TaskId) -> Result<()> {
        self.ask_after_children(tx, id, &Question { fallen: None, began: true }).await
    }

    async fn ask_after_children(&mut self, tx: &mut dyn Tx, id: TaskId, question: &Question) -> Result<()> {
        let parent = self.get(id).filter(|parent| !parent.state.is_final());
        let Some(policy) = parent.and_then(|parent| parent.awaits) else { return Ok(()) };
        if policy == OnFailure::Fail {
            let fallen = match question.fallen {
                None if question.began => self.kin(tx, id, Kin::Fallen).await?,
                fallen => fallen,
            };
            if let Some(fallen) = fallen {
                self.load_free(tx, fallen).await?;
                if let Some(child) = self.get(fallen).cloned() {
                    self.apply(id, |task, step| task.child_failed(&child, step))
                        .expect("a task that waits for its children runs no chunk and can fail");
                    return Ok(());
                }
            }
        }
        if self.kin(tx, id, Kin::Open).await?.is_none() {
            self.apply(id, Task::children_ended);
        }
        Ok(())
    }

    async fn load_free(&mut self, tx: &mut dyn Tx, id: TaskId) -> Result<()> {
        if !self.tasks.contains_key(&id) {
            self.take(tx.load_free(&[id]).await?);
        }
        Ok(())
    }

    /// One of the children of a kind, this transaction's own changes included.
    async fn kin(&mut self, tx: &mut dyn Tx, parent: TaskId, kin: Kin) -> Result<Option<TaskId>> {
        let mut known = 0;
        for (id, entry) in self.tasks.iter().filter(|(_, e)| e.task.parent.is_some_and(|p| p.id == parent)) {
            known += 1;
            let state = entry.task.state;
            let meant = match kin {
                Kin::Open => !state.is_final(),
                Kin::Fallen => matches!(state, State::Failed | State::Cancelled),
            };
            if meant {
                return Ok(Some(*id));
            }
        }
        let stored = tx.children(parent, kin, known + 1).await?;
        Ok(stored.into_iter().find(|id| !self.tasks.contains_key(id)))
    }
}
