//! What stands behind a chunk's context while it runs here.

use super::families;
use super::logbook::{Logbook, Origin};
use super::reports::ReportBook;
use super::running::{Told, hears};
use crate::core::child::Child;
use crate::core::effect::SqlValue;
use crate::core::ids::{FencingToken, TaskId};
use crate::core::progress::Reported;
use crate::core::resolve::Resolver;
use crate::core::task::Task;
use crate::handler::children::ChildrenPage;
use crate::handler::{ChunkHost, FileContent, HandlerError};
use crate::store::files::{ARTIFACT_LIFE_MS, Files, NewFile};
use crate::store::logs::Level;
use crate::store::{FileRow, Reach, Store, StoreError};
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::watch;

/// The host of one chunk.
pub(super) struct Host {
    pub store: Arc<dyn Store>,
    pub files: Files,
    pub reports: Arc<ReportBook>,
    pub logbook: Logbook,
    pub origin: Origin,
    pub owner: String,
    /// Who submitted it, perhaps for the owner, and so may have brought its files.
    pub started_by: String,
    pub heard: watch::Receiver<Told>,
    /// The task as it was claimed, and what checks its children.
    pub task: Task,
    pub resolver: Arc<Resolver>,
}

impl Host {
    fn id(&self) -> TaskId {
        self.origin.task
    }

    fn token(&self) -> FencingToken {
        self.origin.token
    }
}

/// A fault of the database or the file store: not the handler's, and worth another try.
fn fault(e: StoreError) -> HandlerError {
    match e {
        StoreError::NotFound => HandlerError::permanent("not-found", "What this step needs does not exist any more."),
        StoreError::Limit(text) => HandlerError::permanent("limit", text),
        StoreError::Unsupported(what) => HandlerError::permanent("unsupported", what),
        other => {
            tracing::warn!(error = %other, "a handler's request to the store failed");
            HandlerError::retry("store", "The database could not answer. It will be tried again.")
        }
    }
}

#[async_trait]
impl ChunkHost for Host {
    fn report(&self, report: Reported) {
        self.reports.take(self.id(), self.token(), report);
    }

    fn log(&self, level: &str, text: String) {
        self.logbook.log(&self.origin, Level::parse(level), "handler", &text);
    }

    fn stop_requested(&self) -> bool {
        *self.heard.borrow() >= Told::Stop
    }

    async fn stopped(&self) {
        hears(&self.heard, Told::Stop).await;
    }

    async fn lease_is_current(&self) -> bool {
        let found = self.store.tasks(&Reach::default(), &[self.id()]).await;
        found.is_ok_and(|t| t.first().is_some_and(|t| t.fencing_token == self.token() && t.under_way()))
    }

    async fn open_file(&self, id: &str) -> Result<FileContent, HandlerError> {
        let facts = self.files.facts(id).await.map_err(fault)?;
        let from = |f: &FileRow| f.owner == self.owner || f.owner == self.started_by;
        let mine = facts.filter(|f| *f.tenant == *self.origin.tenant && from(f));
        let Some(facts) = mine else {
            return Err(HandlerError::permanent(
                "file-not-found",
                "The file does not exist any more. Upload it again.",
            ));
        };
        Ok(FileContent { name: facts.name, bytes: self.files.read(id).await.map_err(fault)? })
    }

    async fn save_artifact(&self, name: &str, content_type: &str, bytes: Bytes) -> Result<String, HandlerError> {
        let new = NewFile {
            tenant: self.origin.tenant.to_string(),
            owner: self.owner.clone(),
            task: Some(self.id()),
            name: name.to_owned(),
            content_type: content_type.to_owned(),
            life_ms: ARTIFACT_LIFE_MS,
        };
        let body = futures_util::stream::iter([Ok::<_, std::convert::Infallible>(bytes)]);
        Ok(self.files.put(new, body).await.map_err(fault)?.id)
    }

    fn check_children(&self, children: &[Child]) -> Result<(), HandlerError> {
        let children = children.iter().map(|child| (TaskId::new(), child.clone())).collect();
        let refused = |failure| HandlerError::Failed(Box::new(failure));
        self.resolver.children(&self.task, children).map(drop).map_err(refused)
    }

    async fn children(&self, after: Option<TaskId>) -> Result<ChildrenPage, HandlerError> {
        families::page(self.store.as_ref(), self.id(), after).await.map_err(fault)
    }

    async fn query(&self, sql: &'static str, values: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>, HandlerError> {
        self.store.query(sql, values).await.map_err(fault)
    }
}
