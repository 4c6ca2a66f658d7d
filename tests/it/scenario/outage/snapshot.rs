//! Somebody who holds a snapshot for minutes, such as a backup or a report: what is updated leaves its old versions behind,
//! and a claim has to find its way past them.

use super::*;
use crate::store::fixture::claim_params;
use crate::store::invariants::assert_invariants;
use crate::store::words::{click, done, ended, more};
use taskbell::store::Store;
use tokio::task::JoinSet;

/// Writers at once.
const WRITERS: usize = 4;
/// Clicks of one commit.
const BATCH: usize = 10;

/// Clicks, claims and ends for so long; how long the claims took, in order.
async fn claims_in(store: &Arc<dyn Store>, time: Duration) -> Vec<Duration> {
    let mut writers = JoinSet::new();
    for n in 0..WRITERS {
        let (store, until) = (store.clone(), Instant::now() + time);
        writers.spawn(async move {
            let (node, mut took) = (format!("n{n}"), Vec::new());
            while Instant::now() < until {
                store.submit((0..BATCH).map(|_| click()).collect()).await.unwrap();
                // Each is claimed twice, so that its row is updated as in service.
                for end in [|| more(1), done] {
                    let from = Instant::now();
                    let claimed = store.claim(claim_params(&node, BATCH)).await.unwrap().answer;
                    took.push(from.elapsed());
                    let ends = claimed.iter().map(|c| ended(c, end())).collect();
                    store.commit(ends).await.unwrap();
                }
            }
            took
        });
    }
    let mut took: Vec<Duration> = writers.join_all().await.into_iter().flatten().collect();
    took.sort();
    took
}

fn p50(took: &[Duration]) -> Duration {
    took[took.len() / 2]
}

fn p99(took: &[Duration]) -> Duration {
    took[took.len() * 99 / 100]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_stay_quick_while_somebody_holds_a_snapshot() {
    let ground = Ground::postgres().await;
    let store = ground.open().await;
    let (base_s, held_s) = if long() { (30, 300) } else { (3, 8) };
    let base = claims_in(&store, Duration::from_secs(base_s)).await;
    let mut reader = ground.database().unwrap().connect().await;
    let hold = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT COUNT(*) FROM taskbell_tasks";
    sqlx::raw_sql(hold).execute(&mut reader).await.unwrap();
    claims_in(&store, Duration::from_secs(held_s - base_s)).await;
    // The end, when most is in the way.
    let held = claims_in(&store, Duration::from_secs(base_s)).await;
    sqlx::raw_sql("ROLLBACK").execute(&mut reader).await.unwrap();
    eprintln!(
        "claim p99 {:?} of {}, at the end of {held_s} s {:?} of {}",
        p99(&base),
        base.len(),
        p99(&held),
        held.len()
    );
    // On a machine that does other things too a single claim may take any time: of a few the one in the middle is looked at.
    let part = if long() { p99 } else { p50 };
    assert!(part(&held) < part(&base) * 3 + Duration::from_millis(300), "{:?} became {:?}", part(&base), part(&held));
    if !long() {
        assert_invariants(store.as_ref()).await;
    }
}
