//! Chunks, checkpoints, retries and progress, as far as the store and the core decide them: one commit a chunk, applied
//! once, with everything that belongs to it.

use super::fixture::*;
use super::words::*;
use serde_json::{Value, json};
use taskbell::core::chunk::{Failure, Outcome, Told};
use taskbell::core::effect::Effect;
use taskbell::core::lifecycle::{Ask, Ended};
use taskbell::core::progress::{Reported, Stage};
use taskbell::core::submit::Submit;
use taskbell::core::task::{ErrorKind, Rows, State, WaitReason, limits};
use taskbell::store::{ChunkCommit, StoreError};

store_suite! {
    a_commit_stores_all_that_belongs_to_the_chunk
    the_same_chunk_reported_again_is_answered_again_and_applied_once
    a_chunk_out_of_order_is_refused
    an_omitted_checkpoint_keeps_the_old_one
    a_planned_delay_holds_the_next_chunk_back_and_no_longer
    a_node_that_goes_on_keeps_its_lease_and_its_token
    a_committed_chunk_gives_all_attempts_back_and_the_failure_budget_stays
    failed_attempts_wait_longer_each_time_and_then_the_task_fails
    a_handlers_longer_wish_to_wait_is_granted
    a_permanent_failure_is_not_tried_again
    a_chunk_that_is_handed_back_uses_no_attempt
    five_idle_chunks_are_flagged_and_a_move_lifts_the_flag
    a_thousand_idle_chunks_end_the_task
    planned_waiting_is_not_idling
    a_failure_is_told_until_the_next_committed_chunk
    a_neighbour_that_is_gone_or_stale_takes_nothing_from_the_others
    for_one_total_current_never_falls_whatever_is_reported
    a_revised_total_is_stated_in_the_timeline
    nothing_shows_100_percent_before_success_and_a_stop_freezes_the_true_value
    a_report_that_says_nothing_new_changes_nothing
    row_counts_add_up_over_chunks
    business_tables_are_there_or_said_not_to_be
}

async fn a_commit_stores_all_that_belongs_to_the_chunk(f: &Fixture) {
    let id = f.new_task(click()).await;
    let before = f.get(id).await;
    let claimed = f.claim_one().await;
    f.pass(700);
    let report = json!({"current": 120, "total": 300, "unit": "rows", "phase": "reading", "message": "batch 2"});
    let told = Told {
        report: Reported::parse(&report).unwrap(),
        rows: Rows { ok: 118, skipped: 1, failed: 1 },
        ..Told::default()
    };
    let outcome = Outcome::More { checkpoint: Some(json!({"row": 120})), delay_ms: 250, told };
    let committed = f.end(&claimed, outcome).await;
    assert_eq!(committed.ended, Ended::Applied { continues: false });
    let task = f.get(id).await;
    assert_eq!(committed.task.as_ref(), Some(&task));
    let p = &task.progress;
    assert_eq!(
        (p.current, p.total, p.unit.as_deref(), p.phase.as_deref()),
        (120, Some(300), Some("rows"), Some("reading"))
    );
    assert_eq!((p.message.as_deref(), p.updated_at), (Some("batch 2"), Some(f.now())));
    assert_eq!((task.chunks, task.rows), (1, Rows { ok: 118, skipped: 1, failed: 1 }));
    assert_eq!((task.due_at, task.wait), (f.now().plus(250), Some(WaitReason::Delay)));
    assert_eq!((task.lease_until, task.lease_owner.as_deref()), (None, None));
    assert!(task.revision > before.revision && task.head > before.head);
    assert_eq!(f.store.documents(id).await.unwrap().checkpoint, Some(json!({"row": 120})));
}

