//! Submitting: one task a key, whatever the race; what a replay tells; what a refusal does not.

use super::fixture::*;
use super::words::*;
use serde_json::json;
use std::sync::Arc;
use taskbell::bus::LocalBus;
use taskbell::core::action::{OnConflict, Policy};
use taskbell::core::lifecycle::Ask;
use taskbell::core::principal::Role;
use taskbell::core::submit::{KeyClaim, Submit, SubmitRefusal, Submitted};
use taskbell::core::task::{RecordRef, State};
use taskbell::core::time::Millis;
use taskbell::engine::commands::Commands;
use tokio::sync::Notify;
use tokio::task::JoinSet;

store_suite! {
    fifty_racing_clicks_of_one_key_make_one_task_and_49_replays
    fifty_racing_clicks_through_the_group_commit_make_one_task_and_49_replays
    two_clicks_of_one_key_in_one_batch_make_one_task
    a_key_is_compared_byte_by_byte_within_tenant_and_action
    an_unfinished_holder_is_returned_refused_or_replaced_as_the_action_says
    a_success_holds_its_key_until_keep_after_its_end
    a_failed_cancelled_or_deleted_holder_holds_nothing
    whoever_lost_a_key_of_either_kind_cannot_go_on_beside_its_new_holder
    a_callers_key_comes_first_and_fields_apply_beside_it
    another_body_under_one_key_is_told_by_its_paths_and_never_by_values
    a_holder_that_the_caller_may_not_see_is_a_conflict_without_data
    a_pending_holder_is_replaced_before_fingerprints_are_compared
    a_replay_counts_the_click_and_touches_nothing_else
    a_click_that_is_refused_by_its_concurrency_key_cancels_nobody
    a_click_without_run_at_is_due_at_once_by_the_databases_clock
    an_undo_window_keeps_a_task_from_being_claimed
    documents_come_back_as_they_were_sent
    each_item_of_a_batch_gets_its_own_answer
    a_submit_whose_answer_was_lost_is_answered_with_its_task_when_it_comes_again
    a_click_that_fills_its_own_key_is_not_refused_when_it_is_tried_again
}

/// Answers of racing clicks: one is new, all others are that one.
fn one_and_replays(answers: &[Submitted]) {
    let new: Vec<_> = answers.iter().filter(|a| matches!(a, Submitted::Created(_))).collect();
    assert_eq!(new.len(), 1, "{} new tasks for one key", new.len());
    let id = new[0].task().unwrap().id;
    let replays = answers.iter().filter(|a| matches!(a, Submitted::Replayed(t) if t.id == id)).count();
    assert_eq!(replays, answers.len() - 1);
}

/// Row: C2.
/// Proves: G5.
async fn fifty_racing_clicks_of_one_key_make_one_task_and_49_replays(f: &Fixture) {
    for round in 0..200 {
        let name = format!("k{round}");
        let mut racing = JoinSet::new();
        for _ in 0..50 {
            let (store, click) = (f.store.clone(), keyed(&name));
            racing.spawn(async move { store.submit(vec![click]).await.unwrap().answer.pop().unwrap() });
        }
        one_and_replays(&racing.join_all().await);
    }
}

/// Row: C2.
/// Proves: G5.
async fn fifty_racing_clicks_through_the_group_commit_make_one_task_and_49_replays(f: &Fixture) {
    let commands = Commands::new(f.store.clone(), LocalBus::default(), Arc::new(Notify::new()));
    for round in 0..200 {
        let name = format!("k{round}");
        let mut racing = JoinSet::new();
        for _ in 0..50 {
            let (commands, click) = (commands.clone(), keyed(&name));
            racing.spawn(async move { commands.submit(click).await.unwrap() });
        }
        one_and_replays(&racing.join_all().await);
    }
}

async fn two_clicks_of_one_key_in_one_batch_make_one_task(f: &Fixture) {
    let answers = f.submit(vec![keyed("k"), keyed("other"), keyed("k"), keyed("k")]).await;
    let id = answers[0].task().unwrap().id;
    assert!(matches!(&answers[1], Submitted::Created(t) if t.id != id));
    for replay in &answers[2..] {
        assert!(matches!(replay, Submitted::Replayed(t) if t.id == id && t.suppressed == 2));
    }
}

