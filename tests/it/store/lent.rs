//! Chunks in the hands of workers outside: their leases, their time, what a server that starts leaves alone, and what is noted
//! of their asking.

use super::fixture::{Fixture, GRACE_MS, LEASE_MS, claim_params, store_suite};
use super::words::{click, done, ended, more};
use serde_json::json;
use std::collections::BTreeMap;
use taskbell::core::ids::FencingToken;
use taskbell::core::lifecycle::{Ask, ChunkEnd, Ended};
use taskbell::core::task::{ErrorKind, State, WaitReason};
use taskbell::store::{ChunkCommit, ClaimParams, Claimed, RenewLent, Renewed, Retries, Seats, SweepParams};

store_suite! {
    a_lease_is_lent_to_the_seat_that_it_was_claimed_for_and_no_longer_than_the_chunk_may_take
    a_renewal_never_goes_beyond_the_time_of_the_chunk
    a_worker_that_vanishes_loses_its_lease_and_one_that_is_too_slow_loses_an_attempt
    what_comes_after_the_time_of_a_chunk_is_stale_before_any_sweep
    an_undelivered_chunk_is_free_at_once_under_another_token
    a_server_that_starts_leaves_the_leases_of_workers_alone
    a_renewal_finds_only_what_workers_hold_in_their_tenant
    stops_come_back_with_a_renewal
    the_time_of_a_chunk_ends_with_the_chunk
    what_workers_ask_for_is_noted_by_tenant_and_action
}

/// The time of a chunk in this suite, ms: longer than a lease.
const CHUNK_MS: i64 = 2 * LEASE_MS + LEASE_MS / 2;

fn lending(holders: &[&str], chunk_ms: i64) -> ClaimParams {
    let holders = holders.iter().map(ToString::to_string).collect::<Vec<_>>();
    let chunk_ms = BTreeMap::from([("import".to_owned(), chunk_ms)]);
    ClaimParams { seats: Some(Seats { holders: holders.clone(), chunk_ms }), ..claim_params("worker", holders.len()) }
}

async fn lend(f: &Fixture, holders: &[&str]) -> Vec<Claimed> {
    f.heard(f.store.claim(lending(holders, CHUNK_MS)).await.unwrap())
}

async fn lend_one(f: &Fixture) -> Claimed {
    lend(f, &["worker:w"]).await.pop().expect("a chunk can be claimed")
}

async fn renew_in(f: &Fixture, tenant: Option<&str>, claimed: &Claimed) -> Renewed {
    let held = vec![(claimed.task.id, claimed.task.fencing_token)];
    let params = RenewLent { tenant: tenant.map(str::to_owned), held, lease_ms: LEASE_MS };
    f.store.renew_lent(params).await.unwrap().pop().unwrap()
}

async fn renew(f: &Fixture, claimed: &Claimed) -> Renewed {
    renew_in(f, None, claimed).await
}

async fn a_lease_is_lent_to_the_seat_that_it_was_claimed_for_and_no_longer_than_the_chunk_may_take(f: &Fixture) {
    f.submit((0..3).map(|_| click()).collect()).await;
    let claimed = lend(f, &["worker:a", "worker:b"]).await;
    let holders: Vec<_> = claimed.iter().map(|c| c.task.lease_owner.as_deref().unwrap()).collect();
    assert_eq!(holders, ["worker:a", "worker:b"]);
    for Claimed { task, .. } in &claimed {
        assert_eq!(task.lease_until, Some(f.now().plus(LEASE_MS)));
        assert_eq!(task.chunk_until, Some(f.now().plus(CHUNK_MS)));
    }
    let short = f.heard(f.store.claim(lending(&["worker:c"], 1_000)).await.unwrap()).pop().unwrap().task;
    assert_eq!((short.lease_until, short.chunk_until), (Some(f.now().plus(1_000)), Some(f.now().plus(1_000))));
    f.end(&claimed[0], more(1)).await;
    let by_node = f.claim_one().await.task;
    assert_eq!((by_node.id, by_node.chunk_until), (claimed[0].task.id, None), "a node stops its chunks itself");
}

