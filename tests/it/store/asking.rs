//! What people ask of tasks: cancel, pause, resume, delete, in every situation a task can be in; and that a task of
//! somebody else does not exist.

use super::fixture::*;
use super::words::*;
use serde_json::json;
use taskbell::core::action::{Action, CancelRight, HandlerRef, Localized};
use taskbell::core::budget::Budgets;
use taskbell::core::ids::TaskId;
use taskbell::core::lifecycle::{Ask, Ended};
use taskbell::core::principal::Role;
use taskbell::core::submit::Submit;
use taskbell::core::task::State;
use taskbell::core::view::{Documents, can};
use taskbell::store::{Asked, FileRow};

store_suite! {
    what_can_be_asked_is_what_the_buttons_show_in_every_situation
    a_cancel_between_chunks_is_at_once_and_during_one_is_asked
    a_committed_end_wins_against_a_cancel
    a_cancel_whose_node_died_ends_with_the_lease
    a_cancel_that_no_chunk_answers_is_forced_after_its_grace
    a_forced_cancel_is_at_once_and_the_old_writer_is_not_heard_any_more
    a_pause_stops_at_the_checkpoint_and_a_resume_goes_on_from_it
    a_resume_takes_a_pause_back_that_has_not_happened_yet
    a_resume_gives_all_budgets_back
    asking_again_changes_nothing
    who_asked_and_why_is_in_the_timeline
    a_task_of_somebody_else_does_not_exist
    deleting_an_ended_task_takes_all_that_is_its_own
}

/// Situations: a task, and what led to it.
const SITUATIONS: [&str; 15] = [
    "queued",
    "scheduled",
    "blocked",
    "running",
    "gap",
    "delay",
    "waiting for its slot",
    "retry",
    "pausing",
    "paused",
    "cancelling",
    "succeeded",
    "failed",
    "cancelled",
    "superseded",
];

async fn brought(f: &Fixture, situation: &str) -> TaskId {
    let later = Submit { run_at: Some(f.now().plus(60_000)), ..click() };
    let id = match situation {
        "scheduled" => f.new_task(later).await,
        "blocked" => {
            let key = TaskId::new().to_string();
            f.new_task(under(&key, 1)).await;
            f.new_task(under(&key, 1)).await
        }
        "waiting for its slot" => {
            let key = TaskId::new().to_string();
            let id = f.new_task(Submit { slot: chunk_slot(&key, 1), ..click() }).await;
            f.end(&f.claim_task(id).await, more(1)).await;
            let other = f.new_task(Submit { slot: chunk_slot(&key, 1), priority: 100, ..click() }).await;
            f.claim_task(other).await;
            f.claim(1).await;
            assert!(f.get(id).await.gated);
            return id;
        }
        "superseded" => {
            let key = TaskId::new().to_string();
            let id = f.new_task(keyed(&key)).await;
            f.must(id, Ask::Cancel).await;
            f.new_task(keyed(&key)).await;
            return id;
        }
        _ => f.new_task(click()).await,
    };
    if matches!(situation, "queued" | "scheduled" | "blocked") {
        return id;
    }
    let claimed = f.claim_task(id).await;
    match situation {
        "gap" => drop(f.end(&claimed, more(1)).await),
        "delay" => drop(f.end(&claimed, more_after(5_000)).await),
        "retry" => drop(f.end(&claimed, throws()).await),
        "pausing" => drop(f.must(id, Ask::Pause).await),
        "paused" => {
            f.must(id, Ask::Pause).await;
            f.end(&claimed, more(1)).await;
        }
        "cancelling" => drop(f.must(id, Ask::Cancel).await),
        "succeeded" => drop(f.end(&claimed, done()).await),
        "failed" => drop(f.end(&claimed, gives_up()).await),
        "cancelled" => drop(f.must(id, Ask::ForceCancel).await),
        _ => {}
    }
    id
}

fn import() -> Action {
    Action {
        key: "import".into(),
        title: Localized::plain("Import"),
        group: Localized::default(),
        description: Localized::default(),
        handler: HandlerRef::Native("import".into()),
        pack: None,
        params: json!({}),
        record: None,
        roles: vec![Role::User],
        idempotency: None,
        concurrency: None,
        retry: RETRY,
        chunk_timeout_ms: 30_000,
        timeout_ms: None,
        budgets: Budgets::default(),
        undo_window_ms: 0,
        cancel: CancelRight::Owner,
    }
}