/// Proves: G3.
async fn the_same_chunk_reported_again_is_answered_again_and_applied_once(f: &Fixture) {
    let counted = |n| Told { rows: Rows { ok: 5, skipped: 0, failed: 0 }, ..counted(n) };
    let commits: [fn(Told) -> Outcome; 2] = [
        |told| Outcome::More { checkpoint: Some(json!(1)), delay_ms: 0, told },
        |told| Outcome::Done { result: Some(json!("end")), told },
    ];
    for outcome in commits {
        let id = f.new_task(click()).await;
        let claimed = f.claim_task(id).await;
        let item = ended(&claimed, outcome(counted(5)));
        let twice = f.heard(f.store.commit(vec![item.clone(), item.clone()]).await.unwrap());
        assert_eq!([twice[0].ended, twice[1].ended], [Ended::Applied { continues: false }, Ended::Repeated]);
        let row = f.get(id).await;
        let again = f.commit(item).await;
        assert_eq!((again.ended, again.task), (Ended::Repeated, Some(row.clone())));
        assert_eq!((row.rows.ok, row.chunks, f.get(id).await), (5, 1, row.clone()));
    }
    for item in [|c: &_| ended(c, throws()), |c: &_| handed_back(c), |c: &_| ended(c, gives_up())] {
        let id = f.new_task(click()).await;
        let claimed = f.claim_task(id).await;
        assert!(matches!(f.commit(item(&claimed)).await.ended, Ended::Applied { .. }));
        let row = f.get(id).await;
        assert_eq!(f.commit(item(&claimed)).await.ended, Ended::Repeated);
        assert_eq!(f.get(id).await, row, "an attempt is used once");
    }
}

async fn a_chunk_out_of_order_is_refused(f: &Fixture) {
    let id = f.new_task(click()).await;
    f.end(&f.claim_one().await, more(1)).await;
    let claimed = f.claim_one().await;
    let row = f.get(id).await;
    for chunk in [-1, 0, 3, i64::MAX] {
        let item = ChunkCommit { chunk, ..ended(&claimed, done()) };
        assert_eq!(f.commit(item).await.ended, Ended::Stale, "chunk {chunk}");
    }
    assert_eq!(f.get(id).await, row);
}

async fn an_omitted_checkpoint_keeps_the_old_one(f: &Fixture) {
    let id = f.new_task(click()).await;
    f.end(&f.claim_one().await, more(7)).await;
    f.end(&f.claim_one().await, more_after(0)).await;
    f.end(&f.claim_one().await, throws()).await;
    assert_eq!(f.store.documents(id).await.unwrap().checkpoint, Some(json!({"n": 7})));
    f.pass(60_000);
    f.end(&f.claim_one().await, done()).await;
    let kept = f.store.documents(id).await.unwrap();
    assert_eq!((kept.checkpoint, kept.result), (Some(json!({"n": 7})), None));
}

async fn a_planned_delay_holds_the_next_chunk_back_and_no_longer(f: &Fixture) {
    f.new_task(click()).await;
    for delay_ms in [1, 250, 86_400_000] {
        f.end(&f.claim_one().await, more_after(delay_ms)).await;
        f.pass(delay_ms - 1);
        assert!(f.claim(1).await.is_empty());
        f.pass(1);
    }
    f.end(&f.claim_one().await, more_after(0)).await;
    f.claim_one().await;
}

async fn a_node_that_goes_on_keeps_its_lease_and_its_token(f: &Fixture) {
    let id = f.new_task(click()).await;
    let claimed = f.claim_one().await;
    f.pass(20_000);
    let item = ChunkCommit { continue_for_ms: Some(LEASE_MS), ..ended(&claimed, more(1)) };
    assert_eq!(f.commit(item).await.ended, Ended::Applied { continues: true });
    let task = f.get(id).await;
    assert_eq!((task.fencing_token, task.lease_until), (claimed.task.fencing_token, Some(f.now().plus(LEASE_MS))));
    let next = ChunkCommit { chunk: 2, continue_for_ms: Some(LEASE_MS), ..ended(&claimed, more_after(1)) };
    assert_eq!(f.commit(next).await.ended, Ended::Applied { continues: false }, "a gap gives the place up");
    f.pass(1);
    // A stop that was asked for ends it at this checkpoint, whatever the node would like.
    let claimed = f.claim_one().await;
    f.must(id, Ask::Pause).await;
    let item = ChunkCommit { continue_for_ms: Some(LEASE_MS), ..ended(&claimed, more(3)) };
    assert_eq!(f.commit(item).await.ended, Ended::Applied { continues: false });
    assert_eq!(f.state(id).await, State::Paused);
}

