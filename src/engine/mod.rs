//! The engine: claims chunks, runs them, commits what they answer, keeps their leases, sweeps what time has undone, and
//! drains. Must never name axum.
//!
//! Three separate numbers rule a lease: the heartbeat (how often it is renewed), the lease (how long it lasts without), and
//! the chunk timeout (how long one chunk may take). Leases end by the database's clock; whether this node still holds one
//! while the database is silent is judged by its own monotonic clock.
//!
//! Drain: stop claiming, ask chunks to end, wait a grace, hand the rest back without using an attempt.

mod chunk;
mod claims;
pub mod commands;
mod exchange;
mod families;
pub mod group;
mod host;
pub mod logbook;
mod loops;
mod measure;
pub mod presence;
pub mod pulse;
mod reports;
mod retention;
pub mod running;
mod standstill;
mod statistics;

use crate::bus::LocalBus;
use crate::core::metric;
use crate::core::resolve::Resolver;
use crate::core::retention::Keep;
use crate::core::time::{Clock, Millis, Mono, Rng};
use crate::core::view::Catalogue;
use crate::handler::Registry;
use crate::store::files::Files;
use crate::store::{ChunkCommit, Committed, Retries, Store, StoreError, SweepParams};
use claims::Claims;
use commands::announce;
use commands::outside::ChunkCalls;
use group::{Group, Turn};
use logbook::Logbook;
use loops::supervised;
use presence::Presence;
use pulse::Pulse;
use reports::ReportBook;
use running::{SharedRunning, Told};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

/// The most rows of one sweep.
const SWEEP_AT_ONCE: usize = 500;
/// What a drain may take beyond its grace, to hand chunks back and to store the last log lines. A database that does not take
/// them by then takes none: the sweep of another node does the rest.
const AFTER_GRACE: Duration = Duration::from_secs(2);
/// A claim loop never turns faster than this on account of a due instant, ms.
const SHORTEST_WAIT_MS: i64 = 2;

/// The numbers of a node.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// The node's name, unique among the living.
    pub node: String,
    /// Chunks at once.
    pub parallelism: usize,
    /// Only these tenants; empty = all.
    pub tenants: Vec<String>,
    /// How long a lease lasts without renewal, ms.
    pub lease_ms: i64,
    /// How often leases are renewed, ms; at most a third of the lease.
    pub heartbeat_ms: u64,
    /// How often due work is looked for without a wake-up, ms.
    pub poll_ms: u64,
    /// How often the sweep runs, ms.
    pub sweep_ms: u64,
    /// How long a drain waits for chunks, ms.
    pub drain_grace_ms: u64,
    /// How long a chunk may take to answer a cancel, ms.
    pub cancel_grace_ms: i64,
    /// How long ended tasks and their logs are kept.
    pub keep: Keep,
    /// How often those are looked for whose time is over, ms.
    pub retain_ms: u64,
}

/// What an engine is made of.
pub struct EngineParts {
    /// The database.
    pub store: Arc<dyn Store>,
    /// Uploads and results.
    pub files: Files,
    /// Task logs.
    pub logbook: Logbook,
    /// The node's bus.
    pub bus: LocalBus,
    /// Rung when there may be something to claim; shared with [`commands::Commands`].
    pub wake: Arc<Notify>,
    /// Which handler runs which action.
    pub registry: Registry,
    /// The declared actions.
    pub catalogue: Arc<Catalogue>,
    /// Checks what handlers submit.
    pub resolver: Arc<Resolver>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub rng: Arc<dyn Rng>,
    /// The numbers.
    pub settings: EngineSettings,
}

struct Inner {
    store: Arc<dyn Store>,
    files: Files,
    logbook: Logbook,
    bus: LocalBus,
    wake: Arc<Notify>,
    registry: Registry,
    catalogue: Arc<Catalogue>,
    resolver: Arc<Resolver>,
    clock: Arc<dyn Clock>,
    rng: Arc<dyn Rng>,
    settings: EngineSettings,
    running: SharedRunning,
    pulse: Arc<Pulse>,
    reports: Arc<ReportBook>,
    /// Answers come with when their commit began, which is what a kept lease counts from at the latest.
    commits: Group<ChunkCommit, (Committed, Mono)>,
    /// Commits of chunks make room for claims, and claims make the next commits: they take turns.
    turn: Turn,
    drain: watch::Sender<bool>,
    claims: Claims,
}

impl Inner {
    fn draining(&self) -> bool {
        *self.drain.borrow()
    }