/// Row: F5.
async fn what_can_be_asked_is_what_the_buttons_show_in_every_situation(f: &Fixture) {
    let action = import();
    for situation in SITUATIONS {
        for (word, ask) in [("cancel", Ask::Cancel), ("pause", Ask::Pause), ("resume", Ask::Resume)] {
            let id = brought(f, situation).await;
            let before = f.get(id).await;
            let shown = can(&before, &bob(), Some(&action)).contains(&word);
            let changed = match f.ask_as(&bob(), id, ask).await {
                Asked::Done { changed, .. } => changed,
                Asked::Refused(_) => false,
                Asked::Superseded if situation == "superseded" => false,
                other => panic!("{situation}, {word}: {other:?}"),
            };
            assert_eq!(changed, shown, "{situation}: {word} is shown {shown}");
            assert_eq!(f.get(id).await == before, !changed, "{situation}: {word}");
        }
        let id = brought(f, situation).await;
        let shown = can(&f.get(id).await, &bob(), Some(&action)).contains(&"delete");
        let deleted = f.heard(f.store.delete(&bob(), vec![id]).await.unwrap());
        assert_eq!(deleted, [Some(shown)], "{situation}: delete is shown {shown}");
        let id = brought(f, situation).await;
        let forced = f.ask(id, Ask::ForceCancel).await;
        let state = f.state(id).await;
        match situation {
            "succeeded" | "failed" => assert!(matches!(forced, Asked::Refused(_)), "{situation}"),
            _ => assert_eq!(state, State::Cancelled, "{situation}"),
        }
    }
}

async fn a_cancel_between_chunks_is_at_once_and_during_one_is_asked(f: &Fixture) {
    for situation in ["queued", "blocked", "gap", "delay", "retry", "paused"] {
        let id = brought(f, situation).await;
        assert_eq!(f.must(id, Ask::Cancel).await.state, State::Cancelled, "{situation}");
    }
    let id = f.new_task(click()).await;
    let claimed = f.claim_task(id).await;
    let asked = f.must(id, Ask::Cancel).await;
    assert_eq!((asked.state, asked.under_way()), (State::Cancelling, true));
    let stop = asked.stop.unwrap();
    assert_eq!((stop.actor.as_str(), stop.reason.as_deref(), stop.at), ("olga", Some("because"), f.now()));
    assert!(f.claim(5).await.iter().all(|c| c.task.id != id));
    f.report(&claimed, json!({"current": 3})).await;
    f.end(&claimed, more(5)).await;
    let task = f.get(id).await;
    assert_eq!((task.state, task.progress.current, task.chunks), (State::Cancelled, 5, 1));
    assert_eq!(f.store.documents(id).await.unwrap().checkpoint, Some(json!({"n": 5})), "committed work stays");
}

/// Proves: G15.
async fn a_committed_end_wins_against_a_cancel(f: &Fixture) {
    let id = f.new_task(click()).await;
    let claimed = f.claim_one().await;
    f.must(id, Ask::Cancel).await;
    assert_eq!(f.end(&claimed, done()).await.ended, Ended::Applied { continues: false });
    assert_eq!(f.state(id).await, State::Succeeded);
    for outcome in [throws(), gives_up()] {
        let id = f.new_task(click()).await;
        let claimed = f.claim_one().await;
        f.must(id, Ask::Cancel).await;
        f.end(&claimed, outcome).await;
        assert_eq!(f.state(id).await, State::Cancelled);
    }
}

/// Row: F1.
async fn a_cancel_whose_node_died_ends_with_the_lease(f: &Fixture) {
    let id = f.new_task(click()).await;
    f.claim_one().await;
    f.must(id, Ask::Cancel).await;
    f.lose_leases().await;
    assert_eq!(f.state(id).await, State::Cancelled);
}

async fn a_cancel_that_no_chunk_answers_is_forced_after_its_grace(f: &Fixture) {
    let id = f.new_task(click()).await;
    let claimed = f.claim_one().await;
    f.must(id, Ask::Cancel).await;
    f.pass(GRACE_MS - 1);
    f.renew("n1", &[&claimed]).await;
    assert_eq!((f.sweep().await, f.state(id).await), (0, State::Cancelling));
    f.pass(1);
    assert_eq!((f.sweep().await, f.state(id).await), (1, State::Cancelled));
    assert_eq!(f.reasons(id).await.last().unwrap(), "forced");
    assert_eq!(f.end(&claimed, done()).await.ended, Ended::Stale);
}

