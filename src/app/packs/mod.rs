//! The packs of a node: read at the start, and again when their folders change, while the node runs.
//!
//! A folder is loaded when two looks in a row found it the same, so that nobody is met in the middle of copying. Everything
//! that can be wrong is found before anything is changed: a version that cannot be loaded is told (in the log, on the board
//! that the API shows, in the metrics) and the one before it stays. One that can be loaded takes its place at once, for the
//! next chunk of every task; a chunk that runs ends with the handler that it began with. A folder that is gone takes its
//! actions with it, and their tasks wait.
//!
//! Must never load a pack that the database has not heard of: a claim asks it whether the pack is switched on.

mod handlers;
mod look;
mod processes;
mod read;

pub(super) use handlers::builder;
pub(super) use processes::ScriptProcesses;
pub(crate) use read::check;

use crate::config::{DatabaseUrl, Manifest, PackFaults};
use crate::core::action::{Action, Actions};
use crate::core::metric;
use crate::core::pack::{PackBoard, PackSeen};
use crate::core::time::Clock;
use crate::handler::{Handler, Handlers, Registry};
use crate::store::{PackLoaded, Store, StoreError};
use look::Look;
use metrics::{counter, gauge};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Handlers by the keys of their actions.
pub(super) type HandlersByAction = BTreeMap<String, Arc<dyn Handler>>;

/// Makes the handlers of a pack: its manifest, its actions as the core knows them, each with the key of its script, and the
/// address of its own database.
pub(super) type Build =
    dyn Fn(&Manifest, &[(Arc<Action>, String)], &DatabaseUrl) -> Result<HandlersByAction, String> + Send + Sync;

/// What a loader is made of.
pub(super) struct PackParts {
    /// Where the packs are.
    pub dir: PathBuf,
    /// Where those have a database that name none.
    pub data: PathBuf,
    /// How often the folders are looked at.
    pub poll: Duration,
    /// The environment, for secrets.
    pub env: BTreeMap<String, String>,
    /// The table of actions, with those of the configuration in it.
    pub actions: Actions,
    /// The table of handlers; none on a node that runs nothing.
    pub registry: Option<Registry>,
    /// Makes handlers.
    pub build: Box<Build>,
    /// The database.
    pub store: Arc<dyn Store>,
    /// Rung when there may be something to claim.
    pub wake: Arc<Notify>,
    /// The time of what is told.
    pub clock: Arc<dyn Clock>,
    /// Where it is told.
    pub board: PackBoard,
}

/// A pack that runs.
struct Held {
    loaded: PackLoaded,
    actions: Vec<Arc<Action>>,
    handlers: HandlersByAction,
}

/// Loads packs, and goes on looking for changes.
pub(super) struct PackLoader {
    parts: PackParts,
    /// What the configuration declares.
    base: Vec<Arc<Action>>,
    base_handlers: Handlers,
    held: BTreeMap<String, Held>,
    /// The looks of the last round.
    seen: BTreeMap<String, Look>,
    /// The looks that were read, well or not.
    tried: BTreeMap<String, Look>,
    /// The tables are not yet as `held` says.
    behind: bool,
    /// What the board is told of as loaded once they are.
    fresh: BTreeMap<String, PackSeen>,
}

impl PackLoader {
    /// Loads what there is now.
    ///
    /// # Errors
    /// When the database cannot hear of it. A pack that cannot be loaded is told and keeps nobody from starting.
    pub async fn start(parts: PackParts) -> Result<Self, StoreError> {
        let base: Vec<Arc<Action>> = parts.actions.iter().collect();
        let base_handlers = parts.registry.as_ref().map(Registry::table).unwrap_or_default();
        let (held, seen, tried) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut loader = Self { parts, base, base_handlers, held, seen, tried, behind: false, fresh: BTreeMap::new() };
        loader.round(true).await;
        loader.catch_up().await?;
        Ok(loader)
    }

    /// Looks for changes until it is dropped.
    pub async fn run(mut self) {
        loop {
            tokio::time::sleep(self.parts.poll).await;
            self.round(false).await;
            if let Err(error) = self.catch_up().await {
                tracing::warn!(%error, "packs were loaded and the database could not be told; tried again");
            }
        }
    }

    /// One look at all folders. `first`: what is found counts at once.
    async fn round(&mut self, first: bool) {
        let dir = self.parts.dir.clone();
        let looked = blocking(move || {
            let folders = read::folders(&dir)?;
            Ok::<_, std::io::Error>(folders.into_iter().map(|(name, path)| (name, Look::at(&path))).collect())
        });
        let looks: BTreeMap<String, Look> = match looked.await {
            Ok(looks) => looks,
            Err(error) => {
                tracing::warn!(%error, dir = %self.parts.dir.display(), "the folder of packs cannot be read");
                return;
            }
        };
        let before = std::mem::replace(&mut self.seen, looks.clone());
        let mut changed = false;
        for (name, look) in &looks {
            let settled = first || before.get(name) == Some(look);
            if settled && self.tried.get(name) != Some(look) {
                changed |= self.load(name, look).await;
            }
        }
        // A folder that is swapped for another one is away for a moment.
        let away = |name: &String| !looks.contains_key(name) && !before.contains_key(name);
        let known: BTreeSet<String> = self.parts.board.all().into_keys().chain(self.held.keys().cloned()).collect();
        for name in known.into_iter().filter(away) {
            self.tried.remove(&name);
            self.fresh.remove(&name);
            self.parts.board.set(&name, None);
            if self.held.remove(&name).is_some() {
                tracing::info!(pack = name, "a pack is gone; its tasks wait");
                changed = true;
            }
        }
        if changed {
            self.behind = true;
            // What was refused because of another pack may be right beside the new one.
            let board = self.parts.board.all();
            let at_fault = |name: &String| board.get(name).is_some_and(|seen| !seen.faults.is_empty());
            self.tried.retain(|name, _| first || !at_fault(name));
        }
        let at_fault = self.parts.board.all().values().filter(|seen| !seen.faults.is_empty()).count();
        gauge!(metric::PACKS_AT_FAULT).set(at_fault as f64);
    }

