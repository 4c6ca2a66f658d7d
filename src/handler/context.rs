//! What a chunk gets: its task, its checkpoint, and the few things it may do while it runs.
//!
//! The context is the same for every kind of handler. What stands behind it (the engine, or a test) implements
//! [`ChunkHost`]. Effects are gathered here and run in the commit of the checkpoint, under the fencing token: they happen
//! exactly once, or, when the commit is refused, not at all.

use super::HandlerError;
use super::children::ChildrenPage;
use crate::core::child::Child;
use crate::core::effect::{Effect, SqlValue};
use crate::core::family::CHILDREN_PER_CHUNK;
use crate::core::ids::{FencingToken, TaskId};
use crate::core::progress::{MAX_COUNT, Reported};
use crate::core::task::RecordRef;
use crate::core::time::Millis;
use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use utoipa::ToSchema;

/// The task as a handler sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskInfo {
    /// Identity.
    pub id: TaskId,
    /// Whose.
    pub tenant: String,
    /// The declared button.
    pub action: String,
    /// Its title.
    pub title: String,
    /// The user it belongs to.
    pub owner: String,
    /// The business record.
    pub record: Option<RecordRef>,
    /// The params.
    pub params: Value,
    /// The caller's idempotency key.
    pub idempotency_key: Option<String>,
    /// When it was accepted.
    pub created_at: Millis,
    /// The schedule that fired it.
    pub schedule: Option<Value>,
}

/// One chunk on its way in, in the shape that every handler gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChunkIn {
    /// The task.
    pub task: TaskInfo,
    /// Its number, from 1.
    pub chunk: i64,
    /// The attempt, from 1.
    pub attempt: u32,
    /// Grows with each claim; for the WHERE of a handler's own statements.
    pub fencing_token: FencingToken,
    /// Where the last committed chunk said to go on.
    pub checkpoint: Option<Value>,
    /// The code of the failure that this very chunk ended with before: in its last attempt, or before somebody resumed the
    /// task. Absent once a chunk has been committed. Lets a handler stop at a fault once, and pass it when told to go on.
    pub last_error: Option<String>,
    /// Committed progress.
    pub progress: Counted,
    /// End of the task's allowed life.
    pub deadline: Option<Millis>,
}

/// Committed progress, as a handler sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counted {
    /// Units done.
    pub current: i64,
    /// Units in all, if known.
    pub total: Option<i64>,
}

/// A file that belongs to a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileContent {
    /// Its name, as given at the upload.
    pub name: String,
    /// Its bytes.
    pub bytes: Bytes,
}

/// What stands behind a context.
#[async_trait]
pub trait ChunkHost: Send + Sync {
    /// Takes a report between commits.
    fn report(&self, report: Reported);
    /// Takes a log line; `level` is debug, info, warn or error.
    fn log(&self, level: &str, text: String);
    /// Whether somebody asked the task to stop, or the node drains.
    fn stop_requested(&self) -> bool;
    /// Waits until it is.
    async fn stopped(&self);
    /// Asks the database whether this chunk's lease is still the current one.
    async fn lease_is_current(&self) -> bool;
    /// Reads a file that was uploaded for the task.
    async fn open_file(&self, id: &str) -> Result<FileContent, HandlerError>;
    /// Keeps a result file; answers its id.
    async fn save_artifact(&self, name: &str, content_type: &str, bytes: Bytes) -> Result<String, HandlerError>;
    /// Reads from business tables in taskbell's own database.
    async fn query(&self, sql: &'static str, values: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>, HandlerError>;
    /// Whether children could be taken as they are.
    fn check_children(&self, _children: &[Child]) -> Result<(), HandlerError> {
        Ok(())
    }
    /// Reads a page of the task's children.
    async fn children(&self, _after: Option<TaskId>) -> Result<ChildrenPage, HandlerError> {
        Err(HandlerError::permanent("unsupported", "This step has no children to look at."))
    }
}

/// What a handler works with during one chunk.
pub struct ChunkContext {
    chunk: ChunkIn,
    host: Arc<dyn ChunkHost>,
    effects: Mutex<Vec<Effect>>,
    children: Mutex<Vec<(TaskId, Child)>>,
}

impl ChunkContext {
    /// A context over a host.
    #[must_use]
    pub fn new(chunk: ChunkIn, host: Arc<dyn ChunkHost>) -> Self {
        Self { chunk, host, effects: Mutex::default(), children: Mutex::default() }
    }

    /// The chunk as it came in.
    #[must_use]
    pub fn chunk_in(&self) -> &ChunkIn {
        &self.chunk
    }

    /// The task.
    #[must_use]
    pub fn task(&self) -> &TaskInfo {
        &self.chunk.task
    }

    /// The params.
    #[must_use]
    pub fn params(&self) -> &Value {
        &self.chunk.task.params
    }

    /// Where the last committed chunk said to go on; `None` at the start.
    #[must_use]
    pub fn checkpoint(&self) -> Option<&Value> {
        self.chunk.checkpoint.as_ref()
    }

    /// Committed progress.
    #[must_use]
    pub fn progress_so_far(&self) -> Counted {
        self.chunk.progress
    }

    /// Grows with each claim; for the WHERE of a handler's own statements.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.chunk.fencing_token
    }

