//! Handlers that are JavaScript files: `export default async function (task, cx)`, or the body of a function with `V8` in it;
//! one call for each chunk.
//!
//! A script runs in a process of its own ([`pool`]), never in the server: the interpreter does not look at its clock
//! inside of native loops and may end its process when memory is short, so only a process can be stopped for sure. Three
//! walls stand one behind the other. The interpreter holds the script to its memory, stack and time ([`worker`]). The process
//! holds itself to address space, files and dumps ([`limits`]). The server kills the process when the time is over by
//! [`limits::GRACE`], and takes for granted that a process may end at any moment.
//!
//! What a script can reach is what `js/prelude.js` gives it, all of it text and numbers in frames ([`protocol`]). A process
//! whose interpreter was broken out of would still speak nothing but these frames, about its own chunk.
//!
//! Must never: run a line of a script in the server ([`check`] only parses), give a process the server's environment, or
//! use a process again after it was stopped in the middle.

mod calls;
mod child;
mod drive;
mod file;
mod library;
pub mod limits;
mod pool;
mod protocol;
pub mod worker;

pub use file::{check, check_text};
pub use library::Library;
pub use pool::{PoolSettings, ScriptPool};

use super::tables::{ChunkTables, TableData};
use super::{ChunkContext, Handler, HandlerError};
use crate::core::budget::Budgets;
use crate::core::chunk::{Failure, Outcome};
use crate::core::task::ErrorKind;
use crate::outbound::{AllowList, Outbound};
use async_trait::async_trait;
use file::ScriptFile;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use protocol::World;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A script that runs the chunks of an action.
pub struct ScriptHandler {
    file: Arc<ScriptFile>,
    budgets: Budgets,
    timeout: Duration,
    pool: Arc<ScriptPool>,
    library: Arc<Library>,
    outbound: Option<Arc<Outbound>>,
    hosts: Option<AllowList>,
    tables: Option<Arc<dyn TableData>>,
    user_level: u32,
    may_submit: bool,
}

impl ScriptHandler {
    /// A handler for a script file, which is read at once. `budgets` and `timeout` are of one chunk. Fails when the file
    /// cannot be read, is no UTF-8 or too long; what is wrong in the script itself is told by [`check`], or by the first
    /// chunk.
    pub fn new(
        path: impl Into<PathBuf>,
        budgets: Budgets,
        timeout: Duration,
        pool: Arc<ScriptPool>,
    ) -> io::Result<Self> {
        Ok(Self::of(Arc::new(ScriptFile::open(path.into())?), budgets, timeout, pool))
    }

    /// A handler for a script of a library, which it may run as well as its neighbours; none when there is no such key.
    #[must_use]
    pub fn of_library(
        library: &Arc<Library>,
        key: &str,
        budgets: Budgets,
        timeout: Duration,
        pool: Arc<ScriptPool>,
    ) -> Option<Self> {
        Some(Self::of(library.file(key)?, budgets, timeout, pool).with_library(library.clone()))
    }

    fn of(file: Arc<ScriptFile>, budgets: Budgets, timeout: Duration, pool: Arc<ScriptPool>) -> Self {
        Self {
            file,
            budgets,
            timeout,
            pool,
            library: Arc::default(),
            outbound: None,
            hosts: None,
            tables: None,
            user_level: 0,
            may_submit: true,
        }
    }

    /// The same for a pack whose manifest does not let it submit children.
    #[must_use]
    pub fn without_children(mut self) -> Self {
        self.may_submit = false;
        self
    }

    /// The same with the scripts that it may run.
    #[must_use]
    pub fn with_library(mut self, library: Arc<Library>) -> Self {
        self.library = library;
        self
    }

    /// The same with a way to other hosts, to all that it lists.
    #[must_use]
    pub fn with_outbound(mut self, outbound: Arc<Outbound>) -> Self {
        self.outbound = Some(outbound);
        self
    }

    /// The same held to these of the hosts that its way out lists: what the manifest of its pack says.
    #[must_use]
    pub fn with_hosts(mut self, hosts: AllowList) -> Self {
        self.hosts = Some(hosts);
        self
    }

    /// The same with the tables of its pack.
    #[must_use]
    pub fn with_tables(mut self, tables: Arc<dyn TableData>) -> Self {
        self.tables = Some(tables).filter(|data| !data.tables().is_empty());
        self
    }

    /// The same for an action that only some may start: what `V8.CurrentUser.Level` tells its script, up to 9,999.
    #[must_use]
    pub fn with_user_level(mut self, level: u32) -> Self {
        self.user_level = level;
        self
    }

    /// What its scripts are told of the server.
    fn world(&self) -> World {
        let tables = self.tables.iter().flat_map(|data| data.tables()).map(|table| table.name.clone());
        World {
            tables: tables.collect(),
            user_level: self.user_level,
            utc_offset_seconds: TimeZone::system().to_offset(Timestamp::now()).seconds(),
        }
    }
}

#[async_trait]
impl Handler for ScriptHandler {
    async fn run(&self, cx: &ChunkContext) -> Result<Outcome, HandlerError> {
        let source = self.file.text().await.map_err(|error| {
            let failure = Failure::new(ErrorKind::Handler, "script-unreadable", "The script could not be read.");
            HandlerError::Failed(Box::new(failure.detail(format!("{}: {error}", self.file.name()))))
        })?;
        let tables = self.tables.as_ref().map(|data| ChunkTables::new(Arc::clone(data), self.timeout));
        let drive = drive::Drive {
            name: self.file.name(),
            source: &source,
            budgets: self.budgets,
            timeout: self.timeout,
            cx,
            library: &self.library,
            outbound: self.outbound.as_deref(),
            hosts: self.hosts.as_ref(),
            tables: tables.as_ref(),
            may_submit: self.may_submit,
            world: self.world(),
        };
        if let Some(tables) = &tables
            && let Some(answer) = tables.answered(cx.chunk_in()).await?
        {
            cx.log("This step has changed the tables of its pack before; what it answered then counts.");
            return drive.outcome(answer.as_bytes());
        }
        let lent = tokio::select! {
            lent = self.pool.take() => lent,
            () = cx.stopped() => return Err(HandlerError::HandedBack),
        };
        let lent = lent.map_err(|error| {
            let failure =
                Failure::new(ErrorKind::Internal, "script-process-unavailable", "The script could not be started.");
            HandlerError::Failed(Box::new(failure.detail(error.to_string())))
        })?;
        drive.run(lent).await
    }
}
