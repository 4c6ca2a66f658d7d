//! Claims, leases, fencing: who runs what, in which order, and what a writer that was taken over can still do: nothing.

use super::fixture::*;
use super::words::*;
use serde_json::json;
use std::collections::BTreeSet;
use taskbell::core::ids::{FencingToken, TaskId};
use taskbell::core::lifecycle::{Ask, Ended};
use taskbell::core::principal::Role;
use taskbell::core::submit::Submit;
use taskbell::core::task::{ErrorKind, State, limits};
use taskbell::store::{ClaimParams, Claimed, RenewParams, Renewed, SweepParams};
use tokio::task::JoinSet;

store_suite! {
    many_claimers_never_get_one_task_twice
    a_claim_raises_the_token_and_writes_owner_and_lease
    the_commit_that_ends_chunks_takes_the_next_ones
    a_stale_end_claims_all_the_same_and_changes_nothing_else
    only_what_is_due_free_and_not_stopped_is_claimed
    the_order_is_priority_then_due_then_id
    waiting_a_minute_is_worth_one_step_of_priority
    a_task_between_chunks_goes_to_the_back_of_its_priority
    a_tenant_with_5000_tasks_does_not_hold_up_one_with_a_single_task
    tenants_take_turns_from_claim_to_claim
    a_tenant_that_comes_to_a_busy_queue_has_its_turn_within_a_few_claims
    many_tasks_that_come_due_behind_one_key_hold_up_nobody
    a_task_that_no_node_can_run_starves_nobody
    a_renewal_lengthens_leases_and_brings_stop_requests_back
    every_write_of_a_stale_owner_changes_nothing_and_is_told
    an_owner_that_nobody_robbed_may_still_commit_after_its_lease
    a_node_that_lost_a_chunk_and_claimed_it_anew_is_told_so
    a_sweep_takes_expired_leases_in_every_state_and_no_others
    at_start_every_lease_is_taken
    a_swept_task_goes_on_from_its_last_commit
    a_task_that_loses_its_node_again_and_again_fails
    a_committed_chunk_forgives_lost_leases
    a_deadline_ends_a_task_in_every_state_and_not_before
    a_task_whose_time_is_over_is_not_claimed_and_gives_its_turn_on
}

/// Proves: G2.
async fn many_claimers_never_get_one_task_twice(f: &Fixture) {
    f.submit((0..200).map(|_| click()).collect()).await;
    let mut claimers = JoinSet::new();
    for n in 0..8 {
        let store = f.store.clone();
        claimers.spawn(async move {
            let mut got = Vec::new();
            loop {
                let written = store.claim(claim_params(&format!("n{n}"), 7)).await.unwrap();
                if written.answer.is_empty() {
                    return got;
                }
                got.push(written);
            }
        });
    }
    let mut claims: Vec<_> = claimers.join_all().await.into_iter().flatten().collect();
    claims.sort_by_key(|written| written.changes[0].head());
    let claimed: Vec<_> = claims.into_iter().flat_map(|written| f.heard(written)).map(|c| c.task).collect();
    let ids: BTreeSet<TaskId> = claimed.iter().map(|t| t.id).collect();
    assert_eq!((claimed.len(), ids.len()), (200, 200));
    assert!(claimed.iter().all(|t| t.fencing_token == FencingToken(1)));
    for task in claimed {
        assert_eq!(f.get(task.id).await, task, "what the claimer was told is what the row says");
    }
}

async fn a_claim_raises_the_token_and_writes_owner_and_lease(f: &Fixture) {
    let id = f.new_task(click()).await;
    for token in 1..=3 {
        let claimed = f.claim_on("n7", 1).await.pop().unwrap();
        assert_eq!(claimed.task, f.get(id).await);
        assert_eq!(claimed.task.fencing_token, FencingToken(token));
        assert_eq!(claimed.task.lease_owner.as_deref(), Some("n7"));
        assert_eq!(claimed.task.lease_until, Some(f.now().plus(LEASE_MS)));
        assert_eq!((claimed.task.state, claimed.task.wait), (State::Running, None));
        f.end(&claimed, more(token)).await;
    }
}

