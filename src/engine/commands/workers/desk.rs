//! The desk: where polls of workers wait, and the one loop that claims for all of them.
//!
//! However many workers wait on a node, one claim looks for all that ask for the same actions of the same tenants, and deals
//! what it finds one by one in the order in which they came. So waiting costs memory and no connection, and the database is
//! asked once a poll interval and not once a worker. The loop wakes when a commit, here or elsewhere, made a chunk of an action
//! due that somebody waits for, when the next one is due by the clock, and once a poll interval, for wake-ups only save time.
//!
//! Invariants: a poll is answered once, by this loop; it is looked for at least once, however short its wait; it is never held
//! longer than its wait and [`BEYOND`]. What cannot be handed to it any more is dropped, and so given back (see [`super::lent`]).

use super::lent::{ChunkOut, Lent};
use super::{Shared, nobody_looked};
use crate::bus::{Signal, Subscription};
use crate::core::change::Change;
use crate::core::metric;
use crate::core::time::{Millis, Mono};
use crate::engine::commands::announce;
use crate::engine::measure::{self, Stopwatch};
use crate::engine::{SHORTEST_WAIT_MS, exchange};
use crate::store::{ClaimParams, Claimed, Result, Seats, StoreError};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// Polls of one key that may wait on a node at once.
pub const POLLS_OF_A_KEY: usize = 100;
/// The most chunks of one claim.
const CLAIM_AT_ONCE: usize = 100;
/// How much longer than its wait a poll is held at the most: the database may hang.
const BEYOND: Duration = Duration::from_secs(10);
/// How often it is noted that somebody asks for an action, ms.
const NOTE_EVERY_MS: u64 = 20_000;

/// What a worker asks for.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The tenant it works for; none for all.
    pub tenant: Option<String>,
    /// The actions that it can run.
    pub actions: Vec<String>,
    /// Its name, for people.
    pub worker: String,
    /// At most so many chunks.
    pub max: usize,
    /// How long it waits for the first one.
    pub wait: Duration,
}

/// Who can be served by one claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Kind {
    tenant: Option<String>,
    actions: Vec<String>,
}

struct Poll {
    kind: Kind,
    holder: String,
    max: usize,
    until: Mono,
    /// What came of the last look; none before the first.
    looked: Option<Result<()>>,
    answer: oneshot::Sender<Result<Vec<Lent>>>,
}

/// The polls that wait on this node.
#[derive(Default)]
pub(super) struct Desk {
    polls: Mutex<Vec<Poll>>,
    rung: Notify,
    of_key: Arc<Mutex<HashMap<String, usize>>>,
}

/// A place to wait, counted for its key until it is dropped.
pub struct Permit {
    key: String,
    of_key: Arc<Mutex<HashMap<String, usize>>>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut counts = lock(&self.of_key);
        if let Some(count) = counts.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    /// A place for one more poll of a key.
    pub fn place(&self, key: &str) -> Option<Permit> {
        let mut counts = lock(&self.of_key);
        let count = counts.entry(key.to_owned()).or_default();
        if *count >= POLLS_OF_A_KEY {
            return None;
        }
        *count += 1;
        Some(Permit { key: key.to_owned(), of_key: self.of_key.clone() })
    }
}

/// Waits at the desk.
pub(super) async fn wait(shared: &Arc<Shared>, permit: Permit, ask: Ask) -> Result<Vec<Lent>> {
    let Ask { tenant, mut actions, worker, max, wait } = ask;
    actions.sort();
    actions.dedup();
    let until = shared.parts.clock.mono() + u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    let (answer, mut answered) = oneshot::channel();
    let kind = Kind { tenant, actions };
    let poll = Poll { kind, holder: format!("worker:{worker}"), max, until, looked: None, answer };
    lock(&shared.desk.polls).push(poll);
    shared.desk.rung.notify_one();
    let came = tokio::time::timeout(wait + BEYOND, &mut answered).await;
    drop(permit);
    match came {
        Ok(came) => came.unwrap_or_else(|_| Err(nobody_looked())),
        Err(_) => {
            answered.close();
            answered.try_recv().unwrap_or_else(|_| Err(nobody_looked()))
        }
    }
}

