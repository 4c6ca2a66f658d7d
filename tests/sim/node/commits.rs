//! Commits as the engine makes them: of chunks in groups (what arrives while one is under way goes into the next one
//! together), of clicks one by one; both are tried again after a fault that may pass.

use super::Node;
use std::future::Future;
use std::sync::{Arc, Mutex};
use taskbell::core::submit::{Submit, Submitted};
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
        match node.patient(|_again| node.store.commit(items.clone())).await {
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
