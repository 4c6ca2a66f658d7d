//! The composition root: puts the layers together into a node, and takes it apart in order. The only place that knows every
//! layer.
//!
//! Shutdown, from the outside in: readiness goes off and the listener closes; the engine stops claiming and drains while the
//! hub lets its sockets end with 1012; the last logs are stored; the lock of the file is given back.

pub mod accounts;
mod channel;
pub mod clock;
pub mod doctor;
mod http;
pub mod lock;
mod open;
pub mod pack_tables;
mod packs;
mod push_limits;
mod web_settings;
pub mod words;

use crate::bus::LocalBus;
use crate::bus::listen::Link;
use crate::bus::redis::{Relay, Server};
use crate::config::{Engine as EngineSection, Faults, Loaded, Settings, Visibility, environment};
use crate::core::action::{Action, Actions, HandlerRef};
use crate::core::node;
use crate::core::pack::PackBoard;
use crate::core::principal;
use crate::core::resolve::Resolver;
use crate::core::time::{Millis, Rng as _};
use crate::core::view::Catalogue;
use crate::demo;
use crate::engine::commands::Commands;
use crate::engine::commands::outside::ChunkCalls;
use crate::engine::commands::workers::{WorkerParts, WorkerSettings, Workers};
use crate::engine::logbook::Logbook;
use crate::engine::presence::{Presence, PresenceParts, WaysToNode};
use crate::engine::{Engine, EngineParts, EngineSettings};
pub use crate::handler::native::NativeHandlers;
use crate::handler::script::{Library, ScriptHandler};
use crate::handler::{Handler, Registry};
use crate::push::{Hub, HubParts, Ways};
use crate::store::StoreError;
use crate::store::beside::BesideReader;
use crate::telemetry::measures;
use crate::web::auth::DemoUsers;
use crate::web::{AppState, Parts, health_router, router, server};
use clock::{SystemClock, SystemRng};
use http::WayOut;
use lock::{LockFault, ServeLock};
pub use open::migrate;
use open::{Opened, open_store};
pub(crate) use packs::check as check_packs;
use packs::{PackLoader, PackParts, ScriptProcesses};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Script processes that are kept ready, at most.
const SCRIPT_PROCESSES: usize = 4;

/// Why a node does not start. Each is a sentence for the person who started it.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration asks for what this version or machine has not got.
    #[error("{0}")]
    Settings(Faults),
    /// Something about the actions; names the key.
    #[error("{0}")]
    Action(String),
    /// Another process serves the file.
    #[error(transparent)]
    Lock(#[from] LockFault),
    /// The database.
    #[error("the database: {0}")]
    Store(#[from] StoreError),
    /// What should carry signals between nodes.
    #[error("redis: {0}")]
    Redis(String),
    /// An issuer of tokens.
    #[error("auth.jwt: {0}")]
    Issuer(String),
    /// The listener.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// A file of the demo.
    #[error("cannot write the demo's files: {0}")]
    Demo(std::io::Error),
    /// The signals of the process.
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
    /// The path of this binary, which runs scripts as well.
    #[error("cannot find this binary, which runs scripts as well: {0}")]
    Executable(std::io::Error),
    /// A role that the database does not allow.
    #[error("a SQLite file is served by one process with everything in it: leave out --role, or use a database server")]
    Role,
}

/// What to start.
pub struct Setup<'a> {
    /// The configuration.
    pub loaded: &'a Loaded,
    /// Handlers compiled into the binary; those of the demo come by themselves.
    pub natives: NativeHandlers,
    /// The binary that runs scripts: this one, but for tests.
    pub script_exe: Option<PathBuf>,
    /// What of a node.
    pub role: Role,
}

/// Which parts of a node run in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Everything.
    #[default]
    All,
    /// Pages and API; others run the tasks.
    Web,
    /// Runs tasks; of HTTP it answers only how it is.
    Work,
}

/// A running node.
pub struct Node {
    address: SocketAddr,
    engine: Option<Engine>,
    hub: Arc<Hub>,
    server: JoinHandle<()>,
    stop: CancellationToken,
    draining: Arc<AtomicBool>,
    presence: Presence,
    grace: Duration,
    _lock: Option<ServeLock>,
    _tidy: AbortOnDropHandle<()>,
    _packs: AbortOnDropHandle<()>,
    _link: Option<Link>,
    _relay: Option<Relay>,
}

