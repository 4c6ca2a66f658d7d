//! The business table: which item of which task was written, by whom, in which commit (invariants 2, 3 and 9).

use crate::violation::{Checked, Invariant, must};
use std::collections::BTreeMap;
use taskbell::core::ids::{FencingToken, TaskId};
use taskbell::core::task::{State, Task};

/// One row that a chunk writes with its commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Whose.
    pub task: TaskId,
    /// Which, from 0.
    pub number: i64,
    /// How many the task has in all.
    pub of: i64,
    /// The token that the writer holds.
    pub token: FencingToken,
}

#[derive(Default)]
struct Written {
    count: i64,
    of: i64,
    checkpoint: i64,
}

/// The business table.
#[derive(Default)]
pub struct Ledger(BTreeMap<TaskId, Written>);

impl Ledger {
    /// Where the next chunk of a task goes on.
    pub fn checkpoint(&self, id: TaskId) -> i64 {
        self.0.get(&id).map_or(0, |w| w.checkpoint)
    }

    /// Takes rows and checkpoints of a commit over. Items of a task are written in order, so the next one is the count.
    pub fn commit(&mut self, rows: &BTreeMap<TaskId, Task>, items: &[Item], checkpoints: &[(TaskId, i64)]) -> Checked {
        for item in items {
            let newest = rows.get(&item.task).map(|t| t.fencing_token);
            must(newest == Some(item.token), Invariant::Tokens, || {
                format!("{item:?} was taken from a writer whose token is not the newest, {newest:?}")
            })?;
            let written = self.0.entry(item.task).or_default();
            must(item.number == written.count, Invariant::Ledger, || {
                format!("{item:?} was written when {} items were there", written.count)
            })?;
            written.count += 1;
            written.of = item.of;
        }
        for (id, checkpoint) in checkpoints {
            let written = self.0.entry(*id).or_default();
            must(*checkpoint == written.count, Invariant::Checkpoint, || {
                format!("{id} goes on at {checkpoint} with {} items written", written.count)
            })?;
            written.checkpoint = *checkpoint;
        }
        Ok(())
    }

    /// A success has written all of its items.
    pub fn holds(&self, task: &Task) -> Checked {
        let written = self.0.get(&task.id).map_or((0, 1), |w| (w.count, w.of));
        must(task.state != State::Succeeded || written.0 == written.1, Invariant::Ledger, || {
            format!("{task:?} succeeded with {} of {} items", written.0, written.1)
        })
    }
}