/// Row: F3.
async fn a_forced_cancel_is_at_once_and_the_old_writer_is_not_heard_any_more(f: &Fixture) {
    for first in [None, Some(Ask::Cancel), Some(Ask::Pause)] {
        let id = f.new_task(click()).await;
        let claimed = f.claim_one().await;
        if let Some(first) = first {
            f.must(id, first).await;
        }
        assert_eq!(f.must(id, Ask::ForceCancel).await.state, State::Cancelled);
        let row = f.get(id).await;
        for outcome in [done(), throws(), gives_up(), more(3)] {
            assert_eq!(f.end(&claimed, outcome).await.ended, Ended::Stale);
        }
        assert_eq!(f.get(id).await, row);
    }
}

async fn a_pause_stops_at_the_checkpoint_and_a_resume_goes_on_from_it(f: &Fixture) {
    let id = f.new_task(click()).await;
    let claimed = f.claim_one().await;
    f.must(id, Ask::Pause).await;
    f.end(&claimed, more(9)).await;
    assert_eq!(f.state(id).await, State::Paused);
    f.pass(86_400_000);
    assert_eq!((f.claim(5).await.len(), f.sweep().await), (0, 0), "until somebody resumes it");
    f.must(id, Ask::Resume).await;
    let claimed = f.claim_one().await;
    assert_eq!((claimed.documents.checkpoint.clone(), claimed.task.chunks), (Some(json!({"n": 9})), 1));
    for (ends, state) in [(throws(), State::Paused), (done(), State::Succeeded), (gives_up(), State::Failed)] {
        let id = f.new_task(click()).await;
        let claimed = f.claim_task(id).await;
        f.must(id, Ask::Pause).await;
        f.end(&claimed, ends).await;
        assert_eq!(f.state(id).await, state);
    }
    let drained = f.new_task(click()).await;
    let claimed = f.claim_one().await;
    f.must(drained, Ask::Pause).await;
    f.commit(handed_back(&claimed)).await;
    assert_eq!(f.state(drained).await, State::Paused);
}

async fn a_resume_takes_a_pause_back_that_has_not_happened_yet(f: &Fixture) {
    let id = f.new_task(click()).await;
    let claimed = f.claim_one().await;
    f.must(id, Ask::Pause).await;
    let resumed = f.must(id, Ask::Resume).await;
    assert_eq!(
        (resumed.state, resumed.fencing_token, resumed.stop),
        (State::Running, claimed.task.fencing_token, None)
    );
    assert_eq!(f.renew("n1", &[&claimed]).await, [taskbell::store::Renewed::Ok]);
    f.must(id, Ask::Pause).await;
    f.must(id, Ask::Cancel).await;
    assert!(matches!(f.ask(id, Ask::Resume).await, Asked::Refused(_)), "a cancel is not taken back");
}

async fn a_resume_gives_all_budgets_back(f: &Fixture) {
    let id = f.new_task(click()).await;
    f.end(&f.claim_one().await, more(4)).await;
    f.claim_one().await;
    f.lose_leases().await;
    for _ in 0..3 {
        f.end(&f.claim_one().await, throws()).await;
        f.pass(600_000);
    }
    let failed = f.get(id).await;
    assert_eq!((failed.state, failed.attempts, failed.failures, failed.reclaims), (State::Failed, 3, 3, 1));
    let resumed = f.must(id, Ask::Resume).await;
    assert_eq!((resumed.state, resumed.attempts, resumed.failures, resumed.reclaims), (State::Queued, 0, 0, 0));
    assert_eq!((resumed.takeovers, resumed.finished_at, resumed.due_at), (1, None, f.now()));
    assert_eq!(f.claim_one().await.documents.checkpoint, Some(json!({"n": 4})));
}

/// Proves: G15.
async fn asking_again_changes_nothing(f: &Fixture) {
    for (situation, ask) in [
        ("queued", Ask::Resume),
        ("blocked", Ask::Resume),
        ("pausing", Ask::Pause),
        ("paused", Ask::Pause),
        ("cancelling", Ask::Cancel),
        ("cancelled", Ask::Cancel),
        ("cancelled", Ask::ForceCancel),
    ] {
        let id = brought(f, situation).await;
        let (row, head) = (f.get(id).await, f.store.head("acme", "bob").await.unwrap());
        assert!(matches!(f.ask(id, ask).await, Asked::Done { changed: false, .. }), "{situation} {ask:?}");
        assert_eq!((f.get(id).await, f.store.head("acme", "bob").await.unwrap()), (row, head));
    }
}

