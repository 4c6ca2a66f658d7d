//! What a claim costs, whoever else waits: it has to read its own rows and no others.

use crate::Kind;
use crate::crowd::{behind_a_key, chunk_end};
use crate::figures::{Figures, Unit};
use crate::work::{claim_of, lay_out, median_ms, open};
use std::time::{Duration, Instant};
use taskbell::core::chunk::{Outcome, Told};
use taskbell::store::{Claimed, Store};

/// Chunks of one claim: the free places of a node as it is without a configuration.
const CHUNKS: usize = 16;
/// Claims of one figure.
const TIMES: usize = 50;
/// For what was written to be told by the server.
const COUNTED_WITHIN: Duration = Duration::from_secs(15);
/// Tasks that wait in the small queue.
const FEW: usize = 100;

/// Takes the figures of this file.
pub async fn measure(figures: &mut Figures, kind: Kind, others: usize) {
    let ground = kind.ground().await;
    let store = open(&ground).await;
    let store: &dyn Store = store.as_ref();
    lay_out(store, FEW, |submit| submit).await;
    figures.take(&format!("a claim of 16, {FEW} others waiting"), Unit::Ms, || claims(store)).await;
    lay_out(store, 1, |submit| behind_a_key(submit, others)).await;
    let held = until_claimed(store).await;
    lay_out(store, others, |submit| behind_a_key(submit, others)).await;
    counted(store).await;
    figures.take(&format!("a claim of 16, {others} more blocked behind a key"), Unit::Ms, || claims(store)).await;
    figures.take("a chunk's end that gives the key to the next of them", Unit::Ms, || ends(store, held)).await;
    lay_out(store, others, |submit| submit).await;
    counted(store).await;
    figures.take(&format!("a claim of 16, {others} more waiting"), Unit::Ms, || claims(store)).await;
}

/// Has a server count what was laid out, as each node does; it tells how much that is within some seconds. A table that has not
/// doubled is not counted, and one that was counted by the server itself neither.
async fn counted(store: &dyn Store) {
    let deadline = Instant::now() + COUNTED_WITHIN;
    while !store.capabilities().single_process && Instant::now() < deadline {
        if store.analyze_grown().await.unwrap().iter().any(|table| table == "taskbell_tasks") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Sixteen more come in, sixteen are claimed; so as many wait at each claim.
async fn claims(store: &dyn Store) -> f64 {
    median_ms(TIMES, async || {
        lay_out(store, CHUNKS, |submit| submit).await;
        let began = Instant::now();
        let claimed = store.claim(claim_of(CHUNKS)).await.unwrap().answer;
        assert_eq!(claimed.len(), CHUNKS);
        began.elapsed()
    })
    .await
}

/// Claims until the task that holds the key is claimed.
async fn until_claimed(store: &dyn Store) -> Claimed {
    store.claim(claim_of(1)).await.unwrap().answer.pop().filter(|c| c.task.slot_held).expect("it comes first")
}

/// The task that holds the key ends, and the next one gets it.
async fn ends(store: &dyn Store, first: Claimed) -> f64 {
    let mut holder = Some(first);
    median_ms(TIMES, async || {
        let claimed = holder.take().expect("somebody holds the key");
        let commit = chunk_end(&claimed, Outcome::Done { result: None, told: Told::default() });
        let began = Instant::now();
        store.commit(vec![commit]).await.unwrap();
        let took = began.elapsed();
        holder = Some(until_claimed(store).await);
        took
    })
    .await
}
