//! What a commit changed, as it travels from the store over the bus to whoever watches.

use super::ids::{Head, Revision, TaskId};
use super::task::{RecordRef, Task};
use serde::{Deserialize, Serialize};

/// What a commit changed for somebody who watches. It travels between nodes as JSON, so that a field that a version adds has
/// to be one that others can do without.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// A task is new or another one than before.
    Task(Box<Task>),
    /// A task is gone.
    Gone {
        /// Whose tenant.
        tenant: String,
        /// Whose.
        owner: String,
        /// Which.
        id: TaskId,
        /// One above its last.
        revision: Revision,
        /// The owner's head.
        head: Head,
        /// The business record it belonged to.
        record: Option<RecordRef>,
    },
}

impl Change {
    /// The tenant and the owner whose center it belongs to.
    #[must_use]
    pub fn owner(&self) -> (&str, &str) {
        match self {
            Self::Task(task) => (&task.tenant, &task.owner),
            Self::Gone { tenant, owner, .. } => (tenant, owner),
        }
    }

    /// The task.
    #[must_use]
    pub fn task_id(&self) -> TaskId {
        match self {
            Self::Task(task) => task.id,
            Self::Gone { id, .. } => *id,
        }
    }

    /// The business record it belongs to.
    #[must_use]
    pub fn record(&self) -> Option<&RecordRef> {
        match self {
            Self::Task(task) => task.record.as_ref(),
            Self::Gone { record, .. } => record.as_ref(),
        }
    }

    /// The owner's head after it.
    #[must_use]
    pub fn head(&self) -> Head {
        match self {
            Self::Task(task) => task.head,
            Self::Gone { head, .. } => *head,
        }
    }
}
