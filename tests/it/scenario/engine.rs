//! What one node does with its tasks: chunk by chunk to the end, through failures, stops, drains and takeovers.

use crate::support::ground::Ground;
use crate::support::node::{Node, SOON, action, alice, answer, click, closure, operator, short_settings};
use crate::support::{eventually, on_each_database};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use taskbell::core::action::Action;
use taskbell::core::effect::{Effect, SqlValue};
use taskbell::core::lifecycle::Ask;
use taskbell::core::task::{ErrorKind, State};
use taskbell::handler::{Handler, HandlerError};
use taskbell::store::Asked;
use tokio::sync::Notify;

on_each_database! {
    a_task_runs_chunk_by_chunk_to_its_true_end
    a_busy_node_runs_as_many_chunks_at_once_as_it_has_places_and_no_more
    a_planned_gap_frees_the_place_and_ends_by_itself
    a_failing_chunk_is_retried_with_its_attempt_counted_until_attempts_are_used_up
    each_kind_of_bad_handler_becomes_its_kind_of_error_and_the_node_goes_on
    a_cancel_stops_at_the_next_checkpoint_and_a_resume_goes_on_from_it
    a_forced_cancel_ends_at_once_and_the_late_chunk_changes_nothing
    a_drain_hands_chunks_back_without_using_an_attempt_and_the_next_node_goes_on
    effects_happen_with_the_checkpoint_and_a_refused_one_undoes_its_chunk_alone
}

fn one(action: Action, handler: Arc<dyn Handler>) -> Vec<(Action, Arc<dyn Handler>)> {
    vec![(action, handler)]
}

/// Counts to `params.to` in steps of ten, one a chunk.
fn counting() -> Arc<dyn Handler> {
    closure(|call| async move {
        let to = call.params["to"].as_i64().unwrap();
        let at = call.checkpoint.as_ref().map_or(0, |c| c["at"].as_i64().unwrap()) + 10;
        answer(json!({"hasMore": at < to, "checkpoint": {"at": at}, "current": at, "total": to, "result": {"at": at},
            "rows": {"ok": 10}}))
    })
}

/// Ends its first chunk, and never the second; tells when it is there.
fn stuck_in_the_second(reached: Arc<Notify>) -> Arc<dyn Handler> {
    closure(move |call| {
        let reached = reached.clone();
        async move {
            if call.chunk == 2 {
                reached.notify_one();
                std::future::pending::<()>().await;
            }
            answer(json!({"hasMore": true, "checkpoint": call.chunk, "current": call.chunk}))
        }
    })
}

async fn a_task_runs_chunk_by_chunk_to_its_true_end(ground: Arc<Ground>) {
    let node = Node::start(&ground, one(action("count"), counting())).await;
    let id = node.click(click("count", json!({"to": 200}))).await;
    let task = node.until(id, State::Succeeded).await;
    assert_eq!((task.chunks, task.progress.current, task.progress.total), (20, 200, Some(200)));
    assert_eq!((task.rows.ok, task.attempts, task.reclaims), (200, 0, 0));
    assert_eq!(task.fencing_token.0, 1, "chunks that follow at once keep lease and token");
    assert_eq!(node.store.documents(id).await.unwrap().result, Some(json!({"at": 200})));
    let words: Vec<_> = node.store.events(id, 0, 10).await.unwrap().into_iter().map(|e| e.reason).collect();
    assert_eq!(words, ["submitted", "claimed", "done"]);
}

async fn a_busy_node_runs_as_many_chunks_at_once_as_it_has_places_and_no_more(ground: Arc<Ground>) {
    let (under_way, most) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let counted = {
        let (under_way, most) = (under_way.clone(), most.clone());
        closure(move |call| {
            let (under_way, most) = (under_way.clone(), most.clone());
            async move {
                most.fetch_max(1 + under_way.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(call.params["ms"].as_u64().unwrap())).await;
                under_way.fetch_sub(1, Ordering::SeqCst);
                answer(json!({"hasMore": call.chunk < 2, "checkpoint": call.chunk}))
            }
        })
    };
    let node = Node::start(&ground, one(action("counted"), counted)).await;
    let mut ids = Vec::new();
    for n in 0..100 {
        ids.push(node.click(click("counted", json!({"ms": n % 7}))).await);
    }
    for id in ids {
        let task = node.until(id, State::Succeeded).await;
        assert_eq!((task.chunks, task.fencing_token.0), (2, 1));
    }
    let (places, most) = (short_settings().parallelism, most.load(Ordering::SeqCst));
    assert_eq!((most, under_way.load(Ordering::SeqCst)), (i64::try_from(places).unwrap(), 0));
}

