//! How the folder of a pack looks from outside: names, times and sizes of its manifest and scripts. Two equal looks mean that
//! nobody is in the middle of writing there. Other files, such as a database of the pack, may change as they like.

use crate::config::MANIFEST;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use walkdir::WalkDir;

/// What is compared; two looks of this process only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look(u64);

impl Look {
    /// Looks at a folder. What cannot be read just now is left out, which is another look than one with it.
    pub fn at(folder: &Path) -> Self {
        let counts = |path: &Path| path.ends_with(MANIFEST) || path.extension().is_some_and(|ending| ending == "js");
        let walk = WalkDir::new(folder).sort_by_file_name().into_iter().filter_map(Result::ok);
        let mut hasher = DefaultHasher::new();
        for entry in walk.filter(|entry| entry.file_type().is_file() && counts(entry.path())) {
            let Ok(facts) = entry.metadata() else { continue };
            (entry.path(), facts.modified().ok(), facts.len()).hash(&mut hasher);
        }
        Self(hasher.finish())
    }
}
