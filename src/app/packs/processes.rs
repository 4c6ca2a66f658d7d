//! The processes that run scripts, started with the first script that needs them: a node without scripts has none, and a pack
//! may come while it runs.

use crate::handler::script::{PoolSettings, ScriptPool};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The processes of a node.
pub(in crate::app) struct ScriptProcesses {
    size: usize,
    exe: Option<PathBuf>,
    pool: Mutex<Option<Arc<ScriptPool>>>,
}

impl ScriptProcesses {
    /// None yet; at most `size` at once, of this binary unless another one is named.
    pub fn new(size: usize, exe: Option<PathBuf>) -> Arc<Self> {
        Arc::new(Self { size, exe, pool: Mutex::new(None) })
    }

    /// The pool, which is started by the first call.
    ///
    /// # Errors
    /// When this binary cannot be found.
    pub fn pool(&self) -> io::Result<Arc<ScriptPool>> {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pool.as_ref() {
            return Ok(pool.clone());
        }
        let settings = match &self.exe {
            Some(exe) => PoolSettings { size: self.size, exe: exe.clone() },
            None => PoolSettings::of_this_binary()?,
        };
        Ok(pool.insert(ScriptPool::start(settings)).clone())
    }
}
