//! Group commit: what arrives while a commit is under way goes into the next one together.
//!
//! A lone call waits only for its own commit: nothing is held back by a timer. Under load the batch grows by itself, so
//! throughput is bounded by rows and not by commits. The mailbox is bounded; when it is full the caller is told to come
//! back later, before memory grows.
//!
//! Whoever writes much takes a [`Turn`] first and looks only then at what waits: a batch that is fixed before it can be
//! committed would miss all that comes meanwhile, and many small commits would take the place of a few full ones.
//!
//! Rows stay locked until the commit. Where it takes long, as over a slow line, whoever has other business with them waits: so
//! a batch may be held to a time, by as many items as the ones before let expect.
//!
//! Named failure cases: a batch that the store refuses for a reason that one item may have caused is tried again item by
//! item, so that nobody fails for a neighbour; a transient fault is tried again a few times, and since it may
//! have been the loss of an answer, whoever commits is told that it is not the first try; a caller that has gone away does
//! not take its item back.

use crate::core::time::{Clock, Mono};
use crate::store::{Result, Store, StoreError};
use futures_util::poll;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// The most items of one commit.
const MAX_BATCH: usize = 500;
/// The items of the first commit that is held to a time; then it is known what they take.
const FIRST_BATCH: usize = 4;
/// How often others are let by before a batch is fixed.
const MOST_YIELDS: usize = 16;
/// So many items are not divided between two commits.
const FEW: usize = 16;
/// The most items that may wait.
const MAILBOX: usize = 8_192;
/// How often a transient fault is tried again, and the wait before the n-th time.
const RETRIES: u32 = 5;
const RETRY_STEP: Duration = Duration::from_millis(40);
/// No further try begins after this: a database that is away takes its time to say so, and whoever waits is to be told that
/// they may come again.
const PATIENCE: Duration = Duration::from_secs(2);

type Waiting<Q, A> = (Q, oneshot::Sender<Result<A>>);

/// How many items a commit may have, so that it takes no longer than it may.
struct Pace {
    at_most_ms: u64,
    items: usize,
}

impl Pace {
    /// A commit of so many items took so long.
    fn took(&mut self, items: usize, ms: u64) {
        if ms > self.at_most_ms {
            self.items = (items / 2).max(1);
        } else if items == self.items && ms < self.at_most_ms / 3 {
            self.items = (2 * items).min(MAX_BATCH);
        }
    }
}

/// The pace of a group's commits, by a clock.
struct Paced {
    pace: Mutex<Pace>,
    clock: Arc<dyn Clock>,
}

impl Paced {
    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn items(&self) -> usize {
        self.pace().items
    }

    fn took(&self, items: usize, began: Mono) {
        self.pace().took(items, self.clock.mono() - began);
    }
}

/// Whose turn it is to write, first come first served. Shared by those whose batches feed each other.
#[derive(Clone)]
pub struct Turn {
    turns: Arc<Semaphore>,
    at_once: usize,
}

impl Turn {
    /// Turns on a database: one at a time where there is one writer, and otherwise two, so that the next batch is under way
    /// while the one before waits for the disk.
    #[must_use]
    pub fn on(store: &dyn Store) -> Self {
        Self::of(if store.capabilities().single_process { 1 } else { 2 })
    }

    fn of(at_once: usize) -> Self {
        Self { turns: Arc::new(Semaphore::new(at_once)), at_once }
    }

    /// Waits for its turn. Holds until it is dropped.
    pub async fn take(&self) -> OwnedSemaphorePermit {
        self.turns.clone().acquire_owned().await.expect("nobody closes it")
    }

    /// How many of those who wait are for one batch, taken with a turn: where the other turn is free, half of many, so that
    /// there are two batches of one size and not a large one after a small one.
    fn share(&self, waiting: usize) -> usize {
        let alone = self.at_once > 1 && self.turns.available_permits() + 1 == self.at_once;
        if alone && waiting > FEW { waiting.div_ceil(2) } else { waiting }
    }
}

/// The front of a group commit: gives one item and gets its answer after the commit.
pub struct Group<Q, A> {
    mailbox: mpsc::Sender<Waiting<Q, A>>,
}

impl<Q, A> Clone for Group<Q, A> {
    fn clone(&self) -> Self {
        Self { mailbox: self.mailbox.clone() }
    }
}

impl<Q: Clone + Send + Sync + 'static, A: Send + 'static> Group<Q, A> {
    /// Starts the loop that commits. `run` is called with one batch after the other, each in a turn, and with whether an
    /// earlier try of it may have been committed; it answers item by item.
    pub fn start<F, Fut>(turn: Turn, run: F) -> Self
    where
        F: Fn(Vec<Q>, bool) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<A>>> + Send + 'static,
    {
        let (mailbox, receiver) = mpsc::channel(MAILBOX);
        tokio::spawn(commit_loop(receiver, None, turn, Arc::new(run)));
        Self { mailbox }
    }

    /// The same with batches that are expected to take no longer than this by a clock, ms.
    pub fn held_to<F, Fut>(at_most_ms: u64, clock: Arc<dyn Clock>, turn: Turn, run: F) -> Self
    where
        F: Fn(Vec<Q>, bool) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<A>>> + Send + 'static,
    {
        let (mailbox, receiver) = mpsc::channel(MAILBOX);
        let pace = Paced { pace: Mutex::new(Pace { at_most_ms, items: FIRST_BATCH }), clock };
        tokio::spawn(commit_loop(receiver, Some(Arc::new(pace)), turn, Arc::new(run)));
        Self { mailbox }
    }

