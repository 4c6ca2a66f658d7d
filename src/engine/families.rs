//! Parents and children while they run: what a handler may see of its task's children, and how their work reaches the
//! progress of the parent.
//!
//! The end of a child reaches its parent in its own commit. Its progress does not, for then all children of a task would wait
//! for one row: what changed is noted here, and taken over at most every [`EVERY`], for all parents in one transaction. What
//! is lost with the node comes with the next report, and at the latest with the end of the last child.

use super::Inner;
use super::commands::announce;
use crate::bus::{Signal, Subscription};
use crate::core::change::Change;
use crate::core::ids::TaskId;
use crate::core::task::{State, Task};
use crate::handler::children::{CHILDREN_PAGE, ChildError, ChildView, ChildrenPage};
use crate::store::{Result, Store};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The shortest time between two looks.
const EVERY: Duration = Duration::from_millis(250);
/// A look never takes more than a fifth of the time.
const REST_PER_LOOK: u64 = 4;
/// Results of one page, bytes; a page ends before it holds more, but never empty.
const PAGE_BYTES: usize = 1024 * 1024;

/// Hears of children and takes their work over into their parents' progress.
pub(super) async fn roll_up(engine: Arc<Inner>, mut signals: Subscription) {
    let mut parents = BTreeSet::new();
    while let Some(signal) = signals.next().await {
        parents.extend(parents_in(&signal));
        if parents.is_empty() {
            continue;
        }
        // What comes in the meantime is looked at together.
        let gathering = tokio::time::sleep(EVERY);
        tokio::pin!(gathering);
        loop {
            tokio::select! {
                () = &mut gathering => break,
                signal = signals.next() => match signal {
                    Some(signal) => parents.extend(parents_in(&signal)),
                    None => return,
                },
            }
        }
        let looked_at = engine.clock.mono();
        let ids: Vec<TaskId> = std::mem::take(&mut parents).into_iter().collect();
        match engine.store.roll_up(ids).await {
            Ok(written) => announce(&engine.bus, &engine.wake, written),
            Err(e) => tracing::warn!(error = %e, "the progress of parents was not brought up to date"),
        }
        let took_ms = engine.clock.mono() - looked_at;
        tokio::time::sleep(Duration::from_millis(took_ms * REST_PER_LOOK)).await;
    }
}

fn parents_in(signal: &Signal) -> Vec<TaskId> {
    let Signal::Changes(changes) = signal else { return Vec::new() };
    let parent = |change: &Change| match change {
        Change::Task(task) => task.parent.map(|p| p.id),
        Change::Gone { .. } => None,
    };
    changes.iter().filter_map(parent).collect()
}

/// A page of a task's children.
pub(super) async fn page(store: &dyn Store, parent: TaskId, after: Option<TaskId>) -> Result<ChildrenPage> {
    let mut counts = store.family_counts(&[parent]).await?;
    let counts = counts.remove(&parent).unwrap_or_default();
    let found = store.children(parent, after, CHILDREN_PAGE + 1).await?;
    let mut page = ChildrenPage {
        counts: counts.into_iter().map(|(state, n)| (state.as_str().to_owned(), n)).collect(),
        ..ChildrenPage::default()
    };
    let mut bytes = 0;
    for child in &found {
        let mut result = None;
        if child.has_result {
            result = store.results(&[child.id]).await?.remove(&child.id);
            bytes += result.as_ref().map_or(0, |r| r.to_string().len());
        }
        if page.items.len() == CHILDREN_PAGE || (bytes > PAGE_BYTES && !page.items.is_empty()) {
            page.next = page.items.last().map(|last| last.id);
            break;
        }
        page.items.push(view(child, result));
    }
    Ok(page)
}

fn view(child: &Task, result: Option<serde_json::Value>) -> ChildView {
    let failed = child.error.as_ref().filter(|_| child.state == State::Failed);
    ChildView {
        id: child.id,
        action: child.action.clone(),
        title: child.title.clone(),
        record: child.record.clone(),
        idempotency_key: child.idempotency_key.clone(),
        state: child.state,
        result,
        error: failed.map(|e| ChildError { code: e.code.clone(), message: e.message.clone() }),
    }
}
