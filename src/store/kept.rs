//! What is kept of files: their facts. Their bytes are elsewhere.

use crate::core::ids::TaskId;
use crate::core::time::Millis;

/// An uploaded file or a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRow {
    /// UUIDv7, text.
    pub id: String,
    /// Whose.
    pub tenant: String,
    /// Whose.
    pub owner: String,
    /// The task it is a result of; absent for uploads.
    pub task: Option<TaskId>,
    /// Its name, at most 255 characters, without folders.
    pub name: String,
    /// Its type.
    pub content_type: String,
    /// Bytes.
    pub size_bytes: i64,
    /// SHA-256, hex.
    pub sha256: String,
    /// When it came.
    pub created_at: Millis,
    /// When it goes.
    pub expires_at: Option<Millis>,
}
