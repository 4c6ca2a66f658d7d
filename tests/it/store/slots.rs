//! Concurrency keys: never more holders than the limit, no slot lost, waiters in order, and none of it costs a claim.

use super::fixture::*;
use super::invariants::all_tasks;
use super::words::*;
use taskbell::core::action::{OnConflict, Policy};
use taskbell::core::chunk::Outcome;
use taskbell::core::ids::{FencingToken, TaskId};
use taskbell::core::lifecycle::{Ask, Ended};
use taskbell::core::principal::{Principal, Role};
use taskbell::core::submit::{KeyClaim, SlotClaim, Submit, SubmitRefusal, Submitted};
use taskbell::core::task::{State, WaitReason};
use taskbell::store::ChunkCommit;

store_suite! {
    never_more_hold_a_key_than_its_limit
    every_way_to_end_frees_the_slot_in_the_same_commit
    a_slot_held_for_the_task_stays_through_gaps_retries_lost_leases_and_pauses
    a_slot_held_for_the_chunk_is_given_back_whenever_no_chunk_runs
    a_task_that_holds_per_chunk_does_not_keep_its_place_while_somebody_waits
    waiters_start_by_priority_then_first_come_and_cost_nothing
    a_newcomer_does_not_pass_by_those_that_wait
    a_hundred_slots_that_free_at_once_start_a_hundred_waiters
    lost_leases_never_block_a_key_for_good
    above_the_most_that_may_wait_a_click_is_refused
    skip_answers_with_a_holder_that_the_caller_may_see
    reject_refuses_and_names_the_holder_only_to_those_who_may_see_it
    replace_pending_takes_the_place_of_those_that_have_not_started
    cancel_running_asks_the_holder_to_stop_and_keeps_one_waiter
    a_task_for_later_asks_for_its_slot_when_it_is_due
    a_resumed_task_waits_when_its_key_is_full
    keys_of_tenants_are_apart_and_actions_share_them
    who_frees_a_slot_is_not_told_to_the_one_who_gets_it
}

async fn states(f: &Fixture, ids: &[TaskId]) -> Vec<State> {
    let mut states = Vec::new();
    for id in ids {
        states.push(f.state(*id).await);
    }
    states
}

async fn new_tasks(f: &Fixture, items: Vec<Submit>) -> Vec<TaskId> {
    f.submit(items).await.iter().map(|s| s.task().unwrap().id).collect()
}

/// Proves: G11.
async fn never_more_hold_a_key_than_its_limit(f: &Fixture) {
    new_tasks(f, (0..10).map(|_| under("k", 3)).collect()).await;
    let mut done_count = 0;
    while done_count < 10 {
        let running = f.claim(10).await;
        assert!(running.len() <= 3);
        let held = all_tasks(f.store.as_ref()).await.iter().filter(|t| t.slot_held).count();
        assert_eq!(held, 3.min(10 - done_count), "no slot lies idle");
        f.end(&running[0], done()).await;
        for other in &running[1..] {
            f.end(other, more_after(0)).await;
        }
        done_count += 1;
    }
}

/// Proves: G11.
async fn every_way_to_end_frees_the_slot_in_the_same_commit(f: &Fixture) {
    for (n, way) in ["done", "failed", "cancelled", "cancel answered", "forced", "grace over", "deadline", "leases"]
        .iter()
        .enumerate()
    {
        let key = format!("k{n}");
        let holder = f.new_task(Submit { timeout_ms: Some(10_000_000), ..under(&key, 1) }).await;
        let waiter = f.new_task(under(&key, 1)).await;
        assert_eq!(f.get(waiter).await.blocked_by, Some(holder));
        let claimed = f.claim_one().await;
        match *way {
            "done" => drop(f.end(&claimed, done()).await),
            "failed" => drop(f.end(&claimed, gives_up()).await),
            "cancelled" => {
                f.end(&claimed, more_after(1_000)).await;
                f.must(holder, Ask::Cancel).await;
            }
            "cancel answered" => {
                f.must(holder, Ask::Cancel).await;
                f.end(&claimed, more(1)).await;
            }
            "forced" => drop(f.must(holder, Ask::ForceCancel).await),
            "grace over" => {
                f.must(holder, Ask::Cancel).await;
                f.pass(GRACE_MS);
                f.renew("n1", &[&claimed]).await;
                f.sweep().await;
            }
            "deadline" => {
                f.pass(10_000_000);
                f.sweep().await;
            }
            _ => {
                for _ in 0..10 {
                    f.lose_leases().await;
                    f.claim_one().await;
                }
                f.lose_leases().await;
            }
        }
        let next = f.get(waiter).await;
        assert_eq!((next.state, next.slot_held), (State::Queued, true), "{way}");
        assert_eq!(next.blocked_by, None);
        assert!(f.get(holder).await.state.is_final());
        f.end(&f.claim_one().await, done()).await;
    }
}