    async fn drain_began(&self) {
        // An error means that the engine is gone, which ends the loop as well.
        let _ = self.drain.subscribe().wait_for(|began| *began).await;
    }

    /// The poll with a jitter, so that nodes do not fall in step.
    fn poll_ms(&self) -> u64 {
        jittered(self.settings.poll_ms, self.rng.unit())
    }

    /// Until the next task is due, if that is sooner than `at_most`, ms. What was due already when the claim looked
    /// (`looked_at`) is a task that this node cannot claim, and no reason to turn faster; what has come due since then is.
    async fn until_next_due(&self, at_most: u64, looked_at: Millis) -> u64 {
        match self.store.next_due().await {
            Ok(Some(due)) if due > looked_at => {
                at_most.min(due.since(self.clock.now()).max(SHORTEST_WAIT_MS).unsigned_abs())
            }
            _ => at_most,
        }
    }
}

/// A running engine.
pub struct Engine {
    inner: Arc<Inner>,
    loops: JoinSet<()>,
}

impl Engine {
    /// Starts a node. On a database that one process owns, every lease is taken first: whoever held one is dead.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn start(parts: EngineParts) -> Result<Self, StoreError> {
        let EngineParts { store, files, logbook, bus, wake, registry, catalogue, resolver, clock, rng, settings } =
            parts;
        let reports = Arc::new(ReportBook::new(store.clone(), bus.clone(), wake.clone(), clock.clone()));
        let (running, drain) = (SharedRunning::default(), watch::Sender::new(false));
        // While their rows are locked no lease of them is renewed.
        let (turn, at_most_ms) = (Turn::on(store.as_ref()), settings.lease_ms.unsigned_abs() / 2);
        let inner = Arc::new_cyclic(|inner: &Weak<Inner>| Inner {
            commits: commits(inner.clone(), clock.clone(), turn.clone(), at_most_ms),
            store,
            files,
            logbook,
            bus,
            wake,
            registry,
            catalogue,
            resolver,
            clock,
            rng,
            settings,
            running,
            pulse: Arc::default(),
            reports,
            turn,
            drain,
            claims: Claims::default(),
        });
        if inner.store.capabilities().single_process {
            sweep_all(&inner).await?;
        }
        Ok(Self { loops: start_loops(&inner), inner })
    }

    /// Where chunks that are worked on outside of this process are asked about.
    #[must_use]
    pub fn chunk_calls(&self) -> ChunkCalls {
        ChunkCalls::beside(&self.inner)
    }

    /// Chunks under way.
    #[must_use]
    pub fn running_count(&self) -> usize {
        self.inner.running.count()
    }

    /// Has its numbers told with the beats of the node.
    pub fn shown_by(&self, presence: &Presence) {
        let running = self.inner.running.clone();
        presence.watch(self.inner.pulse.clone(), move || running.count());
    }

    /// Stops claiming, asks chunks to end, waits the grace, hands the rest back, and stores the last logs.
    pub async fn drain(mut self) {
        self.inner.drain.send_replace(true);
        self.inner.running.tell_all(Told::Stop);
        let grace = Duration::from_millis(self.inner.settings.drain_grace_ms);
        let ending = async {
            let empty = async {
                // A claim that is under way brings chunks that nobody has told to stop.
                self.inner.claims.settled().await;
                self.inner.running.tell_all(Told::Stop);
                self.inner.running.empty().await;
            };
            if tokio::time::timeout(grace, empty).await.is_err() {
                tracing::warn!(chunks = self.inner.running.count(), "the grace is over: handing chunks back");
                self.inner.running.tell_all(Told::HandBack);
                self.inner.running.empty().await;
            }
            self.inner.logbook.flush().await;
        };
        if tokio::time::timeout(grace + AFTER_GRACE, ending).await.is_err() {
            match self.inner.running.count() {
                0 => tracing::error!("the last log lines could not be stored"),
                chunks => tracing::error!(chunks, "chunks could not be handed back; the sweep will"),
            }
        }
        self.loops.shutdown().await;
    }
}

/// A poll between three and five quarters of its length, by chance from 0 to 1.
fn jittered(poll_ms: u64, unit: f64) -> u64 {
    (poll_ms as f64 * (0.75 + 0.5 * unit)) as u64
}

/// The retry rules of the actions that workers outside run.
fn retries(catalogue: &Catalogue, rng: &dyn Rng) -> Retries {
    let by_action = catalogue.actions.pulled().map(|action| (action.key.clone(), action.retry)).collect();
    Retries { by_action: Arc::new(by_action), unit_random: rng.unit() }
}

