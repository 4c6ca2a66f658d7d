//! The configuration: read whole, checked whole, told whole.
//!
//! One TOML file and the environment make one tree ([`source`]); typed sections are read from it ([`reader`]) by the rows
//! that describe each key ([`rows`]). All faults are collected, each with its key; nothing is guessed and nothing is passed
//! over. Secrets live in [`Secret`] and are never shown. Relative paths count from the file.
//!
//! Must never start anything, open a database or write a file: `check-config` reads the same settings as `serve`.

mod action;
mod action_read;
mod auth;
mod check;
mod database;
mod fault;
mod outside;
mod pack;
mod pack_place;
mod pack_rows;
mod push;
mod quantity;
mod reader;
mod rows;
mod secret;
mod sections;
mod source;
mod template;
#[cfg(test)]
mod tests;

pub use action::{Action, HandlerRef};
pub use auth::{JwtAlgorithm, JwtIssuer};
pub use database::{DatabaseUrl, without_password};
pub use fault::{Fault, Faults};
pub use outside::{RecordType, Visibility, Webhook, WriteBack};
pub use pack::{MANIFEST, Manifest};
pub use pack_place::PackFaults;
pub use pack_rows::PACK_ROWS;
pub use push::Push;
pub(crate) use quantity::duration_ms;
pub use rows::{Allowed, ROWS, Row, markdown, pack_markdown};
pub use secret::Secret;
pub use sections::{
    Database, Engine, FilesUrl, Log, LogFormat, Migrate, Outbound, Packs, Retention, Server, Synchronous,
};

use crate::core::redact::Redactor;
pub use source::environment;

use reader::{Context, Section};
use source::{ENV_PREFIX, Source};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The configuration of the demo, read like any other; its relative paths count from the working folder.
const DEMO: &str = include_str!("../../demo/taskbell.toml");

/// Everything that can be set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the server listens and whom it trusts.
    pub server: Server,
    /// The database.
    pub database: Database,
    /// Fan-out between nodes, when given.
    pub redis: Option<Secret>,
    /// The certificates of those who vouch for it, PEM; none: those that the system trusts.
    pub redis_ca: Option<Secret>,
    /// Where files are kept.
    pub files: FilesUrl,
    /// Where task logs are kept; none: beside the database.
    pub logs: Option<DatabaseUrl>,
    /// How the engine paces itself.
    pub engine: Engine,
    /// How long what has ended is kept.
    pub retention: Retention,
    /// What a WebSocket may cost.
    pub push: Push,
    /// Whether this node fires schedules.
    pub scheduler_enabled: bool,
    /// Packs of scripts.
    pub packs: Packs,
    /// Calls to other hosts.
    pub outbound: Outbound,
    /// The process's own log.
    pub log: Log,
    /// Issuers of tokens.
    pub jwt: Vec<JwtIssuer>,
    /// Receivers of events.
    pub webhooks: Vec<Webhook>,
    /// Types of business records.
    pub records: Vec<RecordType>,
    /// The buttons; keys are unique.
    pub actions: Vec<Action>,
}

/// Settings, and where they came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// Demo mode: asked for, or neither a file nor any setting in the environment.
    pub demo: bool,
    /// The file that was read.
    pub file: Option<PathBuf>,
    /// Every secret value that was read, for masking.
    pub secrets: Vec<Secret>,
    /// Sections that were given at all.
    given: BTreeSet<String>,
}

impl Loaded {
    /// What masks the secrets of this configuration in logs.
    #[must_use]
    pub fn redactor(&self) -> Redactor {
        Redactor::new(self.secrets.iter().map(Secret::expose))
    }
}

impl Settings {
    /// Reads `file`, or the demo's own configuration, with the environment laid over it. `demo_asked` is the flag `--demo`.
    ///
    /// # Errors
    /// All faults at once. A text that is no TOML hides the rest, since nothing in it can be trusted.
    pub fn load(
        file: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
        demo_asked: bool,
    ) -> Result<Loaded, Faults> {
        let env: Vec<(String, String)> = env.collect();
        let plain = file.is_none() && !env.iter().any(|(name, _)| name.starts_with(ENV_PREFIX));
        let demo = demo_asked || plain;
        let built_in = if demo { DEMO } else { "" };
        let (cx, table) = Context::new(Source::gather(file, built_in, env.into_iter())?);
        let given = table.keys().cloned().collect();
        if demo_asked && let Some(file) = file {
            cx.faults.borrow_mut().push(
                file.display().to_string(),
                "there is no demo with a configuration file: leave out --demo or the file",
            );
        }
        let settings = Self::read(Section::root(&cx, table));
        if demo && !settings.server.listen.ip().is_loopback() {
            cx.faults
                .borrow_mut()
                .push("server.listen", "must be a loopback address in demo mode, which has users without a password");
        }
        let faults = cx.faults.into_inner();
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Loaded { settings, demo, file: file.map(Path::to_path_buf), secrets: cx.secrets.into_inner(), given })
    }

    fn read(mut root: Section<'_>) -> Self {
        let (redis, redis_ca) = sections::redis(root.section("redis"));
        let settings = Self {
            server: sections::server(root.section("server")),
            database: sections::database(root.section("database")),
            redis,
            redis_ca,
            files: sections::files(root.section("files")),
            logs: sections::logs(root.section("logs")),
            engine: sections::engine(root.section("engine")),
            retention: sections::retention(root.section("retention")),
            push: push::push(root.section("push")),
            scheduler_enabled: sections::scheduler(root.section("scheduler")),
            packs: sections::packs(root.section("packs")),
            outbound: sections::outbound(root.section("outbound")),
            log: sections::log(root.section("log")),
            jwt: auth::auth(root.section("auth")),
            webhooks: outside::webhooks(&mut root),
            records: outside::records(&mut root),
            actions: action_read::actions(&mut root),
        };
        root.finish();
        settings
    }

    /// The action of a key.
    #[must_use]
    pub fn action(&self, key: &str) -> Option<&Action> {
        self.actions.iter().find(|action| action.key == key)
    }
}