async fn a_renewal_never_goes_beyond_the_time_of_the_chunk(f: &Fixture) {
    let id = f.new_task(click()).await;
    let claimed = lend_one(f).await;
    let began = f.now();
    for lease_end in [2 * LEASE_MS - 1, CHUNK_MS, CHUNK_MS] {
        f.pass(LEASE_MS - 1);
        if f.now() >= began.plus(CHUNK_MS) {
            break;
        }
        assert_eq!(renew(f, &claimed).await, Renewed::Ok);
        assert_eq!(f.get(id).await.lease_until, Some(began.plus(lease_end)));
    }
    f.pass(began.plus(CHUNK_MS).since(f.now()));
    assert_eq!(renew(f, &claimed).await, Renewed::Stale);
}

async fn a_worker_that_vanishes_loses_its_lease_and_one_that_is_too_slow_loses_an_attempt(f: &Fixture) {
    let id = f.new_task(click()).await;
    lend_one(f).await;
    // The sweep comes late: what counts is when the lease ended.
    f.pass(CHUNK_MS + 1);
    assert_eq!(f.sweep().await, 1);
    let task = f.get(id).await;
    assert_eq!((task.state, task.reclaims, task.attempts), (State::Running, 1, 0));
    assert_eq!(f.reasons(id).await.last().unwrap(), "lease-lost");

    let slow = lend_one(f).await;
    for _ in 0..2 {
        f.pass(LEASE_MS - 1);
        renew(f, &slow).await;
    }
    f.pass(LEASE_MS);
    let by_action =
        [("import".to_owned(), taskbell::core::retry::RetryPolicy { base_ms: 7_000, ..Default::default() })];
    let retries = Retries { by_action: std::sync::Arc::new(by_action.into()), unit_random: 0.5 };
    let params = SweepParams { limit: 500, all: false, cancel_grace_ms: GRACE_MS, retries };
    assert_eq!(f.heard(f.store.sweep(params).await.unwrap()), 1);
    let task = f.get(id).await;
    let error = task.error.clone().unwrap();
    assert_eq!((error.kind, error.code.as_str(), error.retryable), (ErrorKind::Timeout, "timeout", true));
    assert_eq!((task.state, task.wait, task.attempts, task.reclaims), (State::Queued, Some(WaitReason::Retry), 1, 1));
    assert_eq!(task.due_at, f.now().plus(7_000), "by the action's own rule");
    assert!(task.fencing_token > slow.task.fencing_token && task.chunk_until.is_none());
    assert_eq!(f.end(&slow, done()).await.ended, Ended::Stale);
    for _ in 0..2 {
        f.pass(GRACE_MS);
        let again = f.heard(f.store.claim(lending(&["worker:w"], 1_000)).await.unwrap());
        assert_eq!(again.len(), 1);
        f.pass(1_000);
        f.sweep().await;
    }
    let task = f.get(id).await;
    assert_eq!((task.state, task.error.unwrap().kind), (State::Failed, ErrorKind::Timeout), "the attempts are used up");
}

async fn what_comes_after_the_time_of_a_chunk_is_stale_before_any_sweep(f: &Fixture) {
    let id = f.new_task(click()).await;
    let claimed = lend_one(f).await;
    assert!(f.report(&claimed, json!({"current": 3})).await);
    f.pass(CHUNK_MS);
    assert!(!f.report(&claimed, json!({"current": 4})).await);
    assert_eq!(f.end(&claimed, done()).await.ended, Ended::Stale);
    assert_eq!(renew(f, &claimed).await, Renewed::Stale);
    let task = f.get(id).await;
    assert_eq!((task.state, task.chunks, task.progress.current), (State::Running, 0, 3));
}

async fn an_undelivered_chunk_is_free_at_once_under_another_token(f: &Fixture) {
    let id = f.new_task(click()).await;
    let claimed = lend_one(f).await;
    let back = ChunkCommit { end: ChunkEnd::Undelivered, ..ended(&claimed, done()) };
    assert_eq!(f.commit(back.clone()).await.ended, Ended::Applied { continues: false });
    let task = f.get(id).await;
    assert_eq!((task.state, task.attempts, task.reclaims, task.under_way()), (State::Running, 0, 0, false));
    assert!(task.fencing_token > claimed.task.fencing_token);
    assert_eq!(f.end(&claimed, done()).await.ended, Ended::Stale, "whoever has read the answer after all");
    assert_eq!(f.commit(back).await.ended, Ended::Stale);
    let next = lend_one(f).await;
    assert_eq!((next.task.id, next.task.chunks), (id, 0));
    f.end(&next, done()).await;
    f.new_task(click()).await;
    let stopping = lend_one(f).await;
    f.must(stopping.task.id, Ask::Cancel).await;
    f.commit(ChunkCommit { end: ChunkEnd::Undelivered, ..ended(&stopping, done()) }).await;
    assert_eq!(f.state(stopping.task.id).await, State::Cancelled);
}