async fn the_commit_that_ends_chunks_takes_the_next_ones(f: &Fixture) {
    let behind = |key| Submit { priority: 1, ..under(key, 1) };
    let (holder, blocked) = (f.new_task(behind("k")).await, f.new_task(behind("k")).await);
    let waiting = [f.new_task(click()).await, f.new_task(click()).await];
    let claimed = f.claim_task(holder).await;
    let ends = vec![ended(&claimed, done())];
    let (committed, next) = f.heard(f.store.commit_and_claim(ends.clone(), Some(claim_params("n7", 5))).await.unwrap());
    assert_eq!(committed[0].ended, Ended::Applied { continues: false });
    assert_eq!(committed[0].task.as_ref(), Some(&f.get(holder).await));
    assert_eq!(
        next.iter().map(|c| c.task.id).collect::<Vec<_>>(),
        waiting,
        "the slot was given on after they were taken"
    );
    for Claimed { task, documents } in &next {
        assert_eq!((task, task.lease_owner.as_deref()), (&f.get(task.id).await, Some("n7")));
        assert_eq!((task.fencing_token, &documents.params), (FencingToken(1), &json!({})));
        assert_eq!(task.head, f.get(holder).await.head, "one commit");
    }
    let (again, next) = f.heard(f.store.commit_and_claim(ends, Some(claim_params("n7", 5))).await.unwrap());
    assert_eq!(again[0].ended, Ended::Repeated);
    assert_eq!(next.iter().map(|c| c.task.id).collect::<Vec<_>>(), [blocked]);
}

/// Proves: G2.
async fn a_stale_end_claims_all_the_same_and_changes_nothing_else(f: &Fixture) {
    let id = f.new_task(click()).await;
    let robbed = f.claim_one().await;
    f.lose_leases().await;
    let ends = vec![ended(&robbed, done())];
    let before = f.claim_task(id).await.task;
    let next = f.new_task(click()).await;
    let (committed, claimed) = f.heard(f.store.commit_and_claim(ends, Some(claim_params("n1", 1))).await.unwrap());
    assert_eq!((committed[0].ended, claimed[0].task.id), (Ended::Stale, next));
    assert_eq!(f.get(id).await, before);
}

async fn only_what_is_due_free_and_not_stopped_is_claimed(f: &Fixture) {
    let leased = f.new_task(click()).await;
    f.claim_one().await;
    let paused = f.new_task(click()).await;
    f.must(paused, Ask::Pause).await;
    let cancelled = f.new_task(click()).await;
    f.must(cancelled, Ask::Cancel).await;
    f.new_task(Submit { run_at: Some(f.now().plus(1)), ..click() }).await;
    f.new_task(Submit { action: "unknown".into(), ..click() }).await;
    f.new_task(under("k", 1)).await;
    let holder = f.claim_one().await;
    let blocked = f.new_task(under("k", 1)).await;
    assert_eq!(f.state(blocked).await, State::Blocked);
    assert!(f.claim(10).await.is_empty());
    assert_eq!(f.state(leased).await, State::Running);
    assert_eq!(f.get(blocked).await.fencing_token, FencingToken(0), "waiting for a slot costs no token");
    let other_tenant = ClaimParams { tenants: vec!["globex".into()], ..claim_params("n1", 10) };
    f.end(&holder, done()).await;
    assert!(f.heard(f.store.claim(other_tenant).await.unwrap()).is_empty());
    assert_eq!(f.claim_one().await.task.id, blocked);
    assert!(f.claim(0).await.is_empty());
}

async fn claimed_in_order(f: &Fixture) -> Vec<TaskId> {
    f.claim(100).await.iter().map(|c| c.task.id).collect()
}

async fn the_order_is_priority_then_due_then_id(f: &Fixture) {
    let at = |priority, ms| Submit { priority, run_at: Some(f.now().plus(ms)), ..click() };
    let mut ids = Vec::new();
    for click in [at(-100, 20), at(0, 30), at(0, 10), at(0, 10), at(1, 40), at(100, 50)] {
        ids.push(f.new_task(click).await);
    }
    f.pass(50);
    assert_eq!(claimed_in_order(f).await, [ids[5], ids[4], ids[2], ids[3], ids[1], ids[0]]);
}