async fn a_key_is_compared_byte_by_byte_within_tenant_and_action(f: &Fixture) {
    let longest = "k".repeat(255);
    for name in
        ["a", "A", "a ", " a", "a\u{301}", "á", "ａ", "%", "_", "'", "\"", "1", "01", "1.0", "ключ", "钥匙", &longest]
    {
        f.new_task(keyed(name)).await;
        assert!(matches!(f.click(keyed(name)).await, Submitted::Replayed(_)), "{name:?}");
    }
    f.new_task(Submit { action: "sync".into(), ..keyed("a") }).await;
    let stranger = principal("globex", "bob", Role::User);
    f.new_task(Submit { keys: vec![key("a")], ..by(&stranger) }).await;
    f.new_task(Submit { keys: vec![fields_key("a")], ..click() }).await;
}

fn on_conflict(name: &str, on_conflict: OnConflict) -> Submit {
    Submit { keys: vec![KeyClaim { on_conflict, ..key(name) }], ..click() }
}

async fn an_unfinished_holder_is_returned_refused_or_replaced_as_the_action_says(f: &Fixture) {
    let first = f.new_task(keyed("k")).await;
    assert!(matches!(f.click(on_conflict("k", OnConflict::Return)).await, Submitted::Replayed(t) if t.id == first));
    let refused = f.click(on_conflict("k", OnConflict::Reject)).await;
    assert_eq!(refused, Submitted::Refused(SubmitRefusal::IdempotencyConflict));
    let second = f.new_task(on_conflict("k", OnConflict::ReplacePending)).await;
    assert_eq!(f.state(first).await, State::Cancelled);
    assert_eq!(f.reasons(first).await.last().unwrap(), "cancel: replaced");
    // Once it has started it is not replaced any more, neither while it runs nor while it waits for its retry.
    let running = f.claim_one().await;
    assert_eq!(running.task.id, second);
    let again = || f.click(on_conflict("k", OnConflict::ReplacePending));
    assert!(matches!(again().await, Submitted::Replayed(t) if t.id == second));
    f.end(&running, throws()).await;
    assert!(matches!(again().await, Submitted::Replayed(t) if t.id == second && t.state == State::Queued));
    // The replaced one's key has passed on.
    assert_eq!(f.ask(first, Ask::Resume).await, taskbell::store::Asked::Superseded);
}

/// Row: C3.
async fn a_success_holds_its_key_until_keep_after_its_end(f: &Fixture) {
    for (claim, keep_ms) in [(key("k"), 86_400_000), (fields_key("f"), 10_000)] {
        let click = || Submit { keys: vec![claim.clone()], ..click() };
        let first = f.new_task(click()).await;
        f.pass(3_600_000);
        f.end(&f.claim_task(first).await, done()).await;
        f.pass(keep_ms - 1);
        for policy in [OnConflict::Return, OnConflict::Reject, OnConflict::ReplacePending] {
            let keys = vec![KeyClaim { on_conflict: policy, ..claim.clone() }];
            let replay = f.click(Submit { keys, ..click() }).await;
            assert!(matches!(replay, Submitted::Replayed(t) if t.id == first && t.state == State::Succeeded));
        }
        f.pass(1);
        let second = f.new_task(click()).await;
        assert!(matches!(f.click(click()).await, Submitted::Replayed(t) if t.id == second));
    }
}

async fn a_failed_cancelled_or_deleted_holder_holds_nothing(f: &Fixture) {
    let failed = f.new_task(keyed("k")).await;
    f.end(&f.claim_one().await, gives_up()).await;
    let cancelled = f.new_task(keyed("k")).await;
    assert_ne!(failed, cancelled);
    f.must(cancelled, Ask::Cancel).await;
    let deleted = f.new_task(keyed("k")).await;
    f.end(&f.claim_one().await, done()).await;
    assert_eq!(f.heard(f.store.delete(&bob(), vec![deleted]).await.unwrap()), [Some(true)]);
    f.new_task(keyed("k")).await;
    // Whoever lost the key cannot come back beside the new holder.
    for id in [failed, cancelled] {
        assert_eq!(f.ask(id, Ask::Resume).await, taskbell::store::Asked::Superseded);
    }
}