async fn a_server_that_starts_leaves_the_leases_of_workers_alone(f: &Fixture) {
    f.submit((0..2).map(|_| click()).collect()).await;
    let (lent, own) = (lend_one(f).await, f.claim_one().await);
    let at_start = SweepParams { limit: 500, all: true, cancel_grace_ms: GRACE_MS, retries: Retries::default() };
    assert_eq!(f.heard(f.store.sweep(at_start.clone()).await.unwrap()), 1);
    assert_eq!(f.end(&own, done()).await.ended, Ended::Stale);
    assert_eq!(f.end(&lent, done()).await.ended, Ended::Applied { continues: false });
    let lost = lend_one(f).await;
    f.pass(LEASE_MS);
    assert_eq!(f.heard(f.store.sweep(at_start).await.unwrap()), 1, "one that is over is taken like any other");
    assert_eq!(f.end(&lost, done()).await.ended, Ended::Stale);
}

async fn a_renewal_finds_only_what_workers_hold_in_their_tenant(f: &Fixture) {
    f.submit((0..2).map(|_| click()).collect()).await;
    let (lent, own) = (lend_one(f).await, f.claim_one().await);
    let tenant = lent.task.tenant.clone();
    assert_eq!(renew_in(f, Some(&tenant), &lent).await, Renewed::Ok);
    assert_eq!(renew_in(f, Some("somebody-else"), &lent).await, Renewed::Stale);
    assert_eq!(renew(f, &own).await, Renewed::Stale, "a node's lease is the node's to renew");
    assert_eq!(f.renew("worker:w", &[&lent]).await, [Renewed::Ok]);
    let older = Claimed {
        task: taskbell::core::task::Task {
            fencing_token: FencingToken(lent.task.fencing_token.0 - 1),
            ..lent.task.clone()
        },
        documents: lent.documents.clone(),
    };
    assert_eq!(renew(f, &older).await, Renewed::Stale);
}

async fn stops_come_back_with_a_renewal(f: &Fixture) {
    f.submit((0..2).map(|_| click()).collect()).await;
    let claimed = lend(f, &["worker:a", "worker:b"]).await;
    f.must(claimed[0].task.id, Ask::Pause).await;
    f.must(claimed[1].task.id, Ask::Cancel).await;
    for claimed in &claimed {
        assert_eq!(renew(f, claimed).await, Renewed::Stop);
        f.end(claimed, more(1)).await;
        assert_eq!(renew(f, claimed).await, Renewed::Stale);
    }
    assert_eq!(f.state(claimed[0].task.id).await, State::Paused);
    assert_eq!(f.state(claimed[1].task.id).await, State::Cancelled);
}

async fn the_time_of_a_chunk_ends_with_the_chunk(f: &Fixture) {
    let id = f.new_task(click()).await;
    for n in 1..=3 {
        let claimed = lend_one(f).await;
        assert_eq!(claimed.task.chunk_until, Some(f.now().plus(CHUNK_MS)), "each chunk has its own");
        f.pass(LEASE_MS / 2);
        f.end(&claimed, more(n)).await;
        assert_eq!(f.get(id).await.chunk_until, None);
    }
    assert_eq!(f.sweep().await, 0);
}

async fn what_workers_ask_for_is_noted_by_tenant_and_action(f: &Fixture) {
    let name = |tenant: &str, action: &str| (tenant.to_owned(), action.to_owned());
    let actions = ["import".to_owned(), "sync".to_owned()];
    assert!(f.store.last_asks(&actions).await.unwrap().is_empty());
    let first = f.now();
    f.store
        .note_asks(&[name("b", "import"), name("*", "sync"), name("a", "other"), name("b", "import")])
        .await
        .unwrap();
    f.pass(5_000);
    f.store.note_asks(&[name("b", "import"), name("a", "import")]).await.unwrap();
    f.store.note_asks(&[]).await.unwrap();
    let second = f.now();
    let asked = f.store.last_asks(&actions).await.unwrap();
    let expected =
        BTreeMap::from([(name("a", "import"), second), (name("b", "import"), second), (name("*", "sync"), first)]);
    assert_eq!(asked, expected);
}