async fn waiting_a_minute_is_worth_one_step_of_priority(f: &Fixture) {
    let patient = f.new_task(click()).await;
    f.pass(4 * 60_000);
    let sooner = f.new_task(Submit { priority: 5, ..click() }).await;
    f.pass(60_001);
    let later = f.new_task(Submit { priority: 5, ..click() }).await;
    assert_eq!(claimed_in_order(f).await, [sooner, patient, later]);
    // Nothing starves: from the lowest to the highest it is 200 minutes.
    let lowest = f.new_task(Submit { priority: -100, ..click() }).await;
    f.pass(200 * 60_000 + 1);
    let highest = f.new_task(Submit { priority: 100, ..click() }).await;
    assert_eq!(claimed_in_order(f).await, [lowest, highest]);
}

async fn a_task_between_chunks_goes_to_the_back_of_its_priority(f: &Fixture) {
    let chunky = f.new_task(click()).await;
    let claimed = f.claim_one().await;
    let urgent = f.new_task(Submit { priority: 1, ..click() }).await;
    let waiting = f.new_task(click()).await;
    f.pass(10);
    f.end(&claimed, more(1)).await;
    assert_eq!(claimed_in_order(f).await, [urgent, waiting, chunky]);
}

/// Row: G3; with 100,000 tasks in the long form.
async fn a_tenant_with_5000_tasks_does_not_hold_up_one_with_a_single_task(f: &Fixture) {
    let long = std::env::var("TASKBELL_TEST_LONG").is_ok_and(|v| v == "1");
    for batch in 0..if long { 200 } else { 10 } {
        let items = (0..500).map(|n| under(&format!("key {batch} {n}"), 1)).collect();
        f.submit(items).await;
    }
    f.pass(60_000);
    let single = f.new_task(by(&principal("globex", "gina", Role::User))).await;
    let first: Vec<TaskId> = f.claim(2).await.iter().map(|c| c.task.id).collect();
    assert!(first.contains(&single));
}

/// Row: G3.
async fn tenants_take_turns_from_claim_to_claim(f: &Fixture) {
    for tenant in ["a", "b", "c"] {
        let who = principal(tenant, "u", Role::User);
        f.submit((0..4).map(|_| by(&who)).collect()).await;
    }
    let (mut after_tenant, mut served) = (None, Vec::new());
    for _ in 0..6 {
        let params = ClaimParams { after_tenant, ..claim_params("n1", 1) };
        let claimed = f.heard(f.store.claim(params).await.unwrap()).pop().unwrap();
        served.push(claimed.task.tenant.clone());
        after_tenant = Some(claimed.task.tenant);
    }
    assert_eq!(served, ["a", "b", "c", "a", "b", "c"]);
    let mut together: Vec<String> = f.claim(6).await.into_iter().map(|c| c.task.tenant).collect();
    together.sort();
    assert_eq!(together, ["a", "a", "b", "b", "c", "c"]);
}

async fn a_tenant_that_comes_to_a_busy_queue_has_its_turn_within_a_few_claims(f: &Fixture) {
    f.submit((0..20).map(|_| click()).collect()).await;
    let busy = ClaimParams { many_wait: true, ..claim_params("n1", 1) };
    f.heard(f.store.claim(busy.clone()).await.unwrap());
    let other = f.new_task(by(&principal("globex", "gina", Role::User))).await;
    let mut claims = 0;
    let mut last = Some("acme".to_owned());
    loop {
        let params = ClaimParams { after_tenant: last, ..busy.clone() };
        let claimed = f.heard(f.store.claim(params).await.unwrap()).pop().unwrap();
        claims += 1;
        if claimed.task.id == other {
            break;
        }
        last = Some(claimed.task.tenant);
    }
    assert!(claims <= 10, "it waited for {claims} claims");

    let late = f.new_task(by(&principal("initech", "ina", Role::User))).await;
    let all = ClaimParams { limit: 100, ..busy };
    let claimed = f.heard(f.store.claim(all).await.unwrap());
    assert!(claimed.iter().any(|c| c.task.id == late), "who has places left asks again");
}

