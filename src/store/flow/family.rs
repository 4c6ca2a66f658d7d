//! Going down: a parent that is cancelled, or that fails while it waits, takes its open children with it, and they theirs.
//!
//! This follows the commit that stopped the parent, in transactions of its own, for a parent may have thousands of children;
//! the verb that stopped it answers after that. What a crash leaves undone, the next sweep does.

use super::super::tx::Tx;
use super::super::{Result, Store, Written};
use super::work::Work;
use crate::core::change::Change;
use crate::core::ids::TaskId;
use crate::core::lifecycle::Ask;
use crate::core::task::State;

/// How many children are asked to stop in one transaction.
const AT_ONCE: usize = 500;

/// The verb: cancels open children of these parents, or of all when none is named, as far as one transaction goes. Answers
/// how many it found.
pub async fn take_down(mut tx: Box<dyn Tx>, parents: &[TaskId]) -> Result<Written<usize>> {
    let mut work = Work::begin(tx.as_mut()).await?;
    let ids = tx.forsaken(parents, AT_ONCE).await?;
    work.with_ancestors = true;
    work.load_with_slots(tx.as_mut(), &[], ids.iter().copied()).await?;
    for id in &ids {
        let parent = work.get(*id).and_then(|child| work.get(child.parent?.id));
        // Somebody may have resumed the parent since the look.
        let Some(parent) = parent.filter(|parent| parent.takes_children_down()) else { continue };
        let why = if parent.state == State::Failed { "its parent failed" } else { "its parent was cancelled" };
        // Refused only for a child that has ended meanwhile.
        let _ = work.apply(*id, |child, step| child.ask(Ask::Cancel, Some(why), None, step));
    }
    let (changes, _) = work.finish(tx.as_mut()).await?;
    tx.commit().await?;
    Ok(Written { answer: ids.len(), changes })
}

/// Follows what a commit changed down to the last child, and adds what that changed.
pub async fn follow<S: Store + ?Sized>(store: &S, changes: &mut Vec<Change>) {
    let mut parents = stopped(changes);
    while !parents.is_empty() {
        match store.take_down(parents.clone()).await {
            Ok(written) => {
                let more = written.answer == AT_ONCE;
                parents.retain(|_| more);
                parents.extend(stopped(&written.changes));
                changes.extend(written.changes);
            }
            Err(e) => {
                tracing::warn!(error = %e, "children of a stopped task are left to the sweep");
                return;
            }
        }
    }
}

fn stopped(changes: &[Change]) -> Vec<TaskId> {
    let task = |change: &Change| match change {
        Change::Task(task) if task.takes_children_down() => Some(task.id),
        _ => None,
    };
    changes.iter().filter_map(task).collect()
}

/// The verb: takes what children have done over into their parents' progress. A parent that nothing changed for is not
/// written.
pub async fn roll_up(mut tx: Box<dyn Tx>, parents: &[TaskId]) -> Result<Written<()>> {
    let mut work = Work::begin(tx.as_mut()).await?;
    work.load(tx.as_mut(), parents.iter().copied()).await?;
    let open: Vec<TaskId> =
        parents.iter().copied().filter(|id| work.get(*id).is_some_and(|t| !t.state.is_final())).collect();
    if !open.is_empty() {
        for (id, done_milli) in tx.done_of_children(&open).await? {
            work.apply(id, |task, step| task.roll_up(done_milli, step));
        }
    }
    let (changes, _) = work.finish(tx.as_mut()).await?;
    tx.commit().await?;
    Ok(Written { answer: (), changes })
}