async fn a_committed_chunk_gives_all_attempts_back_and_the_failure_budget_stays(f: &Fixture) {
    let id = f.new_task(click()).await;
    let mut n = 0;
    loop {
        f.pass(600_000);
        f.end(&f.claim_one().await, throws()).await;
        if f.state(id).await == State::Failed {
            break;
        }
        f.pass(600_000);
        n += 1;
        f.end(&f.claim_one().await, more(n)).await;
        assert_eq!(f.get(id).await.attempts, 0);
        assert!(n < 100, "it would go on for ever");
    }
    let task = f.get(id).await;
    assert_eq!((task.failures, task.attempts), (RETRY.failure_budget(), 1));
    f.must(id, Ask::Resume).await;
    assert_eq!((f.get(id).await.failures, f.get(id).await.attempts), (0, 0));
}

async fn failed_attempts_wait_longer_each_time_and_then_the_task_fails(f: &Fixture) {
    let id = f.new_task(click()).await;
    for (attempt, delay_ms) in [(1, 5_000), (2, 10_000)] {
        f.end(&f.claim_one().await, throws()).await;
        let task = f.get(id).await;
        assert_eq!((task.state, task.wait, task.attempts), (State::Queued, Some(WaitReason::Retry), attempt));
        assert_eq!(task.due_at, f.now().plus(delay_ms));
        assert!(task.error.as_ref().is_some_and(|e| e.retryable && e.code == "boom"));
        f.pass(delay_ms);
    }
    f.end(&f.claim_one().await, throws()).await;
    let task = f.get(id).await;
    assert_eq!((task.state, task.attempts), (State::Failed, RETRY.max_attempts));
    assert!(task.error.is_some_and(|e| !e.retryable && e.kind == ErrorKind::Handler));
}

async fn a_handlers_longer_wish_to_wait_is_granted(f: &Fixture) {
    let id = f.new_task(click()).await;
    let later = Failure { retry_after_ms: Some(60_000), ..Failure::new(ErrorKind::Handler, "busy", "Later.") };
    f.end(&f.claim_one().await, Outcome::Fail(later)).await;
    assert_eq!(f.get(id).await.due_at, f.now().plus(60_000));
}

async fn a_permanent_failure_is_not_tried_again(f: &Fixture) {
    for kind in [ErrorKind::Permanent, ErrorKind::BadOutcome] {
        let id = f.new_task(click()).await;
        f.end(&f.claim_one().await, Outcome::Fail(Failure::new(kind, "no", "No."))).await;
        let task = f.get(id).await;
        assert_eq!((task.state, task.attempts, task.error.unwrap().kind), (State::Failed, 1, kind));
    }
}

async fn a_chunk_that_is_handed_back_uses_no_attempt(f: &Fixture) {
    let id = f.new_task(click()).await;
    for _ in 0..20 {
        let claimed = f.claim_one().await;
        assert_eq!(f.commit(handed_back(&claimed)).await.ended, Ended::Applied { continues: false });
        let task = f.get(id).await;
        assert_eq!((task.state, task.attempts, task.failures, task.reclaims), (State::Running, 0, 0, 0));
        assert!(task.claimable() && task.due_at <= f.now());
    }
}

async fn five_idle_chunks_are_flagged_and_a_move_lifts_the_flag(f: &Fixture) {
    let id = f.new_task(click()).await;
    f.end(&f.claim_one().await, more(1)).await;
    for round in 1..=2 {
        for idle in 1..=7 {
            f.end(&f.claim_one().await, if idle % 2 == 0 { more(round) } else { more_after(0) }).await;
            let warnings = f.get(id).await.warnings;
            assert_eq!(warnings.len(), usize::from(idle >= limits::IDLE_CHUNKS_WARN), "{idle}: {warnings:?}");
        }
        f.end(&f.claim_one().await, more(round + 1)).await;
        assert!(f.get(id).await.warnings.is_empty(), "it moves again");
    }
    assert_eq!(f.reasons(id).await.iter().filter(|r| *r == "no-progress").count(), 2);
}

