//! Batches that are written without a look before: they rest on tasks as this node has written them last, and nothing of them
//! may happen where one of these is another version by then.

use super::fixture::{Fixture, LEASE_MS};
use super::words::*;
use crate::support::eventually;
use std::time::Duration;
use taskbell::core::lifecycle::{Ask, Ended};
use taskbell::core::submit::Submitted;
use taskbell::core::task::State;
use taskbell::store::{AskParams, ChunkCommit, Claimed};

/// Long beside what any of it takes.
const LIMIT: Duration = Duration::from_secs(60);
const GOES_ON: Ended = Ended::Applied { continues: true };

fn goes_on(claimed: &Claimed, n: i64) -> ChunkCommit {
    ChunkCommit { continue_for_ms: Some(LEASE_MS), chunk: n, ..ended(claimed, more(n)) }
}

async fn claimed(f: &Fixture, count: usize) -> Vec<Claimed> {
    f.submit((0..count).map(|_| click()).collect()).await;
    f.claim(count).await
}

/// Ends of chunks in one batch; how each of them ended.
async fn ends(f: &Fixture, items: Vec<ChunkCommit>) -> Vec<Ended> {
    f.heard(f.store.commit(items).await.unwrap()).into_iter().map(|committed| committed.ended).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ends_of_chunks_see_what_another_node_was_asked_meanwhile() {
    let f = Fixture::postgres().await;
    let claimed = claimed(&f, 3).await;
    let stopped = claimed[1].task.id;
    let ask = AskParams { caller: operator(), task: stopped, ask: Ask::Cancel, reason: None };
    f.heard(f.opened_again().await.ask(vec![ask]).await.unwrap());
    let ended = ends(&f, claimed.iter().map(|c| goes_on(c, 1)).collect()).await;
    assert_eq!(ended, [GOES_ON, Ended::Applied { continues: false }, GOES_ON]);
    assert_eq!(f.state(stopped).await, State::Cancelled);
    assert_eq!(
        f.reasons(stopped).await.iter().filter(|reason| *reason == "claimed").count(),
        1,
        "nothing stands twice"
    );
    f.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ends_of_chunks_that_another_node_has_taken_over_are_stale_and_their_neighbours_are_not() {
    let f = Fixture::postgres().await;
    let before = claimed(&f, 2).await;
    f.lose_leases().await;
    let other = f.opened_again().await;
    let params = super::fixture::claim_params("other", 1);
    let taken = f.heard(other.claim(params).await.unwrap()).pop().unwrap();
    let mine = f.claim_one().await;
    let old = before.iter().find(|c| c.task.id == taken.task.id).unwrap();
    assert_eq!(ends(&f, vec![goes_on(old, 1), goes_on(&mine, 1)]).await, [Ended::Stale, GOES_ON]);
    assert_eq!(f.get(taken.task.id).await.fencing_token, taken.task.fencing_token);
    f.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ends_of_chunks_wait_for_who_has_locked_one_of_their_tasks() {
    let f = Fixture::postgres().await;
    let claimed = claimed(&f, 2).await;
    let mut writing = f.opened_again().await.begin().await.unwrap();
    writing.load(&[claimed[1].task.id]).await.unwrap();
    let (store, items) = (f.store.clone(), claimed.iter().map(|c| goes_on(c, 1)).collect());
    let commit = tokio::spawn(async move { store.commit(items).await });
    let waits = "SELECT COUNT(*) FROM pg_locks WHERE NOT granted";
    eventually("it waits for the row", LIMIT, async || {
        let count: i64 = sqlx::query_scalar(waits).fetch_one(&mut f.database().connect().await).await.unwrap();
        (count > 0).then_some(())
    })
    .await;
    assert_eq!(f.get(claimed[0].task.id).await.chunks, 0, "not a part of it has happened");
    drop(writing);
    let ended: Vec<Ended> = f.heard(commit.await.unwrap().unwrap()).into_iter().map(|c| c.ended).collect();
    assert_eq!(ended, [GOES_ON, GOES_ON]);
    f.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_was_renewed_meanwhile_is_no_other_version() {
    let f = Fixture::postgres().await;
    let claimed = claimed(&f, 1).await;
    f.pass(LEASE_MS / 2);
    assert_eq!(f.renew(&claimed[0].task.lease_owner.clone().unwrap(), &[&claimed[0]]).await.len(), 1);
    assert_eq!(ends(&f, vec![goes_on(&claimed[0], 1)]).await, [GOES_ON]);
    let task = f.get(claimed[0].task.id).await;
    assert_eq!((task.chunks, task.lease_until), (1, Some(f.now().plus(LEASE_MS))));
    f.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_with_a_click_that_is_there_already_makes_the_others_and_it_once() {
    let f = Fixture::postgres().await;
    let there = click();
    f.submit(vec![there.clone()]).await;
    let submitted = f.submit(vec![click(), there.clone()]).await;
    assert!(submitted.iter().all(|s| matches!(s, Submitted::Created(_))), "{submitted:?}");
    assert_eq!(submitted[1].task().unwrap().id, there.id);
    assert_eq!(f.store.events(there.id, 0, 10).await.unwrap().len(), 1);
    f.check().await;
}