async fn whoever_lost_a_key_of_either_kind_cannot_go_on_beside_its_new_holder(f: &Fixture) {
    for claim in [key("k"), fields_key("k")] {
        let click = || Submit { keys: vec![claim.clone()], ..click() };
        let failed = f.new_task(click()).await;
        f.end(&f.claim_task(failed).await, gives_up()).await;
        f.must(failed, Ask::Resume).await;
        assert!(matches!(f.click(click()).await, Submitted::Replayed(t) if t.id == failed), "it has its key again");
        f.end(&f.claim_task(failed).await, gives_up()).await;
        let newer = f.new_task(click()).await;
        assert_eq!(f.ask(failed, Ask::Resume).await, taskbell::store::Asked::Superseded);
        assert!(f.get(failed).await.superseded && !f.get(newer).await.superseded);
        f.must(newer, Ask::Cancel).await;
        f.must(newer, Ask::Resume).await;
        f.end(&f.claim_task(newer).await, done()).await;
    }
}

async fn a_callers_key_comes_first_and_fields_apply_beside_it(f: &Fixture) {
    let with = |caller: &str, fields: &str| Submit { keys: vec![key(caller), fields_key(fields)], ..click() };
    let one = f.new_task(with("k1", "f1")).await;
    assert!(matches!(f.click(with("k1", "f2")).await, Submitted::Replayed(t) if t.id == one), "the caller's key");
    assert!(matches!(f.click(with("k2", "f1")).await, Submitted::Replayed(t) if t.id == one), "the double click");
    // Neither replay gave a key away.
    let two = f.new_task(with("k2", "f2")).await;
    f.end(&f.claim_task(one).await, done()).await;
    f.pass(10_000);
    // The fields are free again while the caller's key is still held.
    let three = f.new_task(with("k3", "f1")).await;
    assert!(matches!(f.click(with("k1", "f1")).await, Submitted::Replayed(t) if t.id == one));
    assert!(matches!(f.click(with("k2", "f9")).await, Submitted::Replayed(t) if t.id == two));
    assert!(matches!(f.click(with("k9", "f1")).await, Submitted::Replayed(t) if t.id == three));
}

/// Row: C4.
/// Proves: G5.
async fn another_body_under_one_key_is_told_by_its_paths_and_never_by_values(f: &Fixture) {
    let record = |id: &str| Some(RecordRef { kind: "order".into(), id: id.into() });
    let with = |params, fingerprint: &str, id: &str| Submit {
        params,
        fingerprint: fingerprint.into(),
        record: record(id),
        ..keyed("k")
    };
    let holder = f.new_task(with(json!({"n": 1, "same": [1, 2]}), "one", "7")).await;
    let refused = f.click(with(json!({"n": 2, "same": [1, 2], "secret": "hunter2"}), "two", "8")).await;
    let Submitted::Refused(SubmitRefusal::IdempotencyMismatch { task, paths }) = refused else { panic!("{refused:?}") };
    assert_eq!(task, holder);
    assert_eq!(paths, ["params.n", "params.secret", "record.id"]);
    assert!(matches!(f.click(with(json!({"same": [1, 2], "n": 1}), "one", "7")).await, Submitted::Replayed(_)));
    // In one batch the holder's params are not in the database yet.
    let batch = vec![
        Submit { params: json!({"n": 1}), fingerprint: "one".into(), ..keyed("b") },
        Submit { fingerprint: "two".into(), ..keyed("b") },
    ];
    let answers = f.submit(batch).await;
    let Submitted::Refused(SubmitRefusal::IdempotencyMismatch { paths, .. }) = &answers[1] else { panic!() };
    assert_eq!(paths, &["params.n"]);
}

async fn a_holder_that_the_caller_may_not_see_is_a_conflict_without_data(f: &Fixture) {
    let holder = f.new_task(keyed("k")).await;
    let as_alice = |on_conflict, fingerprint: &str| Submit {
        keys: vec![KeyClaim { on_conflict, ..key("k") }],
        fingerprint: fingerprint.into(),
        ..by(&alice())
    };
    for policy in [OnConflict::Return, OnConflict::Reject, OnConflict::ReplacePending] {
        for fingerprint in ["as is", "other"] {
            let refused = f.click(as_alice(policy, fingerprint)).await;
            assert_eq!(refused, Submitted::Refused(SubmitRefusal::IdempotencyConflict));
        }
    }
    let untouched = f.get(holder).await;
    assert_eq!((untouched.state, untouched.suppressed), (State::Queued, 0));
    let as_operator = Submit { keys: vec![key("k")], ..by(&operator()) };
    assert!(matches!(f.click(as_operator).await, Submitted::Replayed(t) if t.id == holder));
}