/// What a sweep of this node looks for.
fn sweep_params(inner: &Inner, all: bool) -> SweepParams {
    let retries = retries(&inner.catalogue, inner.rng.as_ref());
    SweepParams { limit: SWEEP_AT_ONCE, all, cancel_grace_ms: inner.settings.cancel_grace_ms, retries }
}

async fn sweep_all(inner: &Inner) -> Result<(), StoreError> {
    loop {
        let params = sweep_params(inner, true);
        let swept = announce(&inner.bus, &inner.wake, inner.store.sweep(params).await?);
        measure::more(metric::SWEPT, swept);
        if swept > 0 {
            tracing::info!(tasks = swept, "took over tasks that were running when the service stopped");
        }
        if swept < SWEEP_AT_ONCE {
            return Ok(());
        }
    }
}

/// The front of the commits of chunks.
fn commits(
    inner: Weak<Inner>,
    clock: Arc<dyn Clock>,
    turn: Turn,
    at_most_ms: u64,
) -> Group<ChunkCommit, (Committed, Mono)> {
    Group::held_to(at_most_ms, clock, turn, move |items, _again| {
        let inner = inner.upgrade();
        async move {
            match &inner {
                Some(inner) => claims::commit(inner, items).await,
                None => Err(StoreError::Unavailable("the service is shutting down".into())),
            }
        }
    })
}

fn start_loops(inner: &Arc<Inner>) -> JoinSet<()> {
    let mut set = JoinSet::new();
    let EngineSettings { poll_ms, heartbeat_ms, sweep_ms, .. } = inner.settings;
    for (name, every_ms) in [("claim", poll_ms), ("heartbeat", heartbeat_ms), ("sweep", sweep_ms)] {
        inner.pulse.expect(name, every_ms);
    }
    macro_rules! start {
        ($name:literal, $run:expr) => {{
            let inner = inner.clone();
            let started = move || {
                inner.pulse.starts($name);
                $run(inner.clone())
            };
            set.spawn(async move { supervised($name, started).await });
        }};
    }
    start!("claim", claims::claim);
    start!("heartbeat", loops::heartbeat);
    start!("expire", loops::expire);
    start!("sweep", loops::sweep);
    start!("clean", loops::clean);
    if !inner.store.capabilities().single_process {
        start!("standstill", |inner: Arc<Inner>| async move {
            let EngineSettings { sweep_ms, lease_ms, .. } = inner.settings;
            standstill::end_still(Duration::from_millis(sweep_ms), lease_ms, inner.store.as_ref()).await;
        });
        start!("statistics", |inner: Arc<Inner>| async move {
            let every = Duration::from_millis(inner.settings.sweep_ms);
            statistics::analyze_grown(every, inner.store.as_ref()).await;
        });
    }
    start!("retention", retention::retain);
    start!("listen", |inner: Arc<Inner>| {
        let signals = inner.bus.subscribe();
        loops::listen(inner, signals)
    });
    start!("families", |inner: Arc<Inner>| {
        let signals = inner.bus.subscribe();
        families::roll_up(inner, signals)
    });
    start!("reports", |inner: Arc<Inner>| async move { inner.reports.clone().run().await });
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    const NODES: usize = 4;
    const POLL_MS: u64 = 1_000;
    const PERIODS: usize = 600;

    /// Four nodes that start at one instant and find nothing to do for ten minutes: in which share of the periods more than
    /// half of the polls come within one tenth of a second.
    fn in_step(mut unit: impl FnMut() -> f64) -> f64 {
        let mut polls: Vec<u64> = Vec::new();
        for _ in 0..NODES {
            let mut at = 0;
            while at < POLL_MS * PERIODS as u64 {
                at += jittered(POLL_MS, unit());
                polls.push(at);
            }
        }
        let crowded = |period: &u64| {
            let within = |bucket: u64| polls.iter().filter(|at| **at / 100 == period * 10 + bucket).count();
            (0..10).any(|bucket| within(bucket) > NODES / 2)
        };
        // The first periods are left out: the nodes have only just begun together.
        let (first, periods) = (20, PERIODS as u64);
        (first..periods).filter(crowded).count() as f64 / (periods - first) as f64
    }

    #[test]
    fn g7_polls_of_idle_nodes_that_start_together_do_not_fall_into_step() {
        assert!(in_step(|| 0.5) > 0.9, "without chance they stay together, so this test would see it");
        for seed in 0..20 {
            let mut rng = StdRng::seed_from_u64(seed);
            let share = in_step(|| rng.random());
            assert!(share < 0.12, "seed {seed}: in {share} of the periods most polls come together");
        }
    }
}
