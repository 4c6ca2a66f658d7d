//! What is kept beside the tasks: who may come in, and the facts of files.
//!
//! Must never hold a secret that lets somebody in: keys and sessions are known by their hash alone.

use crate::core::ids::TaskId;
use crate::core::principal::Principal;
use crate::core::time::Millis;

/// An API key as stored: the hash, never the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// SHA-256 of the key, hex.
    pub hash: String,
    /// Who it makes its bearer.
    pub principal: Principal,
    /// When it was made.
    pub created_at: Millis,
    /// When it ends.
    pub expires_at: Option<Millis>,
}

/// A session of the login page, by the hash of its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// SHA-256 of the cookie's secret, hex.
    pub hash: String,
    /// Who is signed in.
    pub principal: Principal,
    /// Since when.
    pub created_at: Millis,
    /// Until when.
    pub expires_at: Millis,
}

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
