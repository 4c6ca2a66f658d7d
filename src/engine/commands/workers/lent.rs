//! A chunk on its way to a worker outside.
//!
//! It is claimed in the database before the worker has it, so it may get lost in between: the poll has ended, or the client
//! has gone away. Whoever holds a [`Lent`] says when the answer has been handed to the connection; one that is dropped before
//! is given back at once, without using an attempt. Its token is raised by that, for nobody knows whether the worker read the
//! answer after all. What is lost behind the connection is found by the sweep.

use super::Shared;
use crate::core::lifecycle::ChunkEnd;
use crate::core::task::Task;
use crate::engine::measure;
use crate::handler::ChunkIn;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// A chunk as a worker gets it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChunkOut {
    /// The chunk, as every handler gets it.
    #[serde(flatten)]
    pub chunk: ChunkIn,
    /// How long the lease lasts without a renewal.
    pub lease_ms: i64,
    /// How long the chunk may take in all; no renewal goes beyond it.
    pub timeout_ms: i64,
}

/// A claimed chunk that is not delivered yet.
pub struct Lent {
    /// What the worker gets.
    pub out: ChunkOut,
    task: Option<Box<Task>>,
    shared: Arc<Shared>,
}

impl Lent {
    pub(super) fn new(out: ChunkOut, task: Task, shared: Arc<Shared>) -> Self {
        Self { out, task: Some(Box::new(task)), shared }
    }

    /// The answer with this chunk has been handed to the connection.
    pub fn delivered(mut self) {
        self.task = None;
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(task) = self.task.take() else { return };
        let shared = self.shared.clone();
        let (id, chunk) = (task.id, self.out.chunk.chunk);
        tokio::spawn(async move {
            let end = ChunkEnd::Undelivered;
            let commit = shared.ending(&task, task.fencing_token, chunk, end.clone());
            match shared.commits.call(commit).await {
                Ok(committed) => measure::chunk_ended(&end, &committed.ended),
                Err(e) => tracing::warn!(task = %id, error = %e, "a chunk that reached no worker is left to the sweep"),
            }
        });
    }
}