    /// Reads a folder; whether what runs has to change.
    async fn load(&mut self, name: &str, look: &Look) -> bool {
        let (folder, env) = (self.parts.dir.join(name), self.parts.env.clone());
        let read = blocking({
            let folder = folder.clone();
            move || (read::read(&folder, &env), Look::at(&folder))
        });
        let (read, after) = read.await;
        if after != *look {
            // Somebody writes there: the next rounds tell when it is whole.
            return false;
        }
        self.tried.insert(name.to_owned(), *look);
        let held = read.and_then(|manifest| {
            read::taken(&manifest, &self.declared_beside(name))?;
            self.hold(&folder, &manifest)
        });
        let at = Some(self.parts.clock.now());
        match held {
            Ok(held) => {
                tracing::info!(
                    pack = name,
                    version = held.loaded.version,
                    actions = held.actions.len(),
                    "loaded a pack"
                );
                counter!(metric::PACK_LOADS, "result" => "loaded").increment(1);
                let loaded = Some(held.loaded.version.clone());
                self.fresh.insert(name.to_owned(), PackSeen { loaded, faults: Vec::new(), at });
                self.held.insert(name.to_owned(), held);
                true
            }
            Err(PackFaults(faults)) => {
                let loaded = self.held.get(name).map(|held| held.loaded.version.clone());
                let stays = loaded.as_deref().unwrap_or("none");
                for fault in &faults {
                    tracing::error!(pack = name, stays, "a pack was refused: {fault}");
                }
                counter!(metric::PACK_LOADS, "result" => "refused").increment(1);
                self.fresh.remove(name);
                self.parts.board.set(name, Some(PackSeen { loaded, faults, at }));
                false
            }
        }
    }

    /// The keys of all actions but those of one pack.
    fn declared_beside(&self, pack: &str) -> BTreeSet<String> {
        let others = self.held.iter().filter(|(name, _)| *name != pack).flat_map(|(_, held)| &held.actions);
        self.base.iter().chain(others).map(|action| action.key.clone()).collect()
    }

    fn hold(&self, folder: &Path, manifest: &Manifest) -> Result<Held, PackFaults> {
        let pack = &manifest.pack;
        let scripted = manifest.actions.iter().filter_map(|action| {
            let script = manifest.script_of(action, folder)?.to_owned();
            let declared = Action { pack: Some(pack.name.clone()), ..action.declared() };
            Some((Arc::new(declared), script))
        });
        let scripted: Vec<(Arc<Action>, String)> = scripted.collect();
        let own = || DatabaseUrl::Sqlite(self.parts.data.join(format!("{}.db", pack.name)));
        let database = manifest.database.clone().unwrap_or_else(own);
        let handlers = match &self.parts.registry {
            Some(_) => (self.parts.build)(manifest, &scripted, &database)
                .map_err(|reason| PackFaults(vec![crate::core::pack::PackFault::of_file(&pack.name, reason)]))?,
            None => BTreeMap::new(),
        };
        let loaded = PackLoaded { name: pack.name.clone(), version: pack.version.clone(), serial: pack.serial };
        Ok(Held { loaded, actions: scripted.into_iter().map(|(action, _)| action).collect(), handlers })
    }

    /// Tells the database what is loaded, and then puts it in place.
    async fn catch_up(&mut self) -> Result<(), StoreError> {
        if !self.behind {
            return Ok(());
        }
        let loaded = self.held.values().map(|held| held.loaded.clone()).collect();
        self.parts.store.register_packs(loaded).await?;
        let of_packs = self.held.values().flat_map(|held| &held.actions).cloned();
        self.parts.actions.replace(self.base.iter().cloned().chain(of_packs));
        if let Some(registry) = &self.parts.registry {
            let mut all = self.base_handlers.clone();
            for (name, held) in &self.held {
                all.packs.push(name.clone());
                all.by_action.extend(held.handlers.iter().map(|(key, handler)| (key.clone(), handler.clone())));
            }
            registry.replace(all);
        }
        for (name, seen) in std::mem::take(&mut self.fresh) {
            self.parts.board.set(&name, Some(seen));
        }
        self.behind = false;
        self.parts.wake.notify_one();
        Ok(())
    }
}

/// Runs what reads files beside the threads that must not wait.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("reading a folder does not break down")
}
