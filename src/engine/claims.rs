//! Takes what is due into the free places of the node: by a loop, and, while more waits than there are places, in the very
//! commits that free them. So a place costs half a transaction where chunks are short.
//!
//! Wake-ups only save time. With all of them lost, work starts within one poll, for the poll asks the database.
//!
//! Named failure cases. A claim that the database refuses for good never keeps the ends of chunks from being stored: they are
//! committed without it. The answer of a commit is lost: its ends are told again, and what it claimed is swept when its lease
//! ends, as after any lost answer of a claim.

use super::Inner;
use super::chunk::{given_ms, run_task};
use super::commands::announce;
use super::measure::{self, Stopwatch};
use super::running::Told;
use crate::core::chunk::Outcome;
use crate::core::ids::FencingToken;
use crate::core::lifecycle::ChunkEnd;
use crate::core::metric;
use crate::core::task::Task;
use crate::core::time::Mono;
use crate::store::{ChunkCommit, ClaimParams, Claimed, Committed, StoreError, Written};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{RwLock, RwLockReadGuard, watch};

/// The most chunks of one claim.
const CLAIM_AT_ONCE: usize = 512;

/// What claims of a node have in common.
#[derive(Default)]
pub(super) struct Claims {
    /// Held, to read, from before a claim until what it brought has its places.
    under_way: RwLock<()>,
    shared: Mutex<Shared>,
    /// The last claim found as much as it asked for.
    more: AtomicBool,
}

#[derive(Default)]
struct Shared {
    /// The tenant that was served last.
    served: Option<String>,
    /// Places that claims under way will take, beyond those that their own commits free.
    promised: i64,
}

impl Claims {
    /// Waits until what claims under way bring has its places.
    pub async fn settled(&self) {
        drop(self.under_way.write().await);
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Claims what is due into the free places.
pub(super) async fn claim(engine: Arc<Inner>) {
    while !engine.draining() {
        engine.pulse.turns("claim", engine.clock.now());
        let mut wait = engine.poll_ms();
        let looked_at = engine.clock.now();
        if fill_places(&engine).await == Places::Left {
            wait = engine.until_next_due(wait, looked_at).await;
        }
        tokio::select! {
            () = engine.wake.notified() => {}
            () = tokio::time::sleep(Duration::from_millis(wait)) => {}
            () = engine.drain_began() => {}
        }
    }
}

/// What a claim found of the places of this node.
#[derive(PartialEq, Eq)]
enum Places {
    /// All are taken, or nobody knows.
    Taken,
    /// Nothing more is due now.
    Left,
}

/// One claim: as many chunks as places are free.
async fn fill_places(engine: &Arc<Inner>) -> Places {
    let _turn = engine.turn.take().await;
    let Some(claim) = Claim::begin(engine, 0) else { return Places::Taken };
    let free = claim.params.limit;
    let written = match engine.store.claim(claim.params.clone()).await {
        Ok(written) => written,
        Err(e) => {
            tracing::warn!(error = %e, "the claim failed and is tried again");
            engine.pulse.claim_failed(&e.to_string(), engine.clock.now());
            return Places::Taken;
        }
    };
    let left = if written.answer.len() == free { Places::Taken } else { Places::Left };
    let claimed = claim.enter(written.answer);
    announce(&engine.bus, &engine.wake, Written { answer: (), changes: written.changes });
    claimed.run(engine);
    left
}

/// Ends chunks; and where more waits than there are places, takes the next ones into the places that this frees.
pub(super) async fn commit(engine: &Arc<Inner>, items: Vec<ChunkCommit>) -> Result<Vec<(Committed, Mono)>, StoreError> {
    let (began, watch, count) = (engine.clock.mono(), Stopwatch::start(), items.len());
    let chunks: Vec<_> = items.iter().map(|item| (item.task, item.token, item.chunk)).collect();
    let claim = next_claim(engine, &items);
    let (written, claimed) = match &claim {
        None => (engine.store.commit(items).await, Vec::new()),
        Some(claim) => commit_and_claim(engine, items, claim).await,
    };
    failpoint!("publish.before");
    if let Ok(Written { answer, .. }) = &written {
        for ((id, token, chunk), committed) in chunks.into_iter().zip(answer) {
            if gives_up(committed, token, chunk) {
                engine.running.over(id, token);
            }
        }
    }
    let claimed = claim.filter(|_| written.is_ok()).map(|claim| claim.enter(claimed));
    let committed = watch.committed("chunks", count, written, &engine.bus, &engine.wake)?;
    if let Some(claimed) = claimed {
        claimed.run(engine);
    }
    Ok(committed.into_iter().map(|committed| (committed, began)).collect())
}

/// Whether the place of a chunk is free after its commit; where something of it was refused it is committed once more.
fn gives_up(committed: &Committed, token: FencingToken, chunk: i64) -> bool {
    let refused = committed.effect_fault.is_some() || committed.child_fault.is_some();
    let keeps = |task: &Task| committed.ended.keeps_lease(task, token, chunk);
    !refused && !committed.task.as_ref().is_some_and(keeps)
}

/// The claim that goes with a commit, if it is known that more waits. A commit with effects takes as long as they do, a round
/// trip each, and brings none: what waits is not to wait for them, where another place is free sooner.
fn next_claim<'e>(engine: &'e Arc<Inner>, items: &[ChunkCommit]) -> Option<Claim<'e>> {
    if !engine.claims.more.load(Ordering::Relaxed) || items.iter().any(|item| !item.effects.is_empty()) {
        return None;
    }
    let goes_on = |end: &ChunkEnd| matches!(end, ChunkEnd::Answered(o) if matches!(**o, Outcome::More { .. }));
    Claim::begin(engine, items.iter().filter(|item| !goes_on(&item.end)).count())
}