async fn a_thousand_idle_chunks_end_the_task(f: &Fixture) {
    let id = f.new_task(click()).await;
    let claimed = f.claim_one().await;
    for chunk in 1..=limits::IDLE_CHUNKS_FAIL {
        assert_eq!(f.state(id).await, State::Running, "after {} chunks", chunk - 1);
        let item = ChunkCommit { chunk, continue_for_ms: Some(LEASE_MS), ..ended(&claimed, more_after(0)) };
        f.commit(item).await;
    }
    let task = f.get(id).await;
    assert_eq!((task.state, task.error.unwrap().kind), (State::Failed, ErrorKind::NoProgress));
}

async fn planned_waiting_is_not_idling(f: &Fixture) {
    let id = f.new_task(click()).await;
    for _ in 0..10 {
        f.end(&f.claim_one().await, more_after(1_000)).await;
        f.pass(1_000);
    }
    assert_eq!((f.get(id).await.idle_chunks, f.get(id).await.warnings.len()), (0, 0));
}

async fn a_failure_is_told_until_the_next_committed_chunk(f: &Fixture) {
    let id = f.new_task(click()).await;
    f.end(&f.claim_one().await, gives_up()).await;
    let resumed = f.must(id, Ask::Resume).await;
    assert!(resumed.error.is_some() && !resumed.error_stands(), "kept for the handler, not shown as the truth");
    let claimed = f.claim_one().await;
    assert_eq!(claimed.task.error.as_ref().unwrap().code, "no-use");
    f.end(&claimed, more(1)).await;
    assert_eq!(f.get(id).await.error, None);
}

async fn a_neighbour_that_is_gone_or_stale_takes_nothing_from_the_others(f: &Fixture) {
    f.submit((0..4).map(|_| click()).collect()).await;
    let claimed = f.claim(4).await;
    f.must(claimed[1].task.id, Ask::ForceCancel).await;
    f.must(claimed[2].task.id, Ask::ForceCancel).await;
    let deleted = f.heard(f.store.delete(&operator(), vec![claimed[1].task.id]).await.unwrap());
    assert_eq!(deleted, [Some(true)]);
    let batch: Vec<ChunkCommit> = claimed.iter().map(|c| ended(c, done())).collect();
    let answers = f.heard(f.store.commit(batch).await.unwrap());
    assert_eq!((answers[1].ended, &answers[1].task), (Ended::Stale, &None));
    assert_eq!(answers[2].ended, Ended::Stale);
    for n in [0, 3] {
        assert_eq!(answers[n].ended, Ended::Applied { continues: false });
        assert_eq!(f.state(claimed[n].task.id).await, State::Succeeded);
    }
}

async fn for_one_total_current_never_falls_whatever_is_reported(f: &Fixture) {
    let id = f.new_task(click()).await;
    let claimed = f.claim_one().await;
    let seen: [(Value, (i64, Option<i64>)); 6] = [
        (json!({"current": 80, "total": 100}), (80, Some(100))),
        (json!({"current": 10}), (80, Some(100))),
        (json!({"current": 130}), (130, Some(100))),
        (json!({"total": 50}), (130, Some(50))),
        (json!({"current": 2, "total": 5000}), (2, Some(5000))),
        (json!({"total": null}), (2, None)),
    ];
    for (report, (current, total)) in seen {
        assert!(f.report(&claimed, report.clone()).await);
        let p = f.get(id).await.progress;
        assert_eq!((p.current, p.total), (current, total), "{report}");
    }
    f.end(&claimed, Outcome::More { checkpoint: None, delay_ms: 0, told: counted(1) }).await;
    assert_eq!(f.get(id).await.progress.current, 2, "nor in a commit");
}