impl Role {
    /// The word of the command line.
    fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Web => "web",
            Self::Work => "work",
        }
    }
}

impl Node {
    /// Starts a node: takes the file's lock, opens the database, fills the demo's tables, takes over what was running, and
    /// listens.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(setup: Setup<'_>) -> Result<Self, StartError> {
        let Setup { loaded, natives, script_exe, role } = setup;
        let settings = &loaded.settings;
        let natives = if loaded.demo { natives.and(demo::natives()) } else { natives };
        let actions = settings.declared();
        if loaded.demo {
            // Before anything looks for the script that it writes.
            demo::unpack(&actions).map_err(StartError::Demo)?;
        }
        let names = natives.names();
        let faults = settings.unrunnable(&names.iter().map(String::as_str).collect::<Vec<_>>());
        if !faults.is_empty() {
            return Err(StartError::Settings(faults));
        }
        let listener =
            server::listen(settings.server.listen).map_err(|e| StartError::Listen(settings.server.listen, e))?;
        let address = listener.local_addr().map_err(|e| StartError::Listen(settings.server.listen, e))?;
        let file = open::file_to_lock(settings);
        if file.is_some() && role != Role::All {
            return Err(StartError::Role);
        }
        let lock = file.map(ServeLock::take).transpose()?;
        let redis = redis_server(settings)?;
        let (clock, rng) = (Arc::new(SystemClock::default()), Arc::new(SystemRng));
        let name = node_name(&rng);
        let Opened { store, logs, files, channel } = open_store(settings, Some(&name)).await?;
        if loaded.demo {
            demo::prepare(store.as_ref()).await?;
        }
        let way_out = WayOut::of(settings, address, clock.clone());
        let processes = ScriptProcesses::new(settings.engine.parallelism.min(SCRIPT_PROCESSES), script_exe);
        let registry = match role {
            Role::Web => None,
            Role::All | Role::Work => Some(registry(&actions, &natives, &processes, &way_out)?),
        };
        let numbers = measures::start();
        let catalogue = Arc::new(catalogue(loaded, actions));
        let resolver = Arc::new(Resolver::new(catalogue.clone()).map_err(StartError::Action)?);
        let (bus, wake) = (LocalBus::default(), Arc::new(Notify::new()));
        let link = channel.map(|channel| Link::start(channel, &bus, wake.clone(), rng.as_ref()));
        let relay = redis.map(|server| Relay::start(server, store.epoch(), &bus, wake.clone(), rng.clone()));
        let commands = Commands::new(store.clone(), bus.clone(), wake.clone());
        let logbook = Logbook::start(logs.clone(), bus.clone(), clock.clone(), loaded.redactor());
        let stop = CancellationToken::new();
        let workers = Workers::start(WorkerParts {
            store: store.clone(),
            bus: bus.clone(),
            wake: wake.clone(),
            logbook: logbook.clone(),
            catalogue: catalogue.clone(),
            resolver: resolver.clone(),
            clock: clock.clone(),
            rng: rng.clone(),
            settings: worker_settings(&settings.engine, role),
            closing: stop.clone(),
        });
        let hub = Hub::start(HubParts {
            store: store.clone(),
            logs: logs.clone(),
            bus: bus.clone(),
            catalogue: catalogue.clone(),
            clock: clock.clone(),
            rng: rng.clone(),
            limits: push_limits::of(&settings.push),
        });
        let board = PackBoard::default();
        let loader = PackLoader::start(PackParts {
            dir: settings.packs.dir.clone(),
            data: settings.packs.data.clone(),
            poll: Duration::from_millis(settings.packs.poll_ms),
            env: environment().collect(),
            actions: catalogue.actions.clone(),
            registry: registry.clone(),
            build: packs::builder(processes, way_out.outbound.clone()),
            store: store.clone(),
            wake: wake.clone(),
            clock: clock.clone(),
            board: board.clone(),
        });
        let loader = AbortOnDropHandle::new(tokio::spawn(loader.await?.run()));
        let draining = Arc::new(AtomicBool::new(false));
        let presence = Presence::start(PresenceParts {
            store: store.clone(),
            clock: clock.clone(),
            node: presence_of(&settings.engine, &name, role),
            registry: registry.clone(),
            ways: ways_of(&hub),
            draining: draining.clone(),
            every_ms: settings.engine.heartbeat_ms,
        });
        let presence = presence.await?;
        let parts = registry.map(|registry| EngineParts {
            store: store.clone(),
            files: files.clone(),
            logbook: logbook.clone(),
            bus: bus.clone(),
            wake: wake.clone(),
            registry,
            catalogue: catalogue.clone(),
            resolver: resolver.clone(),
            clock: clock.clone(),
            rng: rng.clone(),
            settings: engine_settings(loaded, name),
        });
        let engine = match parts {
            Some(parts) => Some(Engine::start(parts).await?),
            None => None,
        };
        engine.iter().for_each(|engine| engine.shown_by(&presence));
        let chunk_calls = match &engine {
            Some(engine) => engine.chunk_calls(),
            None => ChunkCalls::alone(store.clone(), files.clone(), logbook, bus, wake, clock.clone()),
        };
        let tidy = AbortOnDropHandle::new(tokio::spawn(measures::tidy(numbers.clone())));
        let state = AppState::new(Parts {
            beside: Arc::new(BesideReader::new(store.clone(), catalogue.clone())),
            store,
            logs,
            files,
            commands,
            chunk_calls,
            workers,
            catalogue,
            resolver,
            hub: hub.clone(),
            clock,
            settings: web_settings::of(loaded)?,
            demo: loaded.demo.then(DemoUsers::default),
            numbers: numbers.clone(),
            packs: board,
            draining: draining.clone(),
        });
        let app = if role == Role::Work { health_router(state) } else { router(state) };
        let grace = Duration::from_millis(settings.engine.drain_grace_ms);
        let server = tokio::spawn(server::serve(listener, app, stop.clone(), grace));
        Ok(Self {
            address,
            engine,
            hub,
            server,
            stop,
            draining,
            presence,
            grace,
            _lock: lock,
            _tidy: tidy,
            _packs: loader,
            _link: link,
            _relay: relay,
        })
    }

    /// Where it listens; the port is the real one when 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes the node apart: within the grace, without using an attempt of any task.
    pub async fn drain(self) {
        self.draining.store(true, Ordering::Relaxed);
        self.stop.cancel();
        self.presence.announce_drain().await;
        let engine = async {
            if let Some(engine) = self.engine {
                engine.drain().await;
            }
        };
        tokio::join!(engine, self.hub.drain(self.grace));
        self.presence.leave().await;
        if let Err(e) = self.server.await {
            tracing::error!("the listener broke down: {e}");
        }
    }
}