async fn a_slot_held_for_the_task_stays_through_gaps_retries_lost_leases_and_pauses(f: &Fixture) {
    let holder = f.new_task(under("k", 1)).await;
    let waiter = f.new_task(under("k", 1)).await;
    f.end(&f.claim_one().await, more_after(1_000)).await;
    assert!(f.get(holder).await.slot_held, "in a gap");
    f.pass(1_000);
    f.end(&f.claim_one().await, throws()).await;
    assert!(f.get(holder).await.slot_held, "before a retry");
    f.pass(60_000);
    f.claim_one().await;
    f.lose_leases().await;
    assert!(f.get(holder).await.slot_held, "after a lost lease");
    f.commit(handed_back(&f.claim_one().await)).await;
    assert!(f.get(holder).await.slot_held, "after a drain");
    f.must(holder, Ask::Pause).await;
    assert!(f.get(holder).await.slot_held, "a half-done work must not be crossed");
    assert_eq!(f.state(waiter).await, State::Blocked);
    f.must(holder, Ask::Resume).await;
    f.end(&f.claim_one().await, done()).await;
    // What has not started is not half done.
    f.must(waiter, Ask::Pause).await;
    assert!(!f.get(waiter).await.slot_held);
}

async fn a_slot_held_for_the_chunk_is_given_back_whenever_no_chunk_runs(f: &Fixture) {
    let ends: [fn() -> Outcome; 3] = [|| more(1), || more_after(10), throws];
    for (n, outcome) in ends.into_iter().enumerate() {
        let key = format!("k{n}");
        let first = f.new_task(Submit { slot: chunk_slot(&key, 1), ..click() }).await;
        let second = f.new_task(Submit { slot: chunk_slot(&key, 1), ..click() }).await;
        assert_eq!(f.state(second).await, State::Blocked);
        f.end(&f.claim_task(first).await, outcome()).await;
        assert!(!f.get(first).await.slot_held && f.get(second).await.slot_held);
        let running = f.claim_task(second).await;
        // The first is due again, finds the key full and waits without a token or an attempt.
        f.pass(60_000);
        let token = f.get(first).await.fencing_token;
        assert!(f.claim(5).await.is_empty());
        let waiting = f.get(first).await;
        assert!(waiting.gated && waiting.fencing_token == token && waiting.blocked_by == Some(second));
        assert_eq!(waiting.wait, Some(WaitReason::Concurrency));
        f.renew("n1", &[&running]).await;
        f.end(&running, done()).await;
        f.end(&f.claim_task(first).await, done()).await;
    }
    let paused = f.new_task(Submit { slot: chunk_slot("p", 1), ..click() }).await;
    f.end(&f.claim_one().await, more_after(10)).await;
    f.must(paused, Ask::Pause).await;
    assert!(!f.get(paused).await.slot_held, "a pause gives it back");
    let lost = f.new_task(Submit { slot: chunk_slot("l", 1), ..click() }).await;
    f.claim_one().await;
    f.lose_leases().await;
    assert!(!f.get(lost).await.slot_held, "and so does a lost lease");
}

async fn a_task_that_holds_per_chunk_does_not_keep_its_place_while_somebody_waits(f: &Fixture) {
    f.new_task(Submit { slot: chunk_slot("k", 1), ..click() }).await;
    let claimed = f.claim_one().await;
    let item = ChunkCommit { continue_for_ms: Some(LEASE_MS), ..ended(&claimed, more(1)) };
    assert_eq!(f.commit(item).await.ended, Ended::Applied { continues: true });
    let waiter = f.new_task(Submit { slot: chunk_slot("k", 1), ..click() }).await;
    let item = ChunkCommit { chunk: 2, continue_for_ms: Some(LEASE_MS), ..ended(&claimed, more(2)) };
    assert_eq!(f.commit(item).await.ended, Ended::Applied { continues: false });
    assert_eq!(f.claim_one().await.task.id, waiter);
}

