//! The scripts that a script may run by their key: `cx.run(key, params)`.
//!
//! A library holds names and where the texts come from; it runs nothing. A script reaches the scripts of its own library
//! only, and a key outside of it is told in the same words whether or not another library has it.

use super::file::ScriptFile;
use crate::core::pack::{Pack, Script};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Scripts by key.
#[derive(Default)]
pub struct Library(BTreeMap<String, Arc<ScriptFile>>);

impl Library {
    /// A library of script files, which are read at once; a later one replaces an earlier one of the same key. A file that
    /// changes is read again by the next chunk that runs it. Fails as [`super::ScriptHandler::new`] does.
    pub fn open(files: impl IntoIterator<Item = (String, PathBuf)>) -> io::Result<Self> {
        let open = |(key, path)| Ok((key, Arc::new(ScriptFile::open(path)?)));
        files.into_iter().map(open).collect::<io::Result<_>>().map(Self)
    }

    /// The scripts of a pack, as it was read.
    #[must_use]
    pub fn of_pack(pack: &Pack) -> Self {
        let fixed = |(key, script): (&String, &Script)| {
            (key.clone(), Arc::new(ScriptFile::fixed(&format!("{}/{}", pack.name, script.file), &script.source)))
        };
        Self(pack.scripts.iter().map(fixed).collect())
    }

    /// The file of a script.
    pub(super) fn file(&self, key: &str) -> Option<Arc<ScriptFile>> {
        self.0.get(key).cloned()
    }

    /// The name and the text of a script; none when there is no such key.
    pub(super) async fn get(&self, key: &str) -> io::Result<Option<(&str, Bytes)>> {
        let Some(file) = self.0.get(key) else { return Ok(None) };
        Ok(Some((file.name(), file.text().await?)))
    }
}
