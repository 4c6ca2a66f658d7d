//! One process serves a SQLite file. The operating system holds the lock, so a process that died holds nothing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The lock; given back when it is dropped.
#[derive(Debug)]
pub struct ServeLock {
    _file: File,
}

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum LockFault {
    /// Somebody else serves the file.
    #[error(
        "another taskbell serves {} already; a SQLite file has one serving process. Stop that one, or use another file",
        .0.display()
    )]
    Taken(PathBuf),
    /// The lock file cannot be made.
    #[error("cannot lock {}: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
}

impl ServeLock {
    /// Takes the lock of a database file: `<file>.lock` beside it.
    ///
    /// # Errors
    /// When another process holds it, or the file cannot be made.
    pub fn take(database: &Path) -> Result<Self, LockFault> {
        let mut name = database.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        let fault = |e| LockFault::Io(path.clone(), e);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(fault)?;
        }
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(fault)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(LockFault::Taken(database.to_owned())),
            Err(TryLockError::Error(e)) => Err(fault(e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_server_of_the_same_file_is_refused_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a/taskbell.db");
        let held = ServeLock::take(&database).unwrap();
        let refused = ServeLock::take(&database).unwrap_err().to_string();
        assert!(refused.contains("another taskbell serves") && refused.contains("taskbell.db"), "{refused}");
        drop(held);
        ServeLock::take(&database).unwrap();
    }
}