async fn waiters_start_by_priority_then_first_come_and_cost_nothing(f: &Fixture) {
    f.new_task(under("k", 1)).await;
    let mut running = f.claim_one().await;
    let mut waiters = Vec::new();
    for priority in [0, 5, 0, 5, -1] {
        waiters.push(f.new_task(Submit { priority, ..under("k", 1) }).await);
        f.pass(1);
    }
    let places = f.store.positions(&waiters).await.unwrap();
    assert_eq!(waiters.iter().map(|id| places[id]).collect::<Vec<_>>(), [3, 1, 4, 2, 5]);
    for id in [1, 3, 0, 2, 4].map(|n| waiters[n]) {
        assert!(f.claim(10).await.is_empty());
        f.renew("n1", &[&running]).await;
        f.end(&running, done()).await;
        running = f.claim_one().await;
        assert_eq!((running.task.id, running.task.fencing_token, running.task.attempts), (id, FencingToken(1), 0));
    }
}

async fn a_newcomer_does_not_pass_by_those_that_wait(f: &Fixture) {
    let replaced = |name: &str| vec![KeyClaim { on_conflict: OnConflict::ReplacePending, ..key(name) }];
    let holder = f.new_task(Submit { keys: replaced("a"), ..under("k", 1) }).await;
    let first = f.new_task(under("k", 1)).await;
    // The click replaces the holder, which has not started, and so frees the slot for which `first` waits.
    let newcomer = f.new_task(Submit { keys: replaced("a"), ..under("k", 1) }).await;
    assert_eq!(states(f, &[holder, first, newcomer]).await, [State::Cancelled, State::Queued, State::Blocked]);
    assert_eq!(f.claim_one().await.task.id, first);
}

async fn a_hundred_slots_that_free_at_once_start_a_hundred_waiters(f: &Fixture) {
    let ids = new_tasks(f, (0..300).map(|_| under("k", 100)).collect()).await;
    let running = f.claim(300).await;
    assert_eq!(running.len(), 100);
    let ends: Vec<ChunkCommit> = running.iter().map(|c| ended(c, done())).collect();
    f.heard(f.store.commit(ends).await.unwrap());
    let queued: Vec<State> = states(f, &ids[100..]).await;
    assert_eq!(queued.iter().filter(|s| **s == State::Queued).count(), 100);
    assert_eq!(f.claim(300).await.len(), 100);
}

/// Row: D1, D4.
/// Proves: G11.
async fn lost_leases_never_block_a_key_for_good(f: &Fixture) {
    for slot in [chunk_slot("chunk", 3), under("task", 3).slot] {
        new_tasks(f, (0..6).map(|_| Submit { slot: slot.clone(), ..click() }).collect()).await;
        for _ in 0..10 {
            assert_eq!(f.claim(10).await.len(), 3, "three run at once");
            f.lose_leases().await;
        }
        let mut ended_count = 0;
        while ended_count < 6 {
            let running = f.claim(10).await;
            assert!((1..=3).contains(&running.len()));
            for claimed in &running {
                f.end(claimed, done()).await;
                ended_count += 1;
            }
        }
    }
}

async fn above_the_most_that_may_wait_a_click_is_refused(f: &Fixture) {
    let click = || {
        let slot = under("k", 1).slot.map(|slot| SlotClaim { max_waiting: 2, ..slot });
        Submit { slot, ..click() }
    };
    new_tasks(f, vec![click(), click(), click()]).await;
    assert_eq!(f.click(click()).await, Submitted::Refused(SubmitRefusal::KeyQueueFull { limit: 2 }));
    f.end(&f.claim_one().await, done()).await;
    f.new_task(click()).await;
}

async fn skip_answers_with_a_holder_that_the_caller_may_see(f: &Fixture) {
    let skip = |who: &Principal| Submit { slot: slot("k", 1, Policy::Skip), ..by(who) };
    let holder = f.new_task(skip(&bob())).await;
    let Submitted::Skipped(task) = f.click(skip(&bob())).await else { panic!("not skipped") };
    assert_eq!((task.id, task.suppressed), (holder, 1));
    assert!(matches!(f.click(skip(&operator())).await, Submitted::Skipped(t) if t.id == holder));
    let unseen = Submitted::Refused(SubmitRefusal::ConcurrencyConflict { task: None });
    assert_eq!(f.click(skip(&alice())).await, unseen);
    assert_eq!(f.get(holder).await.suppressed, 2);
    f.end(&f.claim_one().await, done()).await;
    f.new_task(skip(&alice())).await;
}

async fn reject_refuses_and_names_the_holder_only_to_those_who_may_see_it(f: &Fixture) {
    let reject = |who: &Principal| Submit { slot: slot("k", 1, Policy::Reject), ..by(who) };
    let holder = f.new_task(reject(&bob())).await;
    for (who, task) in [(bob(), Some(holder)), (operator(), Some(holder)), (alice(), None)] {
        let refused = Submitted::Refused(SubmitRefusal::ConcurrencyConflict { task });
        assert_eq!(f.click(reject(&who)).await, refused);
    }
    assert_eq!(f.get(holder).await.suppressed, 0);
    assert_eq!(all_tasks(f.store.as_ref()).await.len(), 1);
}

