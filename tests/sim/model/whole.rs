//! What must be true of the table as a whole.

use super::rows;
use crate::violation::{Checked, Invariant, Violation, must};
use std::collections::BTreeMap;
use taskbell::core::ids::TaskId;
use taskbell::core::task::Task;

/// Invariant 6, with the other half: no slot lies idle while somebody waits for it.
pub fn slots(tasks: &BTreeMap<TaskId, Task>) -> Checked {
    let mut keys: BTreeMap<(&str, &str), (u32, u32, u32)> = BTreeMap::new();
    for task in tasks.values().filter(|t| t.slot_held || t.gated) {
        let Some(c) = &task.concurrency else {
            return Err(Violation { invariant: Invariant::Slots, facts: format!("a slot without a key: {task:?}") });
        };
        let (held, waiting, limit) = keys.entry((&task.tenant, &c.key)).or_default();
        *held += u32::from(task.slot_held);
        *waiting += u32::from(task.gated);
        *limit = c.limit.max(*limit);
    }
    for (key, (held, waiting, limit)) in keys {
        must(held <= limit, Invariant::Slots, || format!("{key:?} is held {held} times, its limit is {limit}"))?;
        must(waiting == 0 || held == limit, Invariant::Slots, || {
            format!("{waiting} wait for {key:?}, of which {held} of {limit} slots are held")
        })?;
    }
    Ok(())
}

/// Invariant 5, over all rows.
pub fn orphans<'a>(tasks: impl Iterator<Item = &'a Task>) -> Checked {
    for task in tasks {
        rows::fits(task)?;
    }
    Ok(())
}

/// The store holds what its commits said, and nothing else.
pub fn equal(rows: &BTreeMap<TaskId, Task>, stored: &[Task]) -> Checked {
    must(rows.len() == stored.len(), Invariant::AcceptedOnce, || {
        format!("{} rows are stored, {} were committed", stored.len(), rows.len())
    })?;
    for task in stored {
        let row = rows.get(&task.id);
        must(row == Some(task), Invariant::AcceptedOnce, || format!("stored is {task:?}, committed was {row:?}"))?;
    }
    Ok(())
}
