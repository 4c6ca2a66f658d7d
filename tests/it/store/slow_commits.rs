//! Commits that take as long as a lease, as over a slow line: while one is under way nobody takes its tasks over, and when it
//! has ended their leases are as good as new.

use super::fixture::{Fixture, LEASE_MS};
use super::words::*;
use crate::support::eventually;
use sqlx::Executor as _;
use std::time::Duration;
use taskbell::core::effect::Effect;
use taskbell::core::lifecycle::Ended;
use taskbell::store::ChunkCommit;
use tokio::time::timeout;

/// Long beside what any of it takes.
const LIMIT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_leaves_what_somebody_is_writing_to_the_next_one() {
    let f = Fixture::postgres().await;
    f.submit((0..2).map(|_| click()).collect()).await;
    let claimed = f.claim(2).await;
    f.pass(LEASE_MS + 1);
    let mut writing = f.store.begin().await.unwrap();
    writing.load(&[claimed[0].task.id]).await.unwrap();
    let swept = timeout(LIMIT, f.sweep()).await.expect("it waits for nobody");
    assert_eq!(swept, 1, "the other one");
    drop(writing);
    eventually("the next sweep takes it", LIMIT, async || (f.sweep().await == 1).then_some(())).await;
    f.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_goes_on_counts_from_after_its_effects() {
    let f = Fixture::postgres().await;
    f.store.execute(vec![Effect { sql: "CREATE TABLE ledger (item BIGINT)", rows: vec![Vec::new()] }]).await.unwrap();
    f.new_task(click()).await;
    let claimed = f.claim_one().await;
    let mut slow = f.database().connect().await;
    slow.execute("BEGIN; LOCK TABLE ledger IN EXCLUSIVE MODE").await.unwrap();
    let effects = vec![Effect { sql: "INSERT INTO ledger (item) VALUES ($1)", rows: vec![vec![1.into()]] }];
    let end = ChunkCommit { effects, continue_for_ms: Some(LEASE_MS), ..ended(&claimed, more(1)) };
    let store = f.store.clone();
    let commit = tokio::spawn(async move { store.commit(vec![end]).await });
    let waits = "SELECT COUNT(*) FROM pg_locks WHERE relation = CAST('ledger' AS regclass) AND NOT granted";
    eventually("its effect waits", LIMIT, async || {
        let count: i64 = sqlx::query_scalar(waits).fetch_one(&mut f.database().connect().await).await.unwrap();
        (count > 0).then_some(())
    })
    .await;
    f.pass(LEASE_MS + 1);
    assert_eq!(f.sweep().await, 0, "it is being written");
    slow.execute("COMMIT").await.unwrap();
    let committed = f.heard(commit.await.unwrap().unwrap()).pop().unwrap();
    assert_eq!(committed.ended, Ended::Applied { continues: true });
    assert_eq!(committed.task.unwrap().lease_until, Some(f.now().plus(LEASE_MS)));
    assert_eq!(f.sweep().await, 0, "its lease is not over");
    f.check().await;
}
