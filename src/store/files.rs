//! Uploaded files and results: their bytes in an object store, their facts in the database.
//!
//! The object store is the `object_store` crate's (a local folder; buckets by the same interface). An object is written
//! before its facts, and deleted after them: what exists in the database can be read.

use super::{FileRow, Result, Store, StoreError};
use crate::core::ids::{self, TaskId};
use crate::core::progress::tidy;
use crate::core::time::Millis;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt as _, WriteMultipart};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;

/// The largest upload and the largest result file, bytes.
pub const FILE_BYTES: u64 = 100 * 1024 * 1024;
/// How long an upload is kept, ms.
pub const UPLOAD_LIFE_MS: i64 = 7 * 24 * 3_600_000;
/// How long a result file is kept, ms.
pub const ARTIFACT_LIFE_MS: i64 = 30 * 24 * 3_600_000;
/// How long an upload is kept from the submit of a task that uses it, ms: as long as a failed task may be resumed.
pub const USED_LIFE_MS: i64 = 97 * 24 * 3_600_000;
/// Ids of files that are looked for in one task's params.
const USED_COUNT: usize = 100;
const NAME_CHARS: usize = 255;

/// A file on its way in.
#[derive(Clone, Debug)]
pub struct NewFile {
    /// Whose.
    pub tenant: String,
    /// Whose.
    pub owner: String,
    /// The task it is a result of; absent for uploads.
    pub task: Option<TaskId>,
    /// As the sender calls it; folders are cut off.
    pub name: String,
    /// Its type.
    pub content_type: String,
    /// How long it is kept, ms.
    pub life_ms: i64,
}

/// Files. Cheap to clone.
#[derive(Clone)]
pub struct Files {
    objects: Arc<dyn ObjectStore>,
    store: Arc<dyn Store>,
}

fn fault(e: object_store::Error) -> StoreError {
    match e {
        object_store::Error::NotFound { .. } => StoreError::NotFound,
        other => StoreError::Unavailable(format!("the file store: {other}")),
    }
}

/// The last part of a path in any system's way of writing, without control characters; never empty.
fn file_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let clean: String = last.chars().filter(|c| !c.is_control()).collect();
    let clean = tidy(clean.trim(), NAME_CHARS);
    if clean.is_empty() || clean == "." || clean == ".." { "file".to_owned() } else { clean }
}

/// The texts in params that may be ids of files.
fn ids_in(params: &Value) -> Vec<String> {
    let (mut open, mut ids) = (vec![params], Vec::new());
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) if text.len() == 36 && uuid::Uuid::try_parse(text).is_ok() => ids.push(text.clone()),
            Value::Array(items) => open.extend(items),
            Value::Object(map) => open.extend(map.values()),
            _ => {}
        }
    }
    ids.truncate(USED_COUNT);
    ids
}

impl Files {
    /// Files in a local folder, which is made.
    pub fn in_folder(folder: &Path, store: Arc<dyn Store>) -> Result<Self> {
        let made = std::fs::create_dir_all(folder);
        made.map_err(|e| StoreError::Unavailable(format!("cannot make the folder {}: {e}", folder.display())))?;
        let objects = LocalFileSystem::new_with_prefix(folder).map_err(fault)?;
        Ok(Self { objects: Arc::new(objects), store })
    }

    /// Keeps what a stream brings. `Limit` above [`FILE_BYTES`], and nothing is kept then.
    pub async fn put<E: std::fmt::Display>(
        &self,
        new: NewFile,
        mut body: impl Stream<Item = std::result::Result<Bytes, E>> + Unpin,
    ) -> Result<FileRow> {
        let id = ids::fresh().to_string();
        let path = ObjectPath::from(id.as_str());
        let mut write = WriteMultipart::new(self.objects.put_multipart(&path).await.map_err(fault)?);
        let mut hash = Sha256::new();
        let mut size = 0_u64;
        while let Some(part) = body.next().await {
            let refused = match part {
                Ok(part) => {
                    size += part.len() as u64;
                    hash.update(&part);
                    write.put(part);
                    (size > FILE_BYTES).then(|| StoreError::Limit(format!("a file may have {FILE_BYTES} bytes")))
                }
                Err(e) => Some(StoreError::Unavailable(format!("the upload broke off: {e}"))),
            };
            if let Some(refused) = refused {
                // What was written so far is of no use; if it cannot be removed now, it is only an orphan.
                let _ = write.abort().await;
                return Err(refused);
            }
        }
        write.finish().await.map_err(fault)?;
        let created_at = self.store.now().await?;
        let row = FileRow {
            id,
            tenant: new.tenant,
            owner: new.owner,
            task: new.task,
            name: file_name(&new.name),
            content_type: new.content_type,
            size_bytes: size.cast_signed(),
            sha256: hex::encode(hash.finalize()),
            created_at,
            expires_at: Some(created_at.plus(new.life_ms)),
        };
        self.store.put_file(row.clone()).await?;
        Ok(row)
    }

    /// Keeps the uploads that a new task's params name for as long as the task may need them. Params without an id cost
    /// nothing.
    pub async fn used_by(&self, tenant: &str, params: &Value, created_at: Millis) -> Result<()> {
        let ids = ids_in(params);
        if ids.is_empty() {
            return Ok(());
        }
        self.store.keep_uploads(tenant, &ids, created_at.plus(USED_LIFE_MS)).await
    }

    /// A file's facts.
    pub async fn facts(&self, id: &str) -> Result<Option<FileRow>> {
        self.store.file(id).await
    }

    /// A file's bytes as a stream.
    pub async fn stream(&self, id: &str) -> Result<impl Stream<Item = Result<Bytes>> + use<>> {
        let found = self.objects.get(&ObjectPath::from(id)).await.map_err(fault)?;
        Ok(found.into_stream().map(|part| part.map_err(fault)))
    }

    /// A file's bytes whole.
    pub async fn read(&self, id: &str) -> Result<Bytes> {
        self.objects.get(&ObjectPath::from(id)).await.map_err(fault)?.bytes().await.map_err(fault)
    }

    /// Removes files whose time is over; answers how many.
    pub async fn clean(&self, limit: usize) -> Result<usize> {
        let gone = self.store.expire_files(limit).await?;
        for file in &gone {
            match self.objects.delete(&ObjectPath::from(file.id.as_str())).await.map_err(fault) {
                Ok(()) | Err(StoreError::NotFound) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(gone.len())
    }
}

#[cfg(test)]
mod tests {
    use super::{file_name, ids_in};

    #[test]
    fn a_file_name_keeps_no_folder_and_no_control_character() {
        assert_eq!(file_name("../../etc/passwd"), "passwd");
        assert_eq!(file_name("C:\\data\\客户.csv"), "客户.csv");
        assert_eq!(file_name("a\r\nb.csv"), "ab.csv");
        assert_eq!(file_name(".."), "file");
        assert_eq!(file_name(""), "file");
    }

    #[test]
    fn ids_are_found_wherever_they_stand_in_params() {
        let id = "01934f6e-7c1a-7000-8000-000000000000";
        let params = serde_json::json!({"file": id, "more": [{"x": id}], "text": "no id", "n": 7, id: "a key"});
        assert_eq!(ids_in(&params), [id, id]);
    }
}