/// Row: G3.
async fn many_tasks_that_come_due_behind_one_key_hold_up_nobody(f: &Fixture) {
    f.new_task(under("site", 1)).await;
    f.claim_one().await;
    let later = Some(f.now().plus(1_000));
    f.submit((0..300).map(|_| Submit { run_at: later, priority: 50, ..under("site", 1) }).collect()).await;
    f.pass(1_000);
    let free = f.new_task(click()).await;
    assert_eq!(claimed_in_order(f).await, [free], "it stands behind 300 tasks that wait for a key");
    assert!(f.claim(8).await.is_empty());
}

async fn a_task_that_no_node_can_run_starves_nobody(f: &Fixture) {
    let foreign = |n: i32| Submit { action: "elsewhere".into(), priority: n % 100, ..click() };
    f.submit((0..400).map(foreign).collect()).await;
    let own = f.new_task(Submit { priority: -50, ..click() }).await;
    assert_eq!(claimed_in_order(f).await, [own]);
    let none = ClaimParams { actions: Vec::new(), ..claim_params("n1", 10) };
    assert!(f.heard(f.store.claim(none).await.unwrap()).is_empty());
}

async fn a_renewal_lengthens_leases_and_brings_stop_requests_back(f: &Fixture) {
    f.submit((0..5).map(|_| click()).collect()).await;
    let claimed = f.claim(5).await;
    let [goes_on, cancelled, paused, ended, lost] = claimed.iter().collect::<Vec<_>>()[..] else { panic!() };
    f.must(cancelled.task.id, Ask::Cancel).await;
    f.must(paused.task.id, Ask::Pause).await;
    f.end(ended, done()).await;
    f.must(lost.task.id, Ask::ForceCancel).await;
    f.pass(10_000);
    let answers = f.renew("n1", &[lost, goes_on, ended, cancelled, paused]).await;
    assert_eq!(answers, [Renewed::Stale, Renewed::Ok, Renewed::Stale, Renewed::Stop, Renewed::Stop]);
    assert_eq!(f.get(goes_on.task.id).await.lease_until, Some(f.now().plus(LEASE_MS)));
    assert_eq!(f.renew("n2", &[goes_on]).await, [Renewed::Stale], "another node holds nothing here");
    assert!(f.renew("n1", &[]).await.is_empty());
    f.pass(LEASE_MS);
    f.renew("n1", &[goes_on]).await;
    assert_eq!(f.sweep().await, 2, "a renewed lease is not swept");
    assert_eq!(f.renew("n1", &[goes_on]).await, [Renewed::Ok]);
}

/// Proves: G2.
async fn every_write_of_a_stale_owner_changes_nothing_and_is_told(f: &Fixture) {
    let id = f.new_task(click()).await;
    let old = f.claim_one().await;
    f.end(&old, more(1)).await;
    let old = f.claim_one().await;
    f.lose_leases().await;
    let now_running = f.claim_on("n2", 1).await.pop().unwrap();
    for robbed_by in ["another claim", "its end", "its resume"] {
        let (row, head) = (f.get(id).await, f.store.head("acme", "bob").await.unwrap());
        assert!(!f.report(&old, json!({"current": 999, "message": "false"})).await, "{robbed_by}");
        for outcome in [more(99), more_after(5), done(), throws(), gives_up()] {
            assert_eq!(f.end(&old, outcome).await.ended, Ended::Stale, "{robbed_by}");
        }
        assert_eq!(f.commit(handed_back(&old)).await.ended, Ended::Stale);
        assert_eq!(f.renew("n1", &[&old]).await, [Renewed::Stale]);
        assert_eq!(f.get(id).await, row, "after {robbed_by}");
        assert_eq!(f.store.head("acme", "bob").await.unwrap(), head);
        assert_eq!(f.store.documents(id).await.unwrap().checkpoint, Some(json!({"n": 1})));
        match robbed_by {
            "another claim" => drop(f.end(&now_running, gives_up()).await),
            "its end" => drop(f.must(id, Ask::Resume).await),
            _ => {}
        }
    }
}

