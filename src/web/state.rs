//! What handlers work with, put together once by the composition root.

use super::api::metrics::{LastCounts, NumberReaders};
use super::auth::jwt::Issuers;
use super::auth::{DemoUsers, Guard};
use super::error::{ApiError, Code};
use crate::core::ids::TaskId;
use crate::core::pack::PackBoard;
use crate::core::principal::Principal;
use crate::core::resolve::Resolver;
use crate::core::retention::Keep;
use crate::core::task::Task;
use crate::core::time::Clock;
use crate::core::view::{Beside, Catalogue, Documents, Lens, TaskDetail, TaskSummary};
use crate::engine::commands::Commands;
use crate::engine::commands::outside::ChunkCalls;
use crate::engine::commands::workers::Workers;
use crate::push::Hub;
use crate::store::beside::BesideReader;
use crate::store::files::Files;
use crate::store::logs::LogStore;
use crate::store::{Reach, Store};
use ipnet::IpNet;
use metrics_exporter_prometheus::PrometheusHandle;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the web needs to know of the configuration.
#[derive(Clone, Debug, Default)]
pub struct WebSettings {
    /// The origin of the public address, such as `https://tasks.example.com`.
    pub public_origin: Option<String>,
    /// Origins of pages that may embed, call and connect.
    pub allowed_origins: Vec<String>,
    /// Sign-in over plain http outside this machine.
    pub insecure_http: bool,
    /// Proxies whose forwarded headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Issuers whose tokens are taken.
    pub issuers: Issuers,
    /// How long ended tasks are kept, which the list says.
    pub keep: Keep,
}

/// The parts.
pub struct Parts {
    /// The database.
    pub store: Arc<dyn Store>,
    /// The task logs.
    pub logs: Arc<dyn LogStore>,
    /// Uploads and results.
    pub files: Files,
    /// What changes tasks.
    pub commands: Commands,
    /// What workers outside may ask.
    pub workers: Workers,
    /// The declared actions.
    pub catalogue: Arc<Catalogue>,
    /// Where chunks that are worked on outside are asked about.
    pub chunk_calls: ChunkCalls,
    /// From requests to clicks.
    pub resolver: Arc<Resolver>,
    /// The push of this node.
    pub hub: Arc<Hub>,
    /// What stands beside tasks.
    pub beside: Arc<BesideReader>,
    /// The server's now.
    pub clock: Arc<dyn Clock>,
    /// From the configuration.
    pub settings: WebSettings,
    /// The users of the demo; absent outside of it.
    pub demo: Option<DemoUsers>,
    /// What this node has seen of the folders of packs.
    pub packs: PackBoard,
    /// The numbers of the process.
    pub numbers: PrometheusHandle,
    /// The node is going down: readiness is off.
    pub draining: Arc<AtomicBool>,
}

/// What handlers work with. Cheap to clone.
#[derive(Clone)]
pub struct AppState(Arc<Shared>);

/// The parts, and what is read off them once.
pub struct Shared {
    parts: Parts,
    /// Languages in which anything is said here.
    pub languages: Vec<String>,
    /// What proves callers.
    pub guard: Guard,
    /// Counts of tasks as they were last told in numbers.
    pub last_counts: LastCounts,
    /// Who has read the numbers from here.
    pub number_readers: NumberReaders,
}

impl Deref for Shared {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

impl Deref for AppState {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl AppState {
    /// Takes the parts.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let own = ["en", "zh-CN"].map(str::to_owned);
        let said = parts.catalogue.actions.iter().flat_map(|a| a.title.0.keys().cloned().collect::<Vec<_>>());
        let languages: BTreeSet<String> = own.into_iter().chain(said.filter(|l| !l.is_empty())).collect();
        Self(Arc::new(Shared {
            parts,
            languages: languages.into_iter().collect(),
            guard: Guard::default(),
            last_counts: LastCounts::default(),
            number_readers: NumberReaders::default(),
        }))
    }

    /// Whether the node is going down.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// How this viewer sees tasks.
    #[must_use]
    pub fn lens<'a>(&'a self, viewer: &'a Principal, lang: &'a str) -> Lens<'a> {
        Lens { viewer, lang, now: self.clock.now(), catalogue: &self.catalogue }
    }

    /// A task that this viewer may see.
    ///
    /// # Errors
    /// 404, the same for what does not exist and what is not the viewer's.
    pub async fn task(&self, viewer: &Principal, id: TaskId) -> Result<Task, ApiError> {
        let found = self.store.tasks(&Reach::of(viewer), &[id]).await?.pop();
        found.ok_or_else(|| ApiError::new(Code::NotFound))
    }

    /// Tasks as lists show them, in the given order.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn summaries(
        &self,
        viewer: &Principal,
        lang: &str,
        tasks: &[Task],
    ) -> Result<Vec<TaskSummary>, ApiError> {
        let beside = self.beside.read(viewer, tasks).await?;
        let (lens, nothing) = (self.lens(viewer, lang), Beside::default());
        Ok(tasks.iter().map(|t| lens.summary(t, beside.get(&t.id).unwrap_or(&nothing))).collect())
    }

    /// A task with its documents.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn detail(
        &self,
        viewer: &Principal,
        lang: &str,
        task: &Task,
        documents: Documents,
    ) -> Result<TaskDetail, ApiError> {
        let mut beside = self.beside.read(viewer, std::slice::from_ref(task)).await?;
        let beside = beside.remove(&task.id).unwrap_or_default();
        Ok(self.lens(viewer, lang).detail(task, &beside, documents))
    }

    /// A task with its documents, read from the database.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn stored_detail(&self, viewer: &Principal, lang: &str, task: &Task) -> Result<TaskDetail, ApiError> {
        let documents = self.store.documents(task.id).await?;
        self.detail(viewer, lang, task, documents).await
    }
}