    /// The answer for one item. `Busy` when too many wait.
    pub async fn call(&self, item: Q) -> Result<A> {
        let (sender, answer) = oneshot::channel();
        self.mailbox.try_send((item, sender)).map_err(|e| match e {
            mpsc::error::TrySendError::Full(_) => StoreError::Busy("too many requests wait for the database".into()),
            mpsc::error::TrySendError::Closed(_) => StoreError::Unavailable("the service is shutting down".into()),
        })?;
        answer.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the service is shutting down".into())))
    }
}

async fn commit_loop<Q, A, F, Fut>(
    mut receiver: mpsc::Receiver<Waiting<Q, A>>,
    paced: Option<Arc<Paced>>,
    turn: Turn,
    run: Arc<F>,
) where
    Q: Clone + Send + Sync + 'static,
    A: Send + 'static,
    F: Fn(Vec<Q>, bool) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<A>>> + Send + 'static,
{
    while let Some(first) = receiver.recv().await {
        let taken = turn.take().await;
        gathered(&receiver).await;
        let at_most = paced.as_ref().map_or(MAX_BATCH, |paced| paced.items()).min(turn.share(1 + receiver.len()));
        let others = std::iter::from_fn(|| receiver.try_recv().ok());
        let (items, senders) = std::iter::once(first).chain(others).take(at_most).unzip();
        let (run, paced) = (run.clone(), paced.clone());
        tokio::spawn(async move {
            commit_batch(run.as_ref(), paced.as_deref(), items, senders).await;
            drop(taken);
        });
    }
}

async fn commit_batch<Q, A, F, Fut>(
    run: &F,
    paced: Option<&Paced>,
    items: Vec<Q>,
    senders: Vec<oneshot::Sender<Result<A>>>,
) where
    Q: Clone,
    F: Fn(Vec<Q>, bool) -> Fut,
    Fut: Future<Output = Result<Vec<A>>>,
{
    let began = paced.map(|paced| paced.clock.mono());
    match patient(run, &items, false).await {
        Ok(answers) => {
            if let (Some(paced), Some(began)) = (paced, began) {
                paced.took(items.len(), began);
            }
            for (sender, answer) in senders.into_iter().zip(answers) {
                let _ = sender.send(Ok(answer));
            }
        }
        Err(e) if items.len() == 1 || e.is_transient() => {
            for sender in senders {
                let _ = sender.send(Err(e.clone()));
            }
        }
        Err(_) => {
            for (item, sender) in items.iter().zip(senders) {
                let answer = patient(run, std::slice::from_ref(item), true).await;
                let _ = sender.send(answer.and_then(|mut a| {
                    a.pop().ok_or_else(|| StoreError::Corrupt("the store answered fewer items than asked".into()))
                }));
            }
        }
    }
}

/// Lets everybody who is ready at this moment put in what they have: as long as something comes without anybody waiting for
/// it.
async fn gathered<T>(waiting: &mpsc::Receiver<T>) {
    let mut before = None;
    for _ in 0..MOST_YIELDS {
        if before.replace(waiting.len()) == Some(waiting.len()) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn patient<Q, A, F, Fut>(run: &F, items: &[Q], again: bool) -> Result<Vec<A>>
where
    Q: Clone,
    F: Fn(Vec<Q>, bool) -> Fut,
    Fut: Future<Output = Result<Vec<A>>>,
{
    let (mut attempt, mut over) = (0, pin!(tokio::time::sleep(PATIENCE)));
    loop {
        match run(items.to_vec(), again || attempt > 0).await {
            Err(e) if e.is_transient() && attempt < RETRIES && poll!(over.as_mut()).is_pending() => {
                attempt += 1;
                tokio::time::sleep(RETRY_STEP * attempt).await;
            }
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::Notify;

    #[tokio::test]
    async fn with_two_writers_half_of_those_who_wait_go_beside_the_others_and_with_one_all_go_together() {
        let one = Turn::of(1);
        let taken = one.take().await;
        assert_eq!(one.share(32), 32);
        drop(taken);
        let two = Turn::of(2);
        let first = two.take().await;
        assert_eq!((two.share(FEW), two.share(31)), (FEW, 16), "a few stay together");
        let second = two.take().await;
        assert_eq!(two.share(31), 31);
        drop(first);
        assert_eq!(two.share(32), 16, "the other one is free again");
        drop(second);
    }

    #[tokio::test]
    async fn a_commit_that_hangs_holds_up_no_other_where_there_are_two_writers() {
        let hangs = Arc::new(Notify::new());
        let group = {
            let hangs = hangs.clone();
            Group::start(Turn::of(2), move |items: Vec<u8>, _| {
                let hangs = hangs.clone();
                async move {
                    if items.contains(&0) {
                        hangs.notify_one();
                        std::future::pending().await
                    }
                    Ok(items)
                }
            })
        };
        let hung = {
            let group = group.clone();
            tokio::spawn(async move { group.call(0).await })
        };
        hangs.notified().await;
        for n in 1..10 {
            assert_eq!(group.call(n).await.unwrap(), n);
        }
        assert!(!hung.is_finished());
        hung.abort();
    }

    #[test]
    fn a_commit_that_takes_too_long_is_followed_by_smaller_ones_and_a_fast_one_by_larger() {
        let mut pace = Pace { at_most_ms: 3_000, items: 4 };
        pace.took(4, 13_000);
        assert_eq!(pace.items, 2);
        pace.took(2, 2_000);
        assert_eq!(pace.items, 2, "as many more would take too long");
        pace.took(2, 4_000);
        pace.took(1, 4_000);
        assert_eq!(pace.items, 1, "one has to be");
        for _ in 0..20 {
            pace.took(pace.items, 0);
        }
        assert_eq!(pace.items, MAX_BATCH);
        pace.took(3, 0);
        assert_eq!(pace.items, MAX_BATCH, "a few say nothing of many");
    }
}
