//! Commits as the engine makes them: of chunks in groups (what arrives while one is under way goes into the next one
//! together), of clicks one by one; both are tried again after a fault that may pass.

use super::Node;
use std::future::Future;
use std::sync::{Arc, Mutex};
use taskbell::core::chunk::Outcome;
use taskbell::core::lifecycle::ChunkEnd;
use taskbell::core::submit::{Submit, Submitted};
use taskbell::core::task::Task;
use taskbell::core::time::Clock;
use taskbell::store::{ChunkCommit, Committed, Result, Store, StoreError, Written};
use tokio::sync::{Notify, oneshot};

/// How often a transient fault is tried again, and the wait before the n-th time, ms.
const RETRIES: i64 = 5;
const RETRY_STEP_MS: i64 = 40;

type Waiting = (ChunkCommit, oneshot::Sender<Result<Committed>>);

/// What waits to be committed.
#[derive(Default)]
pub(super) struct Commits {
    waiting: Mutex<Vec<Waiting>>,
    rung: Notify,
}

impl Commits {
    /// The answer for one chunk, after its commit.
    pub async fn call(&self, item: ChunkCommit) -> Result<Committed> {
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().unwrap().push((item, sender));
        self.rung.notify_one();
        answer.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the node is gone".into())))
    }
}

/// The loop that commits.
pub(super) async fn run(node: Arc<Node>) {
    loop {
        node.commits.rung.notified().await;
        let _turn = node.turn.lock().await;
        let (items, senders): (Vec<ChunkCommit>, Vec<_>) =
            std::mem::take(&mut *node.commits.waiting.lock().unwrap()).into_iter().unzip();
        if items.is_empty() {
            continue;
        }
        match node.end_chunks(items).await {
            Ok(answers) => {
                for (sender, answer) in senders.into_iter().zip(answers) {
                    drop(sender.send(Ok(answer)));
                }
            }
            Err(e) => senders.into_iter().for_each(|sender| drop(sender.send(Err(e.clone())))),
        }
    }
}

impl Node {
    /// Ends chunks; every second time the next ones are claimed in the same commit.
    async fn end_chunks(self: &Arc<Self>, items: Vec<ChunkCommit>) -> Result<Vec<Committed>> {
        let chunks: Vec<_> = items.iter().map(|item| (item.task, item.token, item.chunk)).collect();
        let goes_on = |end: &ChunkEnd| matches!(end, ChunkEnd::Answered(o) if matches!(**o, Outcome::More { .. }));
        let freed = items.iter().filter(|item| !goes_on(&item.end)).count();
        let claims = self.world.dice.below(2) == 0;
        self.patient(|_again| {
            let (items, next, claimed_at) = (items.clone(), self.next_claim(freed).filter(|_| claims), self.mono());
            let chunks = &chunks;
            async move {
                let Some(next) = next else { return self.store.commit(items).await };
                let written = self.store.commit_and_claim(items, Some(next)).await?;
                let (committed, claimed) = written.answer;
                for ((id, token, chunk), committed) in chunks.iter().zip(&committed) {
                    let refused = committed.effect_fault.is_some() || committed.child_fault.is_some();
                    let keeps = |task: &Task| committed.ended.keeps_lease(task, *token, *chunk);
                    if !refused && !committed.task.as_ref().is_some_and(keeps) {
                        self.running.over(*id, *token);
                    }
                }
                self.world
                    .seen
                    .note("claim", if claimed.is_empty() { "beside a commit, nothing" } else { "with a commit" });
                self.start(claimed, claimed_at);
                Ok(Written { answer: committed, changes: written.changes })
            }
        })
        .await
    }

    /// Accepts clicks, as the engine's command handle does.
    pub async fn submit(&self, items: &[Submit]) -> Result<Vec<Submitted>> {
        self.patient(|again| async move {
            let items = items.to_vec();
            if again { self.store.submit_again(items).await } else { self.store.submit(items).await }
        })
        .await
    }

    /// Tries a batch again after a transient fault, which may have been the loss of its answer.
    async fn patient<T, F: Future<Output = Result<Written<T>>>>(&self, run: impl Fn(bool) -> F) -> Result<T> {
        let mut attempt = 0;
        loop {
            match run(attempt > 0).await {
                Err(e) if e.is_transient() && attempt < RETRIES => {
                    attempt += 1;
                    self.sleep(RETRY_STEP_MS * attempt).await;
                }
                answer => return Ok(self.announce(answer?)),
            }
        }
    }
}