async fn a_revised_total_is_stated_in_the_timeline(f: &Fixture) {
    let id = f.new_task(click()).await;
    let claimed = f.claim_one().await;
    for report in [json!({"total": 100}), json!({"total": 100}), json!({"total": 5000}), json!({"total": null})] {
        f.report(&claimed, report).await;
    }
    let told: Vec<String> = f.reasons(id).await.split_off(2);
    assert_eq!(told, ["total-revised: 100 to 5000", "total-revised: 5000 to unknown"]);
}

/// Proves: G12.
async fn nothing_shows_100_percent_before_success_and_a_stop_freezes_the_true_value(f: &Fixture) {
    for (outcome, stage, percent) in [(done(), Stage::Succeeded, Some(100)), (gives_up(), Stage::Stopped, Some(99))] {
        let id = f.new_task(click()).await;
        let claimed = f.claim_task(id).await;
        f.report(&claimed, json!({"current": 10, "total": 10})).await;
        assert_eq!(f.get(id).await.progress.percent(Stage::Active), Some(99));
        f.end(&claimed, outcome).await;
        assert_eq!(f.get(id).await.progress.percent(stage), percent);
    }
    // A task of zero items that succeeds is complete, and one without a total never was a share of anything.
    for (report, percent) in [(json!({"total": 0}), Some(100)), (json!({"current": 5}), None)] {
        let id = f.new_task(click()).await;
        let claimed = f.claim_task(id).await;
        f.report(&claimed, report).await;
        assert_eq!(f.get(id).await.progress.percent(Stage::Active), None);
        f.end(&claimed, done()).await;
        assert_eq!(f.get(id).await.progress.percent(Stage::Succeeded), percent);
    }
}

async fn a_report_that_says_nothing_new_changes_nothing(f: &Fixture) {
    let id = f.new_task(click()).await;
    let claimed = f.claim_one().await;
    f.report(&claimed, json!({"current": 5, "message": "x"})).await;
    let row = f.get(id).await;
    f.pass(10_000);
    assert!(f.report(&claimed, json!({"current": 5, "message": "x"})).await, "it is the owner all the same");
    assert_eq!(f.get(id).await, row);
}

async fn row_counts_add_up_over_chunks(f: &Fixture) {
    let id = f.new_task(click()).await;
    for _ in 0..3 {
        let told = Told { rows: Rows { ok: i64::MAX / 2, skipped: 2, failed: 1 }, ..Told::default() };
        f.end(&f.claim_one().await, Outcome::More { checkpoint: None, delay_ms: 1, told }).await;
        f.pass(1);
    }
    let rows = f.get(id).await.rows;
    assert_eq!((rows.skipped, rows.failed), (6, 3));
    assert_eq!(rows.ok, taskbell::core::progress::MAX_COUNT, "a false sum is capped and never wraps");
}

async fn business_tables_are_there_or_said_not_to_be(f: &Fixture) {
    let table = Effect { sql: "CREATE TABLE business (n INTEGER)", rows: vec![Vec::new()] };
    let made = f.store.execute(vec![table]).await;
    let read = f.store.query("SELECT 1", Vec::new()).await;
    if f.store.capabilities().effects {
        assert!(made.is_ok() && read.is_ok());
    } else {
        let unsupported = StoreError::Unsupported("business tables");
        assert_eq!((made, read), (Err(unsupported.clone()), Err(unsupported.clone())));
        f.new_task(Submit { params: json!({"n": 1}), ..click() }).await;
        let claimed = f.claim_one().await;
        let effects = vec![Effect { sql: "DELETE FROM business", rows: vec![Vec::new()] }];
        let refused = f.store.commit(vec![ChunkCommit { effects, ..ended(&claimed, done()) }]).await;
        assert_eq!(refused.err(), Some(unsupported));
        assert_eq!(f.state(claimed.task.id).await, State::Running, "and nothing of the chunk was applied");
    }
}