async fn an_owner_that_nobody_robbed_may_still_commit_after_its_lease(f: &Fixture) {
    let id = f.new_task(click()).await;
    let claimed = f.claim_one().await;
    f.pass(LEASE_MS * 10);
    assert!(f.report(&claimed, json!({"current": 3})).await);
    assert_eq!(f.end(&claimed, done()).await.ended, Ended::Applied { continues: false });
    assert_eq!((f.state(id).await, f.sweep().await), (State::Succeeded, 0));
}

async fn a_node_that_lost_a_chunk_and_claimed_it_anew_is_told_so(f: &Fixture) {
    f.new_task(click()).await;
    let lost = f.claim_one().await;
    f.lose_leases().await;
    let anew = f.claim_one().await;
    let until = f.get(anew.task.id).await.lease_until;
    f.pass(1_000);
    assert_eq!(f.renew("n1", &[&lost]).await, [Renewed::Stale]);
    assert_eq!(
        f.get(anew.task.id).await.lease_until,
        until,
        "an old token lengthens no lease, not even its own node's"
    );
    assert_eq!(f.renew("n1", &[&lost, &anew, &lost]).await, [Renewed::Stale, Renewed::Ok, Renewed::Stale]);
}

/// Proves: G4.
async fn a_sweep_takes_expired_leases_in_every_state_and_no_others(f: &Fixture) {
    f.submit((0..4).map(|_| click()).collect()).await;
    let claimed = f.claim(4).await;
    let id = |n: usize| claimed[n].task.id;
    f.must(id(1), Ask::Pause).await;
    f.must(id(2), Ask::Cancel).await;
    f.pass(LEASE_MS - 1);
    f.renew("n1", &[&claimed[3]]).await;
    assert_eq!(f.sweep().await, 0, "no lease has ended yet");
    f.pass(1);
    assert_eq!(f.sweep().await, 3);
    let states = [f.state(id(0)).await, f.state(id(1)).await, f.state(id(2)).await, f.state(id(3)).await];
    assert_eq!(states, [State::Running, State::Paused, State::Cancelled, State::Running]);
    for n in [0, 1, 2] {
        let task = f.get(id(n)).await;
        assert_eq!((task.reclaims, task.takeovers), (1, 1));
        assert!(task.fencing_token > claimed[n].task.fencing_token, "whoever takes a lease raises the token");
        assert_eq!(f.reasons(id(n)).await.last().unwrap(), "lease-lost");
    }
    assert!(f.get(id(0)).await.claimable() && f.get(id(3)).await.under_way());
    assert_eq!(f.sweep().await, 0);
    let limited = SweepParams { limit: 2, all: true, cancel_grace_ms: GRACE_MS, retries: Default::default() };
    f.claim(1).await;
    f.submit((0..3).map(|_| click()).collect()).await;
    f.claim(3).await;
    assert_eq!(f.heard(f.store.sweep(limited).await.unwrap()), 2);
}

/// Proves: G4.
async fn at_start_every_lease_is_taken(f: &Fixture) {
    f.submit((0..3).map(|_| click()).collect()).await;
    let claimed = f.claim(3).await;
    let at_start = SweepParams { limit: 500, all: true, cancel_grace_ms: GRACE_MS, retries: Default::default() };
    assert_eq!(f.heard(f.store.sweep(at_start).await.unwrap()), 3);
    assert_eq!(f.claim(3).await.len(), 3);
    assert_eq!(f.renew("n1", &claimed.iter().collect::<Vec<_>>()).await, [Renewed::Stale; 3]);
}

/// Proves: G1.
async fn a_swept_task_goes_on_from_its_last_commit(f: &Fixture) {
    f.new_task(click()).await;
    let first = f.claim_one().await;
    f.end(&first, more(40)).await;
    let second = f.claim_one().await;
    f.report(&second, json!({"current": 47})).await;
    f.lose_leases().await;
    let third = f.claim_on("n2", 1).await.pop().unwrap();
    assert_eq!(third.documents.checkpoint, Some(json!({"n": 40})));
    assert_eq!((third.task.chunks, third.task.attempts, third.task.reclaims), (1, 0, 1));
    assert_eq!(third.task.progress.current, 47, "what was shown is not taken back");
}