/// The loop.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut signals = shared.parts.bus.subscribe();
    let mut desk = Clerk { shared: shared.clone(), noted: HashMap::new(), after_tenant: None };
    loop {
        let looked_at = shared.parts.clock.now();
        let filled = desk.serve().await;
        let Some(wait) = desk.until_next_look(looked_at).await else {
            tokio::select! {
                () = shared.desk.rung.notified() => {}
                () = ignored(&mut signals) => return,
            }
            continue;
        };
        if filled {
            // There may be more than one claim takes.
            continue;
        }
        tokio::select! {
            () = shared.desk.rung.notified() => {}
            () = desk.wanted(&mut signals) => {}
            () = tokio::time::sleep(wait) => {}
            () = shared.parts.closing.cancelled() => desk.dismiss_all(),
        }
    }
}

/// Hears signals that nobody waits for; ends with the bus.
async fn ignored(signals: &mut Subscription) {
    while signals.next().await.is_some() {}
}

/// Who works at the desk.
struct Clerk {
    shared: Arc<Shared>,
    /// When it was last noted that somebody asks, by (tenant or `*`, action).
    noted: HashMap<(String, String), Mono>,
    after_tenant: Option<String>,
}

impl Clerk {
    fn now(&self) -> Mono {
        self.shared.parts.clock.mono()
    }

    /// One look for everybody who waits; answers whether somebody may get more at once.
    async fn serve(&mut self) -> bool {
        let mut polls = std::mem::take(&mut *lock(&self.shared.desk.polls));
        polls.retain(|poll| !poll.answer.is_closed());
        if self.shared.parts.closing.is_cancelled() {
            dismiss(polls);
            return false;
        }
        self.note(&polls).await;
        let mut filled = false;
        let mut left = Vec::with_capacity(polls.len());
        while !polls.is_empty() {
            let kind = polls[0].kind.clone();
            let (same, others) = polls.into_iter().partition(|poll| poll.kind == kind);
            polls = others;
            let (waiting, more) = self.serve_kind(kind, same).await;
            filled |= more && !waiting.is_empty();
            left.extend(waiting);
        }
        let now = self.now();
        let (over, mut left): (Vec<Poll>, Vec<Poll>) = left.into_iter().partition(|poll| poll.until <= now);
        dismiss(over);
        let mut waiting = lock(&self.shared.desk.polls);
        left.append(&mut waiting);
        *waiting = left;
        measure::polls(waiting.len());
        filled
    }

    /// One claim for polls that ask for the same; answers those that go on waiting, and whether it took all it could.
    async fn serve_kind(&mut self, kind: Kind, polls: Vec<Poll>) -> (Vec<Poll>, bool) {
        let seats = deal(&polls);
        let claimed = match self.claim(kind, &polls, &seats).await {
            Ok(claimed) => claimed,
            Err(e) => {
                tracing::warn!(error = %e, "a claim for workers failed and is tried again");
                let looked = |poll: Poll| Poll { looked: Some(Err(e.clone())), ..poll };
                return (polls.into_iter().map(looked).collect(), false);
            }
        };
        let more = claimed.len() == seats.len();
        let mut hands: Vec<Vec<Lent>> = polls.iter().map(|_| Vec::new()).collect();
        for (claimed, seat) in claimed.into_iter().zip(seats) {
            hands[seat].push(self.lent(claimed));
        }
        let mut waiting = Vec::new();
        for (poll, hand) in polls.into_iter().zip(hands) {
            if hand.is_empty() {
                waiting.push(Poll { looked: Some(Ok(())), ..poll });
            } else {
                // What is refused comes back, is dropped, and so is given back.
                drop(poll.answer.send(Ok(hand)));
            }
        }
        (waiting, more)
    }

    async fn claim(&mut self, kind: Kind, polls: &[Poll], seats: &[usize]) -> Result<Vec<Claimed>> {
        let parts = &self.shared.parts;
        let actions: Vec<_> = kind.actions.iter().filter_map(|key| self.shared.pulled(key)).collect();
        let packs: BTreeSet<String> = actions.iter().filter_map(|action| action.pack.clone()).collect();
        let holders = seats.iter().map(|seat| polls[*seat].holder.clone()).collect();
        let chunk_ms = actions.iter().map(|action| (action.key.clone(), action.chunk_timeout_ms)).collect();
        let params = ClaimParams {
            node: "worker".to_owned(),
            actions: actions.iter().map(|action| action.key.clone()).collect(),
            packs: packs.into_iter().collect(),
            tenants: kind.tenant.into_iter().collect(),
            limit: seats.len(),
            lease_ms: parts.settings.lease_ms,
            after_tenant: self.after_tenant.clone(),
            many_wait: false,
            seats: Some(Seats { holders, chunk_ms }),
        };
        let watch = Stopwatch::start();
        let written = parts.store.claim(params).await?;
        watch.tell(metric::CLAIM_SECONDS);
        measure::claimed(written.answer.iter().map(|claimed| claimed.task.due_at), parts.clock.now());
        let claimed = announce(&parts.bus, &parts.wake, written);
        self.after_tenant = claimed.last().map(|c| c.task.tenant.clone()).or(self.after_tenant.take());
        Ok(claimed)
    }