    /// Reports work that the handler itself has committed already. Any rate is taken; the newest value counts.
    pub fn progress(&self, current: i64, total: Option<i64>, message: Option<&str>) {
        self.report(Reported {
            current: Some(current.clamp(0, MAX_COUNT)),
            total: total.map(|t| Some(t.clamp(0, MAX_COUNT))),
            message: message.map(|m| Some(m.to_owned())),
            ..Reported::default()
        });
    }

    /// Reports with all fields.
    pub fn report(&self, report: Reported) {
        self.host.report(report);
    }

    /// Writes a line into the task's log.
    pub fn log(&self, text: impl Into<String>) {
        self.host.log("info", text.into());
    }

    /// Writes a line of a level (debug, info, warn, error).
    pub fn log_at(&self, level: &str, text: impl Into<String>) {
        self.host.log(level, text.into());
    }

    /// Whether the chunk should come to an end: somebody asked the task to stop, or the node drains.
    #[must_use]
    pub fn stop_requested(&self) -> bool {
        self.host.stop_requested()
    }

    /// Waits until the chunk should come to an end; for `select!` beside slow work.
    pub async fn stopped(&self) {
        self.host.stopped().await;
    }

    /// Asks the database whether this chunk's lease is still the current one. What the handler writes elsewhere is safe
    /// only while it is, and safest with the token in its own WHERE.
    pub async fn lease_is_current(&self) -> bool {
        self.host.lease_is_current().await
    }

    /// Reads a file that was uploaded for the task.
    pub async fn open_file(&self, id: &str) -> Result<FileContent, HandlerError> {
        self.host.open_file(id).await
    }

    /// Keeps a result file for the task; answers its id.
    pub async fn artifact(&self, name: &str, content_type: &str, bytes: Bytes) -> Result<String, HandlerError> {
        self.host.save_artifact(name, content_type, bytes).await
    }

    /// Reads from business tables in taskbell's own database: the rows of a statement with bound values.
    pub async fn query(&self, sql: &'static str, values: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>, HandlerError> {
        self.host.query(sql, values).await
    }

    /// What goes into the commit of this chunk: bound statements on business tables in taskbell's own database.
    #[must_use]
    pub fn effects(&self) -> Effects<'_> {
        Effects(self)
    }

    /// Puts a statement into the commit of this chunk: it happens with the checkpoint, exactly once, or not at all.
    pub fn execute(&self, sql: &'static str, values: Vec<SqlValue>) {
        self.execute_many(sql, vec![values]);
    }

    /// As [`Self::execute`], once for each list of values.
    pub fn execute_many(&self, sql: &'static str, rows: Vec<Vec<SqlValue>>) {
        self.effects.lock().unwrap_or_else(PoisonError::into_inner).push(Effect { sql, rows });
    }

    /// Submits a child: a task of the same tenant and owner, written with the commit of this chunk, exactly once, or not at
    /// all. Answers the id that it will have, unless its idempotency key is held by another task.
    ///
    /// # Errors
    /// `too-many-children` beyond [`CHILDREN_PER_CHUNK`]. What is wrong with its fields is told at the end of the chunk, which
    /// then fails as a whole.
    pub fn submit(&self, child: Child) -> Result<TaskId, HandlerError> {
        let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
        if children.len() == CHILDREN_PER_CHUNK {
            let text = format!("A chunk may submit at most {CHILDREN_PER_CHUNK} children.");
            return Err(HandlerError::permanent("too-many-children", text));
        }
        let id = TaskId::new();
        children.push((id, child));
        Ok(id)
    }

    /// Whether children could be taken as they are; for handlers that keep work of their own before the chunk is committed.
    pub fn check_children(&self, children: &[Child]) -> Result<(), HandlerError> {
        if children.is_empty() { Ok(()) } else { self.host.check_children(children) }
    }

    /// How many children this chunk has submitted.
    #[must_use]
    pub fn submitted_count(&self) -> usize {
        self.children.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// How many children the task has in each state, and the first page of them.
    pub async fn children(&self) -> Result<ChildrenPage, HandlerError> {
        self.children_after(None).await
    }

    /// The page of children after one.
    pub async fn children_after(&self, after: Option<TaskId>) -> Result<ChildrenPage, HandlerError> {
        self.host.children(after).await
    }

    /// The children that were submitted; called by the engine when the chunk has answered.
    #[must_use]
    pub fn take_children(&self) -> Vec<(TaskId, Child)> {
        std::mem::take(&mut self.children.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was put into the commit; called by the engine when the chunk has answered.
    #[must_use]
    pub fn take_effects(&self) -> Vec<Effect> {
        std::mem::take(&mut self.effects.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The commit of a chunk, as its handler may add to it; see [`ChunkContext::effects`].
#[derive(Clone, Copy)]
pub struct Effects<'a>(&'a ChunkContext);

impl Effects<'_> {
    /// As [`ChunkContext::execute`].
    pub fn execute(self, sql: &'static str, values: Vec<SqlValue>) {
        self.0.execute(sql, values);
    }

    /// As [`ChunkContext::execute_many`].
    pub fn execute_many(self, sql: &'static str, rows: Vec<Vec<SqlValue>>) {
        self.0.execute_many(sql, rows);
    }
}