async fn a_pending_holder_is_replaced_before_fingerprints_are_compared(f: &Fixture) {
    let first = f.new_task(keyed("k")).await;
    let other = Submit { fingerprint: "other".into(), ..on_conflict("k", OnConflict::ReplacePending) };
    f.new_task(other).await;
    assert_eq!(f.state(first).await, State::Cancelled);
    f.claim_one().await;
    let third = f.click(on_conflict("k", OnConflict::ReplacePending)).await;
    assert!(matches!(third, Submitted::Refused(SubmitRefusal::IdempotencyMismatch { .. })), "{third:?}");
}

async fn a_replay_counts_the_click_and_touches_nothing_else(f: &Fixture) {
    let id = f.new_task(keyed("k")).await;
    let running = f.claim_one().await;
    f.report(&running, json!({"current": 5, "total": 10})).await;
    let before = f.get(id).await;
    f.pass(1_000);
    let Submitted::Replayed(told) = f.click(keyed("k")).await else { panic!() };
    assert_eq!((told.started_by.as_str(), told.started_at, told.progress.current), ("bob", before.started_at, 5));
    let after = f.get(id).await;
    assert_eq!((after.suppressed, after.revision), (1, before.revision.next()));
    let same = taskbell::core::task::Task {
        suppressed: 0,
        revision: before.revision,
        head: before.head,
        updated_at: before.updated_at,
        ..after
    };
    assert_eq!(same, before);
    assert!(matches!(f.end(&running, done()).await.ended, taskbell::core::lifecycle::Ended::Applied { .. }));
}

async fn a_click_that_is_refused_by_its_concurrency_key_cancels_nobody(f: &Fixture) {
    f.new_task(under("site", 1)).await;
    f.claim_one().await;
    let pending = f.new_task(on_conflict("k", OnConflict::ReplacePending)).await;
    for policy in [Policy::Reject, Policy::Skip] {
        let click = Submit { slot: slot("site", 1, policy), ..on_conflict("k", OnConflict::ReplacePending) };
        let answer = f.click(click).await;
        assert!(matches!(answer, Submitted::Refused(_) | Submitted::Skipped(_)), "{answer:?}");
        assert_eq!(f.state(pending).await, State::Queued, "{policy:?} cancelled the pending task and made none");
    }
    assert!(
        matches!(f.click(keyed("k")).await, Submitted::Replayed(t) if t.id == pending),
        "the key stayed where it was"
    );
}

async fn a_click_without_run_at_is_due_at_once_by_the_databases_clock(f: &Fixture) {
    let now = f.new_task(click()).await;
    let past = f.new_task(Submit { run_at: Some(Millis(5)), ..click() }).await;
    let future = f.new_task(Submit { run_at: Some(f.now().plus(60_000)), ..click() }).await;
    assert_eq!(f.get(now).await.due_at, f.now());
    assert_eq!(f.get(past).await.due_at, f.now(), "no wish reaches into the past, where it would pass by all others");
    let ids: Vec<_> = f.claim(10).await.iter().map(|c| c.task.id).collect();
    assert_eq!(ids, [now, past]);
    assert_eq!(f.store.next_due().await.unwrap(), Some(f.now().plus(60_000)));
    f.pass(59_999);
    assert!(f.claim(10).await.is_empty());
    f.pass(1);
    assert_eq!(f.claim_one().await.task.id, future);
}

async fn an_undo_window_keeps_a_task_from_being_claimed(f: &Fixture) {
    let id = f.new_task(Submit { undo_window_ms: 5_000, ..click() }).await;
    f.pass(4_999);
    assert!(f.claim(1).await.is_empty());
    assert_eq!(f.must(id, Ask::Cancel).await.state, State::Cancelled);
    let id = f.new_task(Submit { undo_window_ms: 5_000, ..click() }).await;
    f.pass(5_000);
    assert_eq!(f.claim_one().await.task.id, id);
}

