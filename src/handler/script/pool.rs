//! The script processes of a node: some are kept ready, more are started when all are busy, and none is used again after
//! something went wrong in it.
//!
//! A chunk never waits for another script to end unless [`MOST_PER_KEPT`] times as many run already as are kept. A process
//! that is let go in the middle of a chunk (a timeout, a lost lease, a task that was forced to end) is killed, whatever it
//! does at that moment, and replaced.

use super::child::{Alive, Child, LastBreath};
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::{io, thread};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Processes that may run at once for each that is kept ready.
const MOST_PER_KEPT: usize = 8;

/// How a pool is made.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// Processes that are kept ready; at least 1.
    pub size: usize,
    /// The binary that has the command `script-worker`.
    pub exe: PathBuf,
}

impl PoolSettings {
    /// As many processes as this machine can run at once, at most 4, of the binary that runs now.
    pub fn of_this_binary() -> io::Result<Self> {
        let parallelism = thread::available_parallelism().map_or(1, usize::from);
        Ok(Self { size: parallelism.min(4), exe: std::env::current_exe()? })
    }
}

/// Script processes.
pub struct ScriptPool {
    settings: PoolSettings,
    places: Arc<Semaphore>,
    ready: Mutex<Vec<Child>>,
    living: Arc<AtomicUsize>,
    runtime: Handle,
    this: Weak<Self>,
}

impl ScriptPool {
    /// A pool whose processes start in the background. Called inside of a tokio runtime; all processes end with the pool.
    #[must_use]
    pub fn start(settings: PoolSettings) -> Arc<Self> {
        let settings = PoolSettings { size: settings.size.max(1), ..settings };
        let pool = Arc::new_cyclic(|this| Self {
            places: Arc::new(Semaphore::new(settings.size * MOST_PER_KEPT)),
            ready: Mutex::default(),
            living: Arc::default(),
            runtime: Handle::current(),
            this: this.clone(),
            settings,
        });
        pool.fill();
        pool
    }

    /// How many processes live at this moment, busy ones and those that are about to be ready included.
    #[must_use]
    pub fn living_count(&self) -> usize {
        self.living.load(Ordering::Acquire)
    }

    /// The ids of the processes that wait for a chunk.
    #[must_use]
    pub fn ready_processes(&self) -> Vec<u32> {
        self.lock().iter().filter_map(Child::id).collect()
    }

    /// A process for one chunk.
    pub(super) async fn take(&self) -> io::Result<Lent> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(io::Error::other)?;
        let child = loop {
            let ready = self.lock().pop();
            let Some(mut child) = ready else {
                break Child::start(&self.settings.exe, Alive::count(&self.living)).await?;
            };
            if child.is_alive() {
                break child;
            }
        };
        Ok(Lent { child: Some(child), fit: false, pool: self.this.clone(), _place: place })
    }

    /// Starts what is missing.
    fn fill(&self) {
        while self.living_count() < self.settings.size {
            let alive = Alive::count(&self.living);
            let (exe, pool) = (self.settings.exe.clone(), self.this.clone());
            self.runtime.spawn(async move {
                match (Child::start(&exe, alive).await, pool.upgrade()) {
                    (Ok(child), Some(pool)) => pool.keep(child),
                    // The next chunk tries again, and tells its task.
                    (Err(error), _) => tracing::error!(%error, exe = %exe.display(), "no script process"),
                    (Ok(_), None) => {}
                }
            });
        }
    }

    /// Keeps a process that is ready, unless there are enough.
    fn keep(&self, child: Child) {
        let mut ready = self.lock();
        if ready.len() < self.settings.size {
            ready.push(child);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Child>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A process that runs a chunk. Dropped, it goes back to its pool if it was given back, and is killed if not.
pub(super) struct Lent {
    child: Option<Child>,
    fit: bool,
    pool: Weak<ScriptPool>,
    _place: OwnedSemaphorePermit,
}

impl Lent {
    /// The chunk has ended and nothing went wrong in the process: another chunk may use it.
    pub fn give_back(mut self) {
        self.fit = true;
    }

    /// Makes sure that the process ends, and tells how it did.
    pub async fn last_breath(mut self) -> LastBreath {
        self.child.take().expect("it is held until it is dropped").last_breath().await
    }
}

impl Deref for Lent {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.child.as_ref().expect("it is held until it is dropped")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Child {
        self.child.as_mut().expect("it is held until it is dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(pool) = self.pool.upgrade() else { return };
        match self.child.take() {
            Some(mut child) if self.fit && !child.is_used_up() => {
                let runtime = pool.runtime.clone();
                runtime.spawn(async move {
                    match child.ready().await {
                        Ok(()) => pool.keep(child),
                        Err(error) => {
                            tracing::warn!(%error, "a script process did not come back");
                            drop(child);
                            pool.fill();
                        }
                    }
                });
            }
            child => {
                drop(child);
                pool.fill();
            }
        }
    }
}
