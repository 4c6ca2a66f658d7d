//! Parents and their children: which commit makes a child, who waits for whom, and what a stopped parent means for the
//! children that are still open.

use crate::violation::{Checked, Invariant, must};
use std::collections::{BTreeMap, BTreeSet};
use taskbell::core::family::OnFailure;
use taskbell::core::ids::TaskId;
use taskbell::core::task::{State, Task};
use taskbell::core::time::Millis;

/// What is remembered of parents.
#[derive(Default)]
pub struct Families {
    /// Children that were ever made.
    made: BTreeMap<TaskId, i64>,
    /// When a parent stopped so that its children have to.
    stopped: BTreeMap<TaskId, Millis>,
    /// When somebody brought a child back that had ended.
    resumed: BTreeMap<TaskId, Millis>,
}

/// The words by which a child tells the chunk that submitted it.
pub fn title_of_child(chunk: i64) -> String {
    format!("of chunk {chunk}")
}

impl Families {
    /// Children are made in the commit of the chunk that submitted them, and in no other, and their parent counts each.
    pub fn made(&mut self, rows: &BTreeMap<TaskId, Task>, written: &[Task]) -> Checked {
        for child in written.iter().filter(|task| !rows.contains_key(&task.id)) {
            let Some(parent) = child.parent else { continue };
            let after = written.iter().rfind(|task| task.id == parent.id);
            let chunks = (rows.get(&parent.id).map(|task| task.chunks + 1), after.map(|task| task.chunks));
            let right = chunks.0 == chunks.1 && chunks.1.is_some_and(|n| child.title == Some(title_of_child(n)));
            must(right, Invariant::Families, || format!("{child:?} was made beside {after:?}"))?;
            *self.made.entry(parent.id).or_default() += 1;
        }
        for task in written {
            let made = self.made.get(&task.id).copied().unwrap_or(0);
            let counted = task.family.as_ref().map_or(0, |family| family.children);
            must(made == counted, Invariant::Families, || format!("{made} children were made of {task:?}"))?;
        }
        Ok(())
    }

    /// Notes which parents are stopped, and which children come back.
    pub fn note(&mut self, before: Option<&Task>, after: &Task, now: Millis) {
        if after.takes_children_down() {
            self.stopped.entry(after.id).or_insert(now);
        } else {
            self.stopped.remove(&after.id);
        }
        if after.parent.is_some() && before.is_some_and(|before| before.state.is_final()) && !after.state.is_final() {
            self.resumed.insert(after.id, now);
        }
    }

    /// A sweep that began to look at this instant has asked every open child of a parent that was stopped before.
    pub fn taken_down(&self, rows: &BTreeMap<TaskId, Task>, asked_at: Millis) -> Checked {
        let early = |at: Option<&Millis>| at.is_some_and(|at| *at < asked_at);
        if !self.stopped.values().any(|at| early(Some(at))) {
            return Ok(());
        }
        let left = rows.values().find(|child| {
            let open = !child.state.is_final() && child.state != State::Cancelling;
            let back = self.resumed.get(&child.id).is_some_and(|at| *at >= asked_at);
            // One that was deleted takes nobody down any more.
            let stopped = |parent: TaskId| rows.contains_key(&parent) && early(self.stopped.get(&parent));
            open && !back && child.parent.is_some_and(|parent| stopped(parent.id))
        });
        must(left.is_none(), Invariant::Families, || {
            let parent = left.and_then(|child| rows.get(&child.parent?.id));
            format!("nobody asked it to stop: {left:?}\nits parent is stopped: {parent:?}")
        })
    }

    /// A parent waits only while a child of it is open, and, if it has to fail with one, none has failed.
    pub fn wait(&self, rows: &BTreeMap<TaskId, Task>) -> Checked {
        let parents: Vec<&Task> =
            rows.values().filter(|task| task.awaits.is_some() && !task.state.is_final()).collect();
        if parents.is_empty() {
            return Ok(());
        }
        let (mut open, mut fallen) = (BTreeSet::new(), BTreeSet::new());
        for child in rows.values() {
            let Some(parent) = child.parent else { continue };
            match child.state {
                State::Succeeded => {}
                State::Failed | State::Cancelled => drop(fallen.insert(parent.id)),
                _ => drop(open.insert(parent.id)),
            }
        }
        for parent in parents {
            must(open.contains(&parent.id), Invariant::Families, || {
                format!("{parent:?} waits for children, and none is open")
            })?;
            let fails = parent.awaits == Some(OnFailure::Fail) && fallen.contains(&parent.id);
            must(!fails, Invariant::Families, || format!("{parent:?} waits on, and a child of it did not succeed"))?;
        }
        Ok(())
    }
}