fn redis_server(settings: &Settings) -> Result<Option<Server>, StartError> {
    let Some(url) = &settings.redis else { return Ok(None) };
    let ca = settings.redis_ca.as_ref().map(|ca| ca.expose().as_bytes().to_vec());
    Server::at(url.expose(), ca).map(Some).map_err(StartError::Redis)
}

fn registry(
    actions: &[Action],
    natives: &NativeHandlers,
    processes: &ScriptProcesses,
    way_out: &WayOut,
) -> Result<Registry, StartError> {
    let scripts = actions.iter().any(|a| matches!(a.handler, HandlerRef::Script(_)));
    let pool = if scripts { Some(processes.pool().map_err(StartError::Executable)?) } else { None };
    // The actions that are scripts may run one another, by their keys.
    let scripts = actions.iter().filter_map(|action| match &action.handler {
        HandlerRef::Script(path) => Some((action.key.clone(), path.clone())),
        _ => None,
    });
    let library = Library::open(scripts).map_err(|e| StartError::Action(format!("a script cannot be read: {e}")))?;
    let library = Arc::new(library);
    let mut handlers: Vec<(String, Arc<dyn Handler>)> = Vec::new();
    for action in actions.iter().filter(|action| action.handler != HandlerRef::Pull) {
        let handler = match (&action.handler, &pool) {
            (HandlerRef::Native(name), _) => natives.get(name),
            (HandlerRef::Script(path), Some(pool)) => {
                let timeout = Duration::from_millis(action.chunk_timeout_ms.unsigned_abs());
                let script = ScriptHandler::new(path, action.budgets, timeout, pool.clone())
                    .map_err(|e| StartError::Action(format!("action `{}`: {}: {e}", action.key, path.display())))?;
                let script = script.with_library(library.clone()).with_outbound(way_out.outbound.clone());
                Some(Arc::new(script.with_user_level(user_level(action))) as Arc<dyn Handler>)
            }
            (HandlerRef::Script(_) | HandlerRef::Pull, _) => None,
            (HandlerRef::Http { url, keys }, _) => Some(way_out.handler(action, url, keys)),
        };
        let missing = || StartError::Action(format!("action `{}`: its handler does not exist", action.key));
        handlers.push((action.key.clone(), handler.ok_or_else(missing)?));
    }
    Ok(Registry::new(handlers))
}

