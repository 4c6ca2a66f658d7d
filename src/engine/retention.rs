//! Takes away what has been kept long enough: logs first, then tasks with all that is theirs.
//!
//! A pass walks the tasks in the order in which they were accepted and ends where they are too young, so that it costs what
//! is old and not what is there. It works in small batches with pauses between them; each batch is one short transaction
//! that locks only tasks that have ended. Several nodes may walk at once: what one has taken, the others do not find.
//!
//! A log store that does not answer keeps the tasks whose logs are due with them until a later pass, so that no log stays
//! behind that nobody can reach.

use super::commands::announce;
use super::{Inner, measure};
use crate::core::ids::TaskId;
use crate::core::metric;
use crate::core::time::Millis;
use crate::store::{Aged, Result, RetainParams};
use std::sync::Arc;
use std::time::Duration;

/// Tasks of one look.
const LOOK: usize = 500;
/// The most tasks of one batch.
const BATCH: usize = 100;
/// Between two looks, and between two batches.
const PAUSE: Duration = Duration::from_millis(20);

/// A pass every now and then.
pub(super) async fn retain(engine: Arc<Inner>) {
    loop {
        match pass(&engine).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "took tasks away whose time was over"),
            Err(e) => tracing::warn!(error = %e, "old tasks could not be taken away; a later pass does"),
        }
        tokio::time::sleep(Duration::from_millis(engine.settings.retain_ms)).await;
    }
}

/// Walks once over what is old; answers how many tasks went.
async fn pass(engine: &Inner) -> Result<usize> {
    let keep = engine.settings.keep;
    let (mut after, mut removed) = (None, 0);
    loop {
        let now = engine.store.now().await?;
        let found = engine.store.aged(after, LOOK).await?;
        // Ids are given by the nodes' clocks, so a look is over only when all of it is young.
        let young = found.iter().all(|aged| now.since(aged.created_at) < keep.shortest_ms());
        removed += take(engine, &found, now).await?;
        after = found.last().map(|aged| aged.id);
        if young || found.len() < LOOK || engine.draining() {
            return Ok(removed);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// What of a look is over.
async fn take(engine: &Inner, found: &[Aged], now: Millis) -> Result<usize> {
    let keep = engine.settings.keep;
    let of_log = |aged: &&Aged| aged.end.is_some_and(|end| keep.log_over(&end, now));
    let logs: Vec<TaskId> = found.iter().filter(of_log).map(|aged| aged.id).collect();
    if !logs.is_empty() {
        engine.logbook.forget(&logs).await?;
    }
    let of_task = |aged: &&Aged| aged.end.is_some_and(|end| keep.task_over(&end, aged.key_ms, now));
    let over: Vec<Aged> = found.iter().filter(of_task).copied().collect();
    let mut removed = 0;
    for batch in over.chunks(BATCH) {
        let written = engine.store.retain(RetainParams { tasks: batch.to_vec(), keep }).await?;
        let gone = announce(&engine.bus, &engine.wake, written);
        measure::more(metric::RETAINED, gone.len());
        removed += gone.len();
        tokio::time::sleep(PAUSE).await;
    }
    Ok(removed)
}
