//! Progress between commits: the newest report of each running task, stored at most every half second a task, in one
//! statement for all tasks of the node.
//!
//! The first report after a quiet moment is stored at once; what comes faster overwrites what waits. The last one always
//! goes out: with the next flush, or inside the chunk's own commit, which takes what still waits with it.

use super::commands::announce;
use super::measure;
use crate::bus::LocalBus;
use crate::core::ids::{FencingToken, TaskId};
use crate::core::metric;
use crate::core::progress::Reported;
use crate::core::time::{Clock, Mono};
use crate::store::{Report, Store};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Reports of one task are stored at most this often, ms.
const STORE_EVERY_MS: u64 = 500;
/// A task that was silent for so long is forgotten: it may run elsewhere, where its end is not heard of here, ms.
const FORGET_MS: u64 = 60_000;

struct Waiting {
    token: FencingToken,
    report: Option<Reported>,
    stored_at: Option<Mono>,
    /// Whether the end of the chunk is being written: a report that it overtakes is no stranger's.
    ends: Arc<AtomicBool>,
}

/// The newest reports.
pub(super) struct ReportBook {
    store: Arc<dyn Store>,
    bus: LocalBus,
    wake: Arc<Notify>,
    clock: Arc<dyn Clock>,
    waiting: Mutex<HashMap<TaskId, Waiting>>,
    rung: Notify,
}

impl ReportBook {
    /// An empty book.
    pub fn new(store: Arc<dyn Store>, bus: LocalBus, wake: Arc<Notify>, clock: Arc<dyn Clock>) -> Self {
        Self { store, bus, wake, clock, waiting: Mutex::default(), rung: Notify::new() }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<TaskId, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a report; never waits.
    pub fn take(&self, id: TaskId, token: FencingToken, report: Reported) {
        let mut waiting = self.waiting();
        let entry =
            waiting.entry(id).or_insert_with(|| Waiting { token, report: None, stored_at: None, ends: Arc::default() });
        // What an owner before reported is not this one's to build on.
        let older = entry.report.take().filter(|_| entry.token == token);
        if entry.token != token || entry.ends.load(Ordering::Relaxed) {
            (entry.token, entry.ends) = (token, Arc::default());
        }
        entry.report = Some(match older {
            Some(older) => report.over(older),
            None => report,
        });
        drop(waiting);
        self.rung.notify_one();
    }

    /// What still waits of a chunk that commits now.
    pub fn withdraw(&self, id: TaskId, token: FencingToken) -> Option<Reported> {
        let mut waiting = self.waiting();
        let entry = waiting.get_mut(&id).filter(|w| w.token == token)?;
        entry.ends.store(true, Ordering::Relaxed);
        entry.report.take()
    }

    /// Forgets a task that does not run here any more.
    pub fn forget(&self, id: TaskId) {
        self.waiting().remove(&id);
    }

    /// The reports that are due, each with whether its chunk ends meanwhile, and when the next one is.
    fn due(&self, now: Mono) -> (Vec<(Report, Arc<AtomicBool>)>, Option<u64>) {
        let (mut due, mut next_ms) = (Vec::new(), None::<u64>);
        let mut waiting = self.waiting();
        waiting.retain(|_, w| w.report.is_some() || w.stored_at.is_none_or(|at| now - at < FORGET_MS));
        for (id, w) in waiting.iter_mut().filter(|(_, w)| w.report.is_some()) {
            let waits_ms = w.stored_at.map_or(0, |at| STORE_EVERY_MS.saturating_sub(now - at));
            if waits_ms > 0 {
                next_ms = Some(next_ms.map_or(waits_ms, |n| n.min(waits_ms)));
            } else if let Some(report) = w.report.take() {
                w.stored_at = Some(now);
                due.push((Report { task: *id, token: w.token, report }, w.ends.clone()));
            }
        }
        due.sort_unstable_by_key(|(r, _)| r.task);
        (due, next_ms)
    }

    /// The loop that stores them.
    pub async fn run(&self) {
        loop {
            let (due, next_ms) = self.due(self.clock.mono());
            if !due.is_empty() {
                let (due, ends): (Vec<_>, Vec<_>) = due.into_iter().unzip();
                match self.store.report(due).await {
                    Ok(written) => {
                        let stored = announce(&self.bus, &self.wake, written);
                        measure::more(metric::REPORTS, stored.iter().filter(|stored| **stored).count());
                        let lost =
                            |(stored, ends): &(&bool, &Arc<AtomicBool>)| !**stored && !ends.load(Ordering::Relaxed);
                        let stale = stored.iter().zip(&ends).filter(lost).count();
                        measure::stale("report", stale);
                    }
                    // Lost reports are healed by the next one and by the commit.
                    Err(e) => tracing::warn!(error = %e, "progress reports were not stored"),
                }
                continue;
            }
            let idle = Duration::from_millis(next_ms.unwrap_or(STORE_EVERY_MS * 120));
            tokio::select! {
                () = self.rung.notified() => {}
                () = tokio::time::sleep(idle) => {}
            }
        }
    }
}