/// Row: H3.
/// Proves: G4.
async fn a_task_that_loses_its_node_again_and_again_fails(f: &Fixture) {
    let id = f.new_task(click()).await;
    for lost in 1..=limits::RECLAIMS {
        f.claim_one().await;
        f.lose_leases().await;
        assert_eq!(f.get(id).await.reclaims, lost);
        assert_eq!(f.state(id).await, State::Running);
    }
    let healthy = f.new_task(click()).await;
    f.claim_task(id).await;
    f.lose_leases().await;
    let task = f.get(id).await;
    let error = task.error.unwrap();
    assert_eq!((task.state, error.kind, error.code.as_str()), (State::Failed, ErrorKind::LeaseLost, "lease-lost"));
    assert!(error.message.contains("11"), "{}", error.message);
    assert_eq!((task.attempts, task.takeovers), (0, 11));
    f.end(&f.claim_task(healthy).await, done()).await;
    // A person may try it again, with all budgets new; and cancel it in the middle of its crashes.
    f.must(id, Ask::Resume).await;
    assert_eq!((f.get(id).await.reclaims, f.get(id).await.takeovers), (0, 11));
    f.claim_one().await;
    f.must(id, Ask::Cancel).await;
    f.lose_leases().await;
    assert_eq!(f.state(id).await, State::Cancelled);
}

async fn a_committed_chunk_forgives_lost_leases(f: &Fixture) {
    let id = f.new_task(click()).await;
    for n in 1..=25 {
        f.claim_one().await;
        f.lose_leases().await;
        f.end(&f.claim_one().await, more(n)).await;
    }
    let task = f.get(id).await;
    assert_eq!((task.state, task.reclaims, task.takeovers, task.chunks), (State::Running, 0, 25, 25));
}

async fn a_deadline_ends_a_task_in_every_state_and_not_before(f: &Fixture) {
    let timed = || Submit { timeout_ms: Some(100_000), ..click() };
    f.submit((0..4).map(|_| timed()).collect()).await;
    f.pass(3_600_000);
    assert_eq!(f.sweep().await, 0, "the time runs from the first claim");
    let claimed = f.claim(4).await;
    assert_eq!(claimed[0].task.deadline, Some(f.now().plus(100_000)));
    let refs: Vec<_> = claimed.iter().collect();
    f.end(refs[1], more_after(86_400_000)).await;
    f.must(refs[2].task.id, Ask::Pause).await;
    f.end(refs[2], more(1)).await;
    f.pass(99_999);
    f.renew("n1", &[refs[0], refs[3]]).await;
    f.must(refs[3].task.id, Ask::Cancel).await;
    assert_eq!(f.sweep().await, 0);
    f.pass(1);
    assert_eq!(f.sweep().await, 4);
    for claimed in &refs[..3] {
        let task = f.get(claimed.task.id).await;
        assert_eq!((task.state, task.error.unwrap().kind), (State::Failed, ErrorKind::Deadline));
    }
    assert_eq!(f.state(refs[3].task.id).await, State::Cancelled);
    assert_eq!(f.end(refs[0], done()).await.ended, Ended::Stale);
    assert_eq!(f.must(refs[0].task.id, Ask::Resume).await.deadline, None, "a resume gives it its time again");
}

async fn a_task_whose_time_is_over_is_not_claimed_and_gives_its_turn_on(f: &Fixture) {
    let timed = f.new_task(Submit { timeout_ms: Some(1_000), priority: 9, ..click() }).await;
    f.end(&f.claim_one().await, more_after(2_000)).await;
    let next = f.new_task(click()).await;
    f.pass(2_000);
    let claimed = f.claim(1).await;
    assert_eq!(claimed.iter().map(|c| c.task.id).collect::<Vec<_>>(), [next]);
    assert_eq!(f.state(timed).await, State::Failed);
    let params =
        RenewParams { node: "n1".into(), held: vec![(TaskId::new(), FencingToken(1))], lease_ms: 1, waits: false };
    assert_eq!(f.store.renew(params).await.unwrap(), [Renewed::Stale], "a task that never was");
}
