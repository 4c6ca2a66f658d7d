//! What the handler of a chunk may ask while it works outside of this process: report, log, hear of a stop, read and keep
//! files. The same as the context of a chunk that runs here, for whoever proves to hold the chunk.
//!
//! Any node may be asked, whichever runs the chunk; the database tells whether the chunk is still the current one. On the
//! node that runs it, reports go into the book of its engine, so that the commit of the chunk takes the last one with it;
//! elsewhere they are stored within half a second. A drain is heard of on the node that drains only: it ends by
//! itself. Must never answer for a chunk that is over.

use super::super::Inner;
use super::super::logbook::{Logbook, Origin};
use super::super::reports::ReportBook;
use super::super::running::{SharedRunning, Told};
use crate::bus::LocalBus;
use crate::core::callback::ChunkName;
use crate::core::progress::Reported;
use crate::core::task::{State, Task};
use crate::core::time::Clock;
use crate::store::files::{ARTIFACT_LIFE_MS, Files, NewFile};
use crate::store::logs::Level;
use crate::store::{FileRow, Reach, Result, Store};
use std::sync::Arc;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

/// The desk where chunks that are worked on outside are asked about. Cheap to clone.
#[derive(Clone)]
pub struct ChunkCalls(Arc<Desk>);

struct Desk {
    store: Arc<dyn Store>,
    files: Files,
    logbook: Logbook,
    reports: Arc<ReportBook>,
    running: SharedRunning,
    _storing: Option<AbortOnDropHandle<()>>,
}

impl ChunkCalls {
    /// The desk of a node whose engine runs chunks.
    pub(in crate::engine) fn beside(engine: &Inner) -> Self {
        Self(Arc::new(Desk {
            store: engine.store.clone(),
            files: engine.files.clone(),
            logbook: engine.logbook.clone(),
            reports: engine.reports.clone(),
            running: engine.running.clone(),
            _storing: None,
        }))
    }

    /// The desk of a node without an engine. Needs a tokio runtime.
    #[must_use]
    pub fn alone(
        store: Arc<dyn Store>,
        files: Files,
        logbook: Logbook,
        bus: LocalBus,
        wake: Arc<Notify>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let reports = Arc::new(ReportBook::new(store.clone(), bus, wake, clock));
        let book = reports.clone();
        let storing = tokio::spawn(async move { book.run().await });
        let _storing = Some(AbortOnDropHandle::new(storing));
        Self(Arc::new(Desk { store, files, logbook, reports, running: SharedRunning::default(), _storing }))
    }

    /// The chunk of a name, while it is under way.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn held(&self, name: &ChunkName) -> Result<Option<HeldChunk>> {
        let found = self.0.store.tasks(&Reach::default(), &[name.task]).await?;
        let current = found.into_iter().find(|task| name.is_current(task));
        Ok(current.map(|task| {
            let origin =
                Origin { task: task.id, tenant: task.tenant.as_str().into(), token: name.token, chunk: name.chunk };
            HeldChunk { desk: self.0.clone(), task, origin }
        }))
    }
}

/// A chunk that was under way when it was looked up a moment ago. What is written through it is guarded once more.
pub struct HeldChunk {
    desk: Arc<Desk>,
    task: Task,
    origin: Origin,
}

impl HeldChunk {
    /// Takes a report between commits. Any rate is taken; the newest value counts.
    pub fn report(&self, report: Reported) {
        self.desk.reports.take(self.task.id, self.origin.token, report);
    }

    /// Takes a line for the task's log.
    pub fn log(&self, level: Level, text: &str) {
        self.desk.logbook.log(&self.origin, level, "handler", text);
    }

    /// Whether somebody asked the task to stop, or this node drains and runs the chunk.
    #[must_use]
    pub fn stop_requested(&self) -> bool {
        let asked = matches!(self.task.state, State::Cancelling | State::Pausing);
        asked || self.desk.running.told(self.task.id, self.origin.token).is_some_and(|told| told >= Told::Stop)
    }

    /// The facts of a file that was uploaded for the task.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn file(&self, id: &str) -> Result<Option<FileRow>> {
        let of = |f: &FileRow| f.owner == self.task.owner || f.owner == self.task.started_by;
        let found = self.desk.files.facts(id).await?;
        Ok(found.filter(|f| f.tenant == self.task.tenant && of(f)))
    }

    /// The facts of a result file of its task that is about to be kept.
    #[must_use]
    pub fn new_file(&self, name: String, content_type: String) -> NewFile {
        NewFile {
            tenant: self.task.tenant.clone(),
            owner: self.task.owner.clone(),
            task: Some(self.task.id),
            name,
            content_type,
            life_ms: ARTIFACT_LIFE_MS,
        }
    }
}