async fn a_planned_gap_frees_the_place_and_ends_by_itself(ground: Arc<Ground>) {
    let gaps = closure(|call| async move {
        answer(json!({"hasMore": call.chunk < 4, "nextDelaySeconds": 0.05, "current": call.chunk}))
    });
    let mut settings = short_settings();
    // With a poll this slow, only the due instant itself can wake the claim in time.
    (settings.poll_ms, settings.parallelism) = (60_000, 1);
    let node = Node::start_with(&ground, one(action("gaps"), gaps), settings).await;
    let (a, b) = (node.click(click("gaps", json!({}))).await, node.click(click("gaps", json!({}))).await);
    assert_eq!(node.until(a, State::Succeeded).await.chunks, 4);
    assert_eq!(node.until(b, State::Succeeded).await.chunks, 4);
}

async fn a_failing_chunk_is_retried_with_its_attempt_counted_until_attempts_are_used_up(ground: Arc<Ground>) {
    let flaky = closure(|call| async move {
        if call.chunk == 2 && call.attempt < 3 {
            return Err(HandlerError::retry("flaky", "Not yet."));
        }
        if call.chunk == 3 {
            return Err(HandlerError::retry("broken", "Never."));
        }
        answer(json!({"hasMore": true, "checkpoint": call.chunk, "current": call.chunk}))
    });
    let node = Node::start(&ground, one(action("flaky"), flaky)).await;
    let id = node.click(click("flaky", json!({}))).await;
    let task = node.until(id, State::Failed).await;
    assert_eq!((task.chunks, task.attempts, task.failures), (2, 3, 5));
    let error = task.error.unwrap();
    assert_eq!((error.kind, error.code.as_str(), error.retryable), (ErrorKind::Handler, "broken", false));
    assert_eq!(task.progress.current, 2, "frozen at what was committed");
}

/// Proves: G16.
async fn each_kind_of_bad_handler_becomes_its_kind_of_error_and_the_node_goes_on(ground: Arc<Ground>) {
    let once = |key: &str| {
        let mut a = action(key);
        a.retry.max_attempts = 1;
        a
    };
    // The others have the time of any chunk: on a full machine a panic alone can take longer than this.
    let endless = Action { chunk_timeout_ms: 300, ..once("endless") };
    let node = Node::start(
        &ground,
        vec![
            (endless, closure(|_| async { std::future::pending().await })),
            (once("panics"), closure(|_| async { panic!("a handler's own fault") })),
            (once("permanent"), closure(|_| async { Err(HandlerError::permanent("no-column", "No column.")) })),
            (
                once("too-large"),
                closure(|_| async {
                    Ok(taskbell::core::chunk::Outcome::Done {
                        result: Some(json!("x".repeat(2 << 20))),
                        told: taskbell::core::chunk::Told::default(),
                    })
                }),
            ),
            (action("count"), counting()),
        ],
    )
    .await;
    let mut wrong = Vec::new();
    for (key, kind) in [
        ("endless", ErrorKind::Timeout),
        ("panics", ErrorKind::Handler),
        ("permanent", ErrorKind::Permanent),
        ("too-large", ErrorKind::BadOutcome),
    ] {
        let mut submit = click(key, json!({}));
        submit.max_attempts = 1;
        wrong.push((node.click(submit).await, kind));
    }
    let good = node.click(click("count", json!({"to": 100}))).await;
    node.until(good, State::Succeeded).await;
    for (id, kind) in wrong {
        assert_eq!(node.until(id, State::Failed).await.error.unwrap().kind, kind);
    }
}

async fn a_cancel_stops_at_the_next_checkpoint_and_a_resume_goes_on_from_it(ground: Arc<Ground>) {
    let (reached, open) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let handler = {
        let (reached, open) = (reached.clone(), open.clone());
        closure(move |call| {
            let (reached, open) = (reached.clone(), open.clone());
            async move {
                if call.chunk == 3 {
                    reached.notify_one();
                    open.notified().await;
                }
                answer(json!({"hasMore": call.chunk < 6, "checkpoint": call.chunk, "current": call.chunk, "total": 6}))
            }
        })
    };
    let node = Node::start(&ground, one(action("steps"), handler)).await;
    let id = node.click(click("steps", json!({}))).await;
    reached.notified().await;
    let asked = node.commands.ask(&alice(), id, Ask::Cancel, Some("enough".into())).await.unwrap();
    assert!(matches!(asked, Asked::Done { task, changed: true } if task.state == State::Cancelling));
    let again = node.commands.ask(&alice(), id, Ask::Cancel, None).await.unwrap();
    assert!(matches!(again, Asked::Done { changed: false, .. }), "asking again has no effect");
    open.notify_one();
    let task = node.until(id, State::Cancelled).await;
    assert_eq!((task.chunks, task.progress.current), (3, 3), "the chunk under way was committed");
    node.commands.ask(&alice(), id, Ask::Resume, None).await.unwrap();
    assert_eq!(node.until(id, State::Succeeded).await.chunks, 6);
}

