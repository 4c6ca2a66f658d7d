//! A script file: read at the start, and again when its time or its size has changed. A chunk that runs ends on the text that
//! it began with. A script of a pack is held as the pack was read, and changes only with all of it.

use super::limits::SOURCE_BYTES;
use bytes::Bytes;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

pub(super) struct ScriptFile {
    /// None for a text that does not change.
    path: Option<PathBuf>,
    name: String,
    read: Mutex<(Version, Bytes)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Version {
    modified_at: Option<SystemTime>,
    bytes: u64,
}

impl From<&Metadata> for Version {
    fn from(metadata: &Metadata) -> Self {
        Self { modified_at: metadata.modified().ok(), bytes: metadata.len() }
    }
}

impl ScriptFile {
    pub fn open(path: PathBuf) -> io::Result<Self> {
        let read = Mutex::new(read(&path)?);
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { path: Some(path), name, read })
    }

    /// A text that is given, and stays.
    pub fn fixed(name: &str, text: &str) -> Self {
        let version = Version { modified_at: None, bytes: text.len() as u64 };
        let read = Mutex::new((version, Bytes::copy_from_slice(text.as_bytes())));
        Self { path: None, name: name.to_owned(), read }
    }

    /// What it is called in messages; the folders above it are nobody's business.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its text as it is now.
    pub async fn text(&self) -> io::Result<Bytes> {
        let Some(path) = self.path.clone() else {
            return Ok(self.read.lock().unwrap_or_else(PoisonError::into_inner).1.clone());
        };
        let now = Version::from(&tokio::fs::metadata(&path).await?);
        {
            let held = self.read.lock().unwrap_or_else(PoisonError::into_inner);
            if held.0 == now {
                return Ok(held.1.clone());
            }
        }
        let fresh = tokio::task::spawn_blocking(move || read(&path)).await.map_err(io::Error::other)??;
        let text = fresh.1.clone();
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        tracing::info!(script = self.name, "a script has changed and was read again");
        Ok(text)
    }
}

/// The version is taken before the text: a change in between is seen the next time.
fn read(path: &Path) -> io::Result<(Version, Bytes)> {
    let metadata = std::fs::metadata(path)?;
    if metadata.len() > SOURCE_BYTES {
        return Err(io::Error::other(format!("has {} bytes, the limit of a script is {SOURCE_BYTES}", metadata.len())));
    }
    let text = std::fs::read_to_string(path)?;
    Ok((Version::from(&metadata), Bytes::from(text)))
}

/// Whether a text is a script that could be run, without running it; if not, where and why: `name:line:column: …`.
pub fn check_text(name: &str, text: &str) -> Result<(), String> {
    if text.len() as u64 > SOURCE_BYTES {
        return Err(format!("{name}: has {} bytes, the limit of a script is {SOURCE_BYTES}", text.len()));
    }
    super::worker::parse(name, text.as_bytes().to_vec())
}

/// Whether a file is a script that could be run, without running it; if not, where and why.
pub fn check(path: &Path) -> Result<(), String> {
    let file = ScriptFile::open(path.to_owned()).map_err(|error| error.to_string())?;
    let text = file.read.into_inner().unwrap_or_else(PoisonError::into_inner).1;
    super::worker::parse(&file.name, text.to_vec())
}
