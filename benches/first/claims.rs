//! What a claim costs, whoever else waits: it has to read its own rows and no others.

use crate::Kind;
use crate::figures::{Figures, Unit};
use crate::work::{claim_of, lay_out, median_ms, open};
use std::time::Instant;
use taskbell::core::action::Policy;
use taskbell::core::chunk::{Outcome, Told};
use taskbell::core::lifecycle::ChunkEnd;
use taskbell::core::submit::{SlotClaim, Submit};
use taskbell::core::task::{Concurrency, Hold};
use taskbell::store::{ChunkCommit, Claimed, Store};

/// Chunks of one claim: the free places of a node as it is without a configuration.
const CHUNKS: usize = 16;
/// Claims of one figure.
const TIMES: usize = 50;
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
    figures.take(&format!("a claim of 16, {others} more blocked behind a key"), Unit::Ms, || claims(store)).await;
    figures.take("a chunk's end that gives the key to the next of them", Unit::Ms, || ends(store, held)).await;
    lay_out(store, others, |submit| submit).await;
    figures.take(&format!("a claim of 16, {others} more waiting"), Unit::Ms, || claims(store)).await;
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

fn behind_a_key(mut submit: Submit, others: usize) -> Submit {
    submit.slot = Some(SlotClaim {
        concurrency: Concurrency { key: "month-end".into(), limit: 1, hold: Hold::Task },
        policy: Policy::Wait,
        max_waiting: u32::try_from(others).unwrap() + 1,
    });
    // Before all others, so that a claim finds it at once when its turn has come.
    submit.priority = 100;
    submit
}

/// Claims until the task that holds the key is claimed.
async fn until_claimed(store: &dyn Store) -> Claimed {
    store.claim(claim_of(1)).await.unwrap().answer.pop().filter(|c| c.task.slot_held).expect("it comes first")
}

/// The task that holds the key ends, and the next one gets it.
async fn ends(store: &dyn Store, first: Claimed) -> f64 {
    let mut holder = Some(first);
    median_ms(TIMES, async || {
        let Claimed { task, .. } = holder.take().expect("somebody holds the key");
        let commit = ChunkCommit {
            task: task.id,
            token: task.fencing_token,
            chunk: 1,
            end: ChunkEnd::Answered(Box::new(Outcome::Done { result: None, told: Told::default() })),
            effects: Vec::new(),
            children: Vec::new(),
            retry: taskbell::core::retry::RetryPolicy::default(),
            unit_random: 0.5,
            continue_for_ms: None,
        };
        let began = Instant::now();
        store.commit(vec![commit]).await.unwrap();
        let took = began.elapsed();
        holder = Some(until_claimed(store).await);
        took
    })
    .await
}