/// How high whoever may start an action stands at least, on the scale that scripts of the V8 form know: handlers run with their
/// own rights, and the action has looked at those of the caller.
fn user_level(action: &Action) -> u32 {
    match action.roles.iter().min() {
        None | Some(principal::Role::User) => 1,
        Some(principal::Role::Operator) => 999,
        Some(principal::Role::Admin | principal::Role::Platform) => 9_999,
    }
}

fn catalogue(loaded: &Loaded, actions: Vec<Action>) -> Catalogue {
    let records = &loaded.settings.records;
    Catalogue {
        actions: Actions::new(actions),
        record_urls: records.iter().filter_map(|r| r.url.clone().map(|url| (r.name.clone(), url))).collect(),
        open_records: records.iter().filter(|r| r.visibility == Visibility::Tenant).map(|r| r.name.clone()).collect(),
    }
}

/// Unique among the living: by machine, process, and chance, for containers often share the first two.
fn node_name(rng: &SystemRng) -> String {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let machine = Some(machine.trim()).filter(|name| !name.is_empty()).unwrap_or("node");
    format!("{machine}:{}:{:04x}", std::process::id(), (rng.unit() * 65_536.0) as u32)
}

/// What never changes about a node.
fn presence_of(engine: &EngineSection, id: &str, role: Role) -> node::Node {
    node::Node {
        id: id.to_owned(),
        role: role.as_str().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        parallelism: if role == Role::Web { 0 } else { i64::try_from(engine.parallelism).unwrap_or(i64::MAX) },
        lease_ms: engine.lease_ms.cast_signed(),
        tenants: tenants_of(engine),
        actions: Vec::new(),
        packs: Vec::new(),
        started_at: Millis::default(),
        beat_at: Millis::default(),
        standing: node::Standing::default(),
    }
}

fn ways_of(hub: &Arc<Hub>) -> WaysToNode {
    let hub = hub.clone();
    Arc::new(move || {
        let Ways { redis, wake } = hub.ways();
        (redis, wake)
    })
}

/// The tenants that a node runs tasks of; empty = all.
fn tenants_of(engine: &EngineSection) -> Vec<String> {
    let all = engine.tenants.iter().any(|t| t == "*");
    if all { Vec::new() } else { engine.tenants.clone() }
}

fn worker_settings(engine: &EngineSection, role: Role) -> WorkerSettings {
    WorkerSettings {
        lease_ms: engine.lease_ms.cast_signed(),
        poll_ms: engine.poll_ms,
        cancel_grace_ms: engine.cancel_grace_ms.cast_signed(),
        // Where there is an engine, it sweeps.
        sweep_ms: (role == Role::Web).then_some(engine.sweep_ms),
    }
}

fn engine_settings(loaded: &Loaded, node: String) -> EngineSettings {
    let engine = &loaded.settings.engine;
    EngineSettings {
        node,
        parallelism: engine.parallelism,
        tenants: tenants_of(engine),
        lease_ms: engine.lease_ms.cast_signed(),
        heartbeat_ms: engine.heartbeat_ms,
        poll_ms: engine.poll_ms,
        sweep_ms: engine.sweep_ms,
        drain_grace_ms: engine.drain_grace_ms,
        cancel_grace_ms: engine.cancel_grace_ms.cast_signed(),
        keep: loaded.settings.retention.keep,
        retain_ms: loaded.settings.retention.every_ms,
    }
}