async fn documents_come_back_as_they_were_sent(f: &Fixture) {
    let odd = json!({
        "text": "导入 \u{1F514} 'quoted' \"double\" \\ line\nbreak\ttab % _ \u{7f}\u{2028}",
        "numbers": [0, -0.0, 1.0, 1, 9_007_199_254_740_993_i64, i64::MIN, u64::MAX, 0.1, 1e300, -1e-7],
        "nested": {"": {"a.b": [[], {}, null, true, false, ""]}},
        "json in text": "{\"a\":1}",
    });
    let id = f.new_task(Submit { params: odd.clone(), title: Some("题 'x' \"y\" \\".into()), ..click() }).await;
    assert_eq!(f.get(id).await.title.unwrap(), "题 'x' \"y\" \\");
    let claimed = f.claim_one().await;
    assert_eq!((&claimed.documents.params, &claimed.documents.checkpoint), (&odd, &None));
    let told = taskbell::core::chunk::Told::default();
    let more = taskbell::core::chunk::Outcome::More { checkpoint: Some(odd.clone()), delay_ms: 0, told: told.clone() };
    f.end(&claimed, more).await;
    let claimed = f.claim_one().await;
    assert_eq!(claimed.documents.checkpoint.as_ref(), Some(&odd));
    f.end(&claimed, taskbell::core::chunk::Outcome::Done { result: Some(odd.clone()), told }).await;
    let kept = f.store.documents(id).await.unwrap();
    assert_eq!((kept.params, kept.checkpoint, kept.result), (odd.clone(), Some(odd.clone()), Some(odd)));
    let empty = f.new_task(click()).await;
    assert_eq!(f.store.documents(empty).await.unwrap().params, json!({}));
}

async fn each_item_of_a_batch_gets_its_own_answer(f: &Fixture) {
    let batch = vec![
        keyed("a"),
        Submit { fingerprint: "other".into(), ..keyed("a") },
        Submit { slot: slot("s", 1, Policy::Reject), ..click() },
        Submit { slot: slot("s", 1, Policy::Reject), ..click() },
        Submit { slot: slot("s", 1, Policy::Skip), ..click() },
        Submit { slot: slot("s", 1, Policy::Wait), ..click() },
        keyed("a"),
    ];
    let ids: Vec<_> = batch.iter().map(|s| s.id).collect();
    let answers = f.submit(batch).await;
    let holder = Some(ids[2]);
    assert!(matches!(&answers[0], Submitted::Created(t) if t.id == ids[0]));
    assert!(matches!(&answers[1], Submitted::Refused(SubmitRefusal::IdempotencyMismatch { .. })));
    assert!(matches!(&answers[2], Submitted::Created(t) if t.slot_held));
    assert_eq!(answers[3], Submitted::Refused(SubmitRefusal::ConcurrencyConflict { task: holder }));
    assert!(matches!(&answers[4], Submitted::Skipped(t) if t.id == ids[2] && t.suppressed == 1));
    assert!(matches!(&answers[5], Submitted::Created(t) if t.state == State::Blocked && t.blocked_by == holder));
    assert!(matches!(&answers[6], Submitted::Replayed(t) if t.id == ids[0]));
    assert_eq!(f.submit(Vec::new()).await, []);
}

async fn a_submit_whose_answer_was_lost_is_answered_with_its_task_when_it_comes_again(f: &Fixture) {
    let batch = vec![click(), keyed("k"), under("slot", 1)];
    let ids = |answers: &[Submitted]| answers.iter().map(|a| a.task().unwrap().id).collect::<Vec<_>>();
    let first = f.submit(batch.clone()).await;
    let new = click();
    let second = f.submit(batch.into_iter().chain([new.clone()]).collect()).await;
    assert!(second.iter().all(|a| matches!(a, Submitted::Created(_))), "{second:?}");
    assert_eq!(ids(&second)[..3], ids(&first), "the same tasks");
    assert_eq!(ids(&second)[3], new.id, "a neighbour in the batch is not touched");
    let all = super::invariants::all_tasks(f.store.as_ref()).await;
    assert_eq!((all.len(), all.iter().map(|t| t.suppressed).sum::<i64>()), (4, 0), "and it was no second click");
}

async fn a_click_that_fills_its_own_key_is_not_refused_when_it_is_tried_again(f: &Fixture) {
    for policy in [Policy::Reject, Policy::Skip, Policy::Wait, Policy::ReplacePending, Policy::CancelRunning] {
        let batch = vec![Submit { slot: slot(&format!("{policy:?}"), 1, policy), ..click() }];
        let first = f.submit(batch.clone()).await;
        let again = f.heard(f.store.submit_again(batch).await.unwrap());
        assert_eq!(again, first, "{policy:?}");
    }
}