async fn replace_pending_takes_the_place_of_those_that_have_not_started(f: &Fixture) {
    let newest = || Submit { slot: slot("k", 1, Policy::ReplacePending), ..click() };
    let first = f.new_task(newest()).await;
    let second = f.new_task(newest()).await;
    assert_eq!(states(f, &[first, second]).await, [State::Cancelled, State::Queued], "a queued holder has not started");
    let running = f.claim_one().await;
    let third = f.new_task(newest()).await;
    let fourth = f.new_task(newest()).await;
    assert_eq!(states(f, &[second, third, fourth]).await, [State::Running, State::Cancelled, State::Blocked]);
    f.end(&running, done()).await;
    assert_eq!(f.claim_one().await.task.id, fourth);
}

async fn cancel_running_asks_the_holder_to_stop_and_keeps_one_waiter(f: &Fixture) {
    let newest = || Submit { slot: slot("k", 1, Policy::CancelRunning), ..click() };
    let first = f.new_task(newest()).await;
    let running = f.claim_one().await;
    let second = f.new_task(newest()).await;
    let third = f.new_task(newest()).await;
    assert_eq!(states(f, &[first, second, third]).await, [State::Cancelling, State::Cancelled, State::Blocked]);
    assert!(f.claim(5).await.is_empty(), "the holder has not stopped yet");
    f.end(&running, more(1)).await;
    assert_eq!(states(f, &[first, third]).await, [State::Cancelled, State::Queued]);
    let running = f.claim_one().await;
    f.end(&running, more_after(60_000)).await;
    let fourth = f.new_task(newest()).await;
    assert_eq!(states(f, &[third, fourth]).await, [State::Cancelled, State::Queued], "between chunks it stops at once");
}

async fn a_task_for_later_asks_for_its_slot_when_it_is_due(f: &Fixture) {
    let later = f.new_task(Submit { run_at: Some(f.now().plus(60_000)), ..under("k", 1) }).await;
    assert!(!f.get(later).await.slot_held, "it holds up nobody until then");
    let now = f.new_task(under("k", 1)).await;
    let running = f.claim_one().await;
    assert_eq!(running.task.id, now);
    f.pass(60_000);
    f.renew("n1", &[&running]).await;
    assert!(f.claim(5).await.is_empty());
    assert_eq!(f.state(later).await, State::Blocked);
    f.end(&running, done()).await;
    assert_eq!(f.claim_one().await.task.id, later);
}

async fn a_resumed_task_waits_when_its_key_is_full(f: &Fixture) {
    let failed = f.new_task(under("k", 1)).await;
    f.end(&f.claim_one().await, gives_up()).await;
    let holder = f.new_task(under("k", 1)).await;
    let waiter = f.new_task(under("k", 1)).await;
    f.pass(1);
    let resumed = f.must(failed, Ask::Resume).await;
    assert_eq!((resumed.state, resumed.blocked_by), (State::Blocked, Some(holder)));
    f.end(&f.claim_one().await, done()).await;
    assert_eq!(states(f, &[waiter, failed]).await, [State::Queued, State::Blocked], "it came after the waiter");
    f.end(&f.claim_one().await, done()).await;
    assert_eq!(f.claim_one().await.task.id, failed);
}

async fn keys_of_tenants_are_apart_and_actions_share_them(f: &Fixture) {
    f.new_task(under("k", 1)).await;
    let stranger = principal("globex", "bob", Role::User);
    let other = f.new_task(Submit { slot: slot("k", 1, Policy::Wait), ..by(&stranger) }).await;
    let shared = f.new_task(Submit { action: "sync".into(), ..under("k", 1) }).await;
    assert_eq!(states(f, &[other, shared]).await, [State::Queued, State::Blocked]);
}

async fn who_frees_a_slot_is_not_told_to_the_one_who_gets_it(f: &Fixture) {
    let bobs = f.new_task(under("k", 1)).await;
    let hers = f.new_task(Submit { slot: slot("k", 1, Policy::Wait), ..by(&alice()) }).await;
    f.must(bobs, Ask::Cancel).await;
    let freed = f.store.events(hers, 0, 100).await.unwrap().pop().unwrap();
    assert_eq!((freed.reason.as_str(), freed.actor, freed.node), ("slot-free", None, None));
}