/// Proves: G2.
async fn a_forced_cancel_ends_at_once_and_the_late_chunk_changes_nothing(ground: Arc<Ground>) {
    let (reached, open) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let handler = {
        let (reached, open) = (reached.clone(), open.clone());
        closure(move |_| {
            let (reached, open) = (reached.clone(), open.clone());
            async move {
                reached.notify_one();
                open.notified().await;
                answer(json!({"hasMore": false, "current": 1}))
            }
        })
    };
    let node = Node::start(&ground, one(action("slow"), handler)).await;
    let id = node.click(click("slow", json!({}))).await;
    reached.notified().await;
    node.commands.ask(&operator(), id, Ask::ForceCancel, None).await.unwrap();
    let before = node.task(id).await;
    assert_eq!(before.state, State::Cancelled);
    open.notify_one();
    eventually("the place is free", SOON, async || (node.engine.running_count() == 0).then_some(())).await;
    assert_eq!(node.task(id).await, before);
}

/// Proves: G10.
async fn a_drain_hands_chunks_back_without_using_an_attempt_and_the_next_node_goes_on(ground: Arc<Ground>) {
    let reached = Arc::new(Notify::new());
    let stuck = stuck_in_the_second(reached.clone());
    let mut settings = short_settings();
    settings.drain_grace_ms = 100;
    let mut slow = action("steps");
    slow.chunk_timeout_ms = 60_000;
    let node = Node::start_with(&ground, one(slow, stuck), settings).await;
    let id = node.click(click("steps", json!({}))).await;
    reached.notified().await;
    let store = node.store.clone();
    node.engine.drain().await;
    let task = store.tasks(&taskbell::store::Reach::default(), &[id]).await.unwrap().remove(0);
    assert_eq!((task.state, task.lease_until, task.attempts, task.reclaims), (State::Running, None, 0, 0));
    drop(store);
    let ends = closure(|call| async move { answer(json!({"hasMore": call.chunk < 3, "current": call.chunk})) });
    let node = Node::start(&ground, one(action("steps"), ends)).await;
    let task = node.until(id, State::Succeeded).await;
    assert_eq!((task.chunks, task.takeovers, task.fencing_token.0), (3, 0, 2));
}

/// Proves: G3.
async fn effects_happen_with_the_checkpoint_and_a_refused_one_undoes_its_chunk_alone(ground: Arc<Ground>) {
    let tries = Arc::new(AtomicI64::new(0));
    let handler = {
        let tries = tries.clone();
        closure(move |call| {
            let tries = tries.clone();
            async move {
                // The second chunk's first try writes the row of the first once more, which the key refuses.
                let row = if call.chunk == 2 && tries.fetch_add(1, Ordering::SeqCst) == 0 { 1 } else { call.chunk };
                call.execute("INSERT INTO ledger (item) VALUES ($1)", vec![SqlValue::Int(row)]);
                answer(json!({"hasMore": call.chunk < 3, "checkpoint": call.chunk, "current": call.chunk}))
            }
        })
    };
    let node = Node::start(&ground, one(action("effects"), handler)).await;
    let table = Effect { sql: "CREATE TABLE ledger (item INTEGER PRIMARY KEY)", rows: vec![Vec::new()] };
    node.store.execute(vec![table]).await.unwrap();
    let id = node.click(click("effects", json!({}))).await;
    let task = node.until(id, State::Succeeded).await;
    assert_eq!((task.chunks, task.failures), (3, 1));
    let rows = node.store.query("SELECT item FROM ledger ORDER BY item", Vec::new()).await.unwrap();
    assert_eq!(rows, [1, 2, 3].map(|n| vec![SqlValue::Int(n)]));
}

/// Proves: G1.
#[tokio::test]
async fn after_a_crash_the_next_start_takes_every_lease_and_goes_on_at_once() {
    let ground = Ground::sqlite().await;
    let reached = Arc::new(Notify::new());
    let stuck = stuck_in_the_second(reached.clone());
    let mut settings = short_settings();
    // Leases that outlive the test: only the sweep at the start can free them.
    (settings.lease_ms, settings.heartbeat_ms) = (600_000, 200_000);
    let node = Node::start_with(&ground, one(action("steps"), stuck), settings.clone()).await;
    let id = node.click(click("steps", json!({}))).await;
    reached.notified().await;
    drop(node);
    let ends = closure(|call| async move { answer(json!({"hasMore": call.chunk < 3, "current": call.chunk})) });
    let node = Node::start_with(&ground, one(action("steps"), ends), settings).await;
    let task = tokio::time::timeout(Duration::from_secs(30), node.until(id, State::Succeeded)).await.unwrap();
    assert_eq!((task.chunks, task.takeovers, task.attempts), (3, 1, 0));
}