    fn lent(&self, claimed: Claimed) -> Lent {
        let Claimed { task, documents } = claimed;
        let chunk = exchange::chunk_in(&self.shared.parts.catalogue, &task, &documents);
        let lease_ms = self.shared.parts.settings.lease_ms;
        let timeout_ms = self.shared.pulled(&task.action).map_or(lease_ms, |action| action.chunk_timeout_ms);
        let out = ChunkOut { chunk, lease_ms: lease_ms.min(timeout_ms), timeout_ms };
        Lent::new(out, task, self.shared.clone())
    }

    /// Notes now and then what is asked for, so that every node knows which actions are attended to.
    async fn note(&mut self, polls: &[Poll]) {
        let now = self.now();
        self.noted.retain(|_, at| now - *at < NOTE_EVERY_MS);
        let mut asks: Vec<(String, String)> = Vec::new();
        for Kind { tenant, actions } in polls.iter().map(|poll| &poll.kind) {
            let tenant = tenant.as_deref().unwrap_or("*");
            asks.extend(actions.iter().map(|action| (tenant.to_owned(), action.clone())));
        }
        asks.sort();
        asks.dedup();
        asks.retain(|ask| !self.noted.contains_key(ask));
        if asks.is_empty() {
            return;
        }
        match self.shared.parts.store.note_asks(&asks).await {
            Ok(()) => self.noted.extend(asks.into_iter().map(|ask| (ask, now))),
            Err(e) => tracing::warn!(error = %e, "it could not be noted what workers ask for"),
        }
    }

    /// How long to wait at most; none when nobody does.
    async fn until_next_look(&self, looked_at: Millis) -> Option<Duration> {
        let now = self.now();
        let first = lock(&self.shared.desk.polls).iter().map(|poll| poll.until - now).min()?;
        let parts = &self.shared.parts;
        let poll_ms = (parts.settings.poll_ms as f64 * (0.75 + 0.5 * parts.rng.unit())) as u64;
        // What was due already when the claim looked is for others, and no reason to turn faster.
        let due = match parts.store.next_due().await {
            Ok(Some(due)) if due > looked_at => due.since(parts.clock.now()).max(SHORTEST_WAIT_MS).unsigned_abs(),
            _ => poll_ms,
        };
        Some(Duration::from_millis(poll_ms.min(due).min(first)))
    }

    /// Waits for a signal after which there may be something for somebody here.
    async fn wanted(&self, signals: &mut Subscription) {
        loop {
            match signals.next().await {
                Some(Signal::Changes(changes)) => {
                    let polls = lock(&self.shared.desk.polls);
                    let asked = |action: &String| polls.iter().any(|poll| poll.kind.actions.contains(action));
                    let due = |change: &Change| matches!(change, Change::Task(t) if t.wakes() && asked(&t.action));
                    if changes.iter().any(due) {
                        return;
                    }
                }
                Some(Signal::Elsewhere | Signal::Missed) => return,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }

    fn dismiss_all(&self) {
        dismiss(std::mem::take(&mut *lock(&self.shared.desk.polls)));
    }
}

/// Ends polls without chunks: an empty answer, or why nobody could look.
fn dismiss(polls: Vec<Poll>) {
    for poll in polls {
        let fault: Option<StoreError> = poll.looked.and_then(Result::err);
        // Nobody may be there any more, who then misses nothing.
        let _ = poll.answer.send(fault.map_or_else(|| Ok(Vec::new()), Err));
    }
}

/// Which poll gets the first chunk, the second, and so on: one each in the order in which they came, then one more each.
fn deal(polls: &[Poll]) -> Vec<usize> {
    let most = polls.iter().map(|poll| poll.max).max().unwrap_or_default();
    let round = |n: usize| polls.iter().enumerate().filter(move |(_, poll)| poll.max > n).map(|(at, _)| at);
    (0..most).flat_map(round).take(CLAIM_AT_ONCE).collect()
}