async fn commit_and_claim(
    engine: &Arc<Inner>,
    items: Vec<ChunkCommit>,
    claim: &Claim<'_>,
) -> (Result<Written<Vec<Committed>>, StoreError>, Vec<Claimed>) {
    match engine.store.commit_and_claim(items.clone(), Some(claim.params.clone())).await {
        Ok(Written { answer: (committed, claimed), changes }) => (Ok(Written { answer: committed, changes }), claimed),
        Err(e) => {
            // The loop finds out what is wrong with the claim, if it is that.
            engine.claims.more.store(false, Ordering::Relaxed);
            (if e.is_transient() { Err(e) } else { engine.store.commit(items).await }, Vec::new())
        }
    }
}

/// A claim under way.
struct Claim<'e> {
    engine: &'e Arc<Inner>,
    params: ClaimParams,
    /// Of the places that are free now, what it may take; less than nothing where its commit frees more than it asks for.
    promised: i64,
    at: Mono,
    watch: Stopwatch,
    /// A drain waits for it: what is claimed has its place before the drain looks who is to stop.
    _under_way: RwLockReadGuard<'e, ()>,
}

impl<'e> Claim<'e> {
    /// A claim into the places that are free, with those that its commit frees, if there are any and the node takes more work.
    fn begin(engine: &'e Arc<Inner>, freed: usize) -> Option<Self> {
        let under_way = engine.claims.under_way.try_read().ok().filter(|_| !engine.draining())?;
        let mut shared = engine.claims.shared();
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let free = count(engine.settings.parallelism + freed) - count(engine.running.taken()) - shared.promised;
        let limit = usize::try_from(free).unwrap_or(0).min(CLAIM_AT_ONCE);
        if limit == 0 {
            return None;
        }
        let promised = count(limit) - count(freed);
        shared.promised += promised;
        let params = ClaimParams {
            node: engine.settings.node.clone(),
            actions: engine.registry.actions(),
            packs: engine.registry.packs(),
            tenants: engine.settings.tenants.clone(),
            limit,
            lease_ms: engine.settings.lease_ms,
            after_tenant: shared.served.clone(),
            many_wait: engine.claims.more.load(Ordering::Relaxed),
            seats: None,
        };
        let (at, watch) = (engine.clock.mono(), Stopwatch::start());
        Some(Self { engine, params, promised, at, watch, _under_way: under_way })
    }

    /// Gives what was claimed its places, before anybody hears of the claim, so that an answer to it finds them.
    fn enter(self, claimed: Vec<Claimed>) -> Entered {
        let engine = self.engine;
        self.watch.tell(metric::CLAIM_SECONDS);
        engine.pulse.claimed(claimed.len(), engine.clock.now());
        measure::claimed(claimed.iter().map(|claimed| claimed.task.due_at), engine.clock.now());
        engine.claims.more.store(claimed.len() == self.params.limit, Ordering::Relaxed);
        if let Some(last) = claimed.last() {
            engine.claims.shared().served = Some(last.task.tenant.clone());
        }
        let enter = |c: Claimed| {
            let lease_end = self.at + given_ms(&c.task, engine.settings.lease_ms);
            (engine.running.enter(c.task.id, c.task.fencing_token, lease_end), c)
        };
        let chunks = claimed.into_iter().map(enter).collect();
        measure::running(engine.running.count());
        Entered { at: self.at, chunks }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.engine.claims.shared().promised -= self.promised;
    }
}

/// Claimed chunks that have their places.
struct Entered {
    at: Mono,
    chunks: Vec<(watch::Receiver<Told>, Claimed)>,
}

impl Entered {
    fn run(self, engine: &Arc<Inner>) {
        for (heard, claimed) in self.chunks {
            tokio::spawn(run_task(engine.clone(), claimed, self.at, heard));
        }
    }
}