async fn who_asked_and_why_is_in_the_timeline(f: &Fixture) {
    for (situation, ask, reason) in [
        ("queued", Ask::Cancel, "cancel: because"),
        ("running", Ask::Cancel, "cancel: because"),
        ("queued", Ask::Pause, "pause: because"),
        ("running", Ask::ForceCancel, "forced: because"),
        ("paused", Ask::Resume, "resume"),
    ] {
        let id = brought(f, situation).await;
        f.must(id, ask).await;
        let last = f.store.events(id, 0, 1_000).await.unwrap().pop().unwrap();
        assert_eq!((last.reason.as_str(), last.actor.as_deref()), (reason, Some("olga")), "{situation}");
        assert_eq!(last.to, f.state(id).await);
    }
}

async fn a_task_of_somebody_else_does_not_exist(f: &Fixture) {
    let id = f.new_task(click()).await;
    f.end(&f.claim_one().await, gives_up()).await;
    let row = f.get(id).await;
    let strangers = [
        alice(),
        principal("globex", "bob", Role::User),
        principal("globex", "olga", Role::Admin),
        principal("ACME", "bob", Role::Admin),
    ];
    for stranger in strangers {
        for ask in [Ask::Cancel, Ask::ForceCancel, Ask::Pause, Ask::Resume] {
            assert_eq!(f.ask_as(&stranger, id, ask).await, Asked::NotFound);
        }
        assert_eq!(f.heard(f.store.delete(&stranger, vec![id]).await.unwrap()), [None]);
        assert!(f.store.tasks(&taskbell::store::Reach::of(&stranger), &[id]).await.unwrap().is_empty());
    }
    assert_eq!(f.ask(TaskId::new(), Ask::Cancel).await, Asked::NotFound);
    assert_eq!(f.get(id).await, row);
    let platform = principal("*", "root", Role::Platform);
    assert!(matches!(f.ask_as(&platform, id, Ask::Resume).await, Asked::Done { changed: true, .. }));
}

async fn deleting_an_ended_task_takes_all_that_is_its_own(f: &Fixture) {
    let id = f.new_task(Submit { params: json!({"n": 1}), ..keyed("k") }).await;
    let other = f.new_task(Submit { params: json!({"n": 2}), ..click() }).await;
    f.end(&f.claim_task(id).await, more(1)).await;
    f.end(&f.claim_task(id).await, done()).await;
    let file = |name: &str, task| FileRow {
        id: name.into(),
        tenant: "acme".into(),
        owner: "bob".into(),
        task: Some(task),
        name: name.into(),
        content_type: "text/csv".into(),
        size_bytes: 3,
        sha256: "00".into(),
        created_at: f.now(),
        expires_at: None,
    };
    f.store.put_file(file("its", id)).await.unwrap();
    f.store.put_file(file("other's", other)).await.unwrap();
    let upload = |name: &str| FileRow { task: None, expires_at: Some(f.now()), ..file(name, id) };
    f.store.put_file(upload("used")).await.unwrap();
    f.store.put_file(upload("unused")).await.unwrap();
    let used = ["used".to_owned(), "its".to_owned(), "none".to_owned()];
    f.store.keep_uploads("acme", &used, f.now().plus(60_000)).await.unwrap();
    f.store.keep_uploads("other", &["unused".to_owned()], f.now().plus(60_000)).await.unwrap();
    let head = f.store.head("acme", "bob").await.unwrap();
    let answers = f.heard(f.store.delete(&bob(), vec![id, other, TaskId::new(), id]).await.unwrap());
    assert_eq!(answers, [Some(true), Some(false), None, Some(true)]);
    assert!(f.store.head("acme", "bob").await.unwrap() > head);
    assert!(f.store.events(id, 0, 10).await.unwrap().is_empty());
    let empty = Documents { params: json!({}), checkpoint: None, result: None };
    assert_eq!(f.store.documents(id).await.unwrap(), empty);
    let gone: Vec<String> = f.store.expire_files(10).await.unwrap().into_iter().map(|f| f.id).collect();
    assert_eq!(gone, ["its", "unused"]);
    assert!(f.store.file("used").await.unwrap().is_some());
    assert_eq!(f.store.documents(other).await.unwrap().params, json!({"n": 2}));
    assert_eq!(f.heard(f.store.delete(&bob(), vec![id]).await.unwrap()), [None], "once");
    f.new_task(keyed("k")).await;
}
