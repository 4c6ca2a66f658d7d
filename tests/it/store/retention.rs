//! Retention: what has ended goes when its time is over, with all that is its own; nothing else does, and nobody who works
//! beside it loses anything.

use super::fixture::{Fixture, claim_params, store_suite};
use super::words::*;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use taskbell::core::family::OnFailure;
use taskbell::core::ids::TaskId;
use taskbell::core::lifecycle::{Ask, Ended};
use taskbell::core::retention::Keep;
use taskbell::core::submit::{KeyClaim, Submit, Submitted};
use taskbell::core::view::Documents;
use taskbell::store::{Aged, ChunkCommit, FileRow, RetainParams};

store_suite! {
    each_outcome_goes_after_its_own_time_and_what_has_not_ended_stays
    what_goes_takes_all_that_is_its_own
    a_success_stays_while_it_answers_for_its_key
    a_task_that_was_resumed_since_the_look_stays
    a_child_goes_with_its_parent_or_after_it
    a_walk_meets_each_task_once
    m22_retention_of_nothing_beside_finishing_loses_no_completion
}

const DAY_MS: i64 = 86_400_000;
const KEEP: Keep =
    Keep { succeeded_ms: 30 * DAY_MS, failed_ms: 90 * DAY_MS, cancelled_ms: 60 * DAY_MS, logs_ms: 30 * DAY_MS };
const NOTHING: Keep = Keep { succeeded_ms: 0, failed_ms: 0, cancelled_ms: 0, logs_ms: 0 };

/// Those of all tasks whose time is over, as a look finds them.
async fn over(f: &Fixture, keep: Keep) -> Vec<Aged> {
    let found = f.store.aged(None, 10_000).await.unwrap();
    found.into_iter().filter(|a| a.end.is_some_and(|end| keep.task_over(&end, a.key_ms, f.now()))).collect()
}

async fn retain(f: &Fixture, tasks: Vec<Aged>, keep: Keep) -> BTreeSet<TaskId> {
    f.heard(f.store.retain(RetainParams { tasks, keep }).await.unwrap()).into_iter().collect()
}

/// What one pass takes.
async fn taken(f: &Fixture, keep: Keep) -> BTreeSet<TaskId> {
    retain(f, over(f, keep).await, keep).await
}

async fn succeeded(f: &Fixture, item: Submit) -> TaskId {
    let id = f.new_task(item).await;
    f.end(&f.claim_task(id).await, done()).await;
    id
}

async fn each_outcome_goes_after_its_own_time_and_what_has_not_ended_stays(f: &Fixture) {
    let good = succeeded(f, click()).await;
    let failed = f.new_task(click()).await;
    f.end(&f.claim_task(failed).await, gives_up()).await;
    let cancelled = f.new_task(click()).await;
    f.must(cancelled, Ask::Cancel).await;
    let running = f.new_task(click()).await;
    f.claim_task(running).await;
    let paused = f.new_task(click()).await;
    f.must(paused, Ask::Pause).await;
    f.pass(30 * DAY_MS - 1);
    assert_eq!(taken(f, KEEP).await, BTreeSet::new());
    f.pass(1);
    assert_eq!(taken(f, KEEP).await, [good].into());
    f.pass(30 * DAY_MS);
    assert_eq!(taken(f, KEEP).await, [cancelled].into());
    f.pass(30 * DAY_MS);
    assert_eq!(taken(f, KEEP).await, [failed].into());
    f.pass(1_000 * DAY_MS);
    assert_eq!(taken(f, KEEP).await, BTreeSet::new());
    f.get(running).await;
    f.get(paused).await;
    // Nor does a verb that is told of them take what has not ended.
    let told = f.store.aged(None, 10).await.unwrap();
    assert_eq!(retain(f, told, NOTHING).await, BTreeSet::new());
}

async fn what_goes_takes_all_that_is_its_own(f: &Fixture) {
    let id = f.new_task(Submit { params: json!({"n": 1}), ..keyed("k") }).await;
    let other = f.new_task(Submit { params: json!({"n": 2}), ..click() }).await;
    f.end(&f.claim_task(id).await, more(1)).await;
    f.end(&f.claim_task(id).await, done()).await;
    let file = FileRow {
        id: "its".into(),
        tenant: "acme".into(),
        owner: "bob".into(),
        task: Some(id),
        name: "its".into(),
        content_type: "text/csv".into(),
        size_bytes: 3,
        sha256: "00".into(),
        created_at: f.now(),
        expires_at: None,
    };
    f.store.put_file(file.clone()).await.unwrap();
    f.store.put_file(FileRow { id: "other's".into(), task: Some(other), ..file }).await.unwrap();
    let head = f.store.head("acme", "bob").await.unwrap();
    f.pass(30 * DAY_MS);
    assert_eq!(taken(f, KEEP).await, [id].into());
    assert!(f.store.head("acme", "bob").await.unwrap() > head, "its owner is told");
    assert!(f.store.events(id, 0, 10).await.unwrap().is_empty());
    assert!(f.store.points(id).await.unwrap().is_empty());
    let empty = Documents { params: json!({}), checkpoint: None, result: None };
    assert_eq!(f.store.documents(id).await.unwrap(), empty);
    let gone: Vec<String> = f.store.expire_files(10).await.unwrap().into_iter().map(|f| f.id).collect();
    assert_eq!(gone, ["its"]);
    assert_eq!(f.store.documents(other).await.unwrap().params, json!({"n": 2}));
    f.new_task(keyed("k")).await;
}

async fn a_success_stays_while_it_answers_for_its_key(f: &Fixture) {
    let long = || Submit { keys: vec![KeyClaim { keep_ms: 40 * DAY_MS, ..key("k") }], ..click() };
    let id = succeeded(f, long()).await;
    f.pass(40 * DAY_MS - 1);
    assert_eq!(taken(f, KEEP).await, BTreeSet::new());
    assert!(matches!(f.click(long()).await, Submitted::Replayed { .. }), "it still answers");
    f.pass(1);
    assert_eq!(taken(f, KEEP).await, [id].into());
    f.new_task(long()).await;
}

async fn a_task_that_was_resumed_since_the_look_stays(f: &Fixture) {
    let failed = f.new_task(click()).await;
    f.end(&f.claim_task(failed).await, gives_up()).await;
    let neighbour = succeeded(f, click()).await;
    f.pass(90 * DAY_MS);
    let found = over(f, KEEP).await;
    assert_eq!(found.len(), 2);
    f.must(failed, Ask::Resume).await;
    f.end(&f.claim_task(failed).await, done()).await;
    assert_eq!(retain(f, found.clone(), KEEP).await, [neighbour].into(), "it ended anew, and counts from there");
    assert_eq!(retain(f, found, KEEP).await, BTreeSet::new(), "whoever comes second finds nothing");
    f.pass(30 * DAY_MS);
    assert_eq!(taken(f, KEEP).await, [failed].into());
}

async fn a_child_goes_with_its_parent_or_after_it(f: &Fixture) {
    let (parent, children) = f.family(OnFailure::Ignore, 2).await;
    for id in &children {
        f.run(*id, done()).await;
    }
    f.pass(30 * DAY_MS);
    assert_eq!(taken(f, KEEP).await, BTreeSet::new(), "their parent has not ended");
    f.run(parent, gives_up()).await;
    f.pass(30 * DAY_MS);
    assert_eq!(taken(f, KEEP).await, BTreeSet::new(), "their parent is kept for longer");
    f.pass(60 * DAY_MS);
    let family: BTreeSet<TaskId> = children.into_iter().chain([parent]).collect();
    assert_eq!(taken(f, KEEP).await, family);
}

async fn a_walk_meets_each_task_once(f: &Fixture) {
    let made: BTreeSet<TaskId> = f.submit((0..25).map(|_| click()).collect()).await.iter().map(id_of).collect();
    let (mut met, mut after) = (Vec::new(), None);
    loop {
        let found = f.store.aged(after, 10).await.unwrap();
        met.extend(found.iter().map(|aged| aged.id));
        match found.last() {
            Some(last) if found.len() == 10 => after = Some(last.id),
            _ => break,
        }
    }
    assert_eq!((met.len(), met.into_iter().collect()), (25, made));
}

fn id_of(submitted: &Submitted) -> TaskId {
    match submitted {
        Submitted::Created(task) => task.id,
        other => panic!("not a new task: {other:?}"),
    }
}

/// Retention of nothing takes each end as soon as it is committed, while others finish in batches.
async fn m22_retention_of_nothing_beside_finishing_loses_no_completion(f: &Fixture) {
    const TASKS: usize = 400;
    let mut made = BTreeSet::new();
    for _ in 0..4 {
        made.extend(f.submit((0..TASKS / 4).map(|_| click()).collect()).await.iter().map(id_of));
    }
    let limit = Instant::now() + Duration::from_secs(60);
    let ends = AtomicUsize::new(0);
    let finish = async |node: &str| {
        while ends.load(Ordering::SeqCst) < TASKS {
            assert!(Instant::now() < limit, "{ends:?} of {TASKS} have ended");
            let written = f.store.claim(claim_params(node, 20)).await.unwrap();
            let commits: Vec<ChunkCommit> = written.answer.iter().map(|c| ended(c, done())).collect();
            for committed in f.store.commit(commits).await.unwrap().answer {
                assert!(matches!(committed.ended, Ended::Applied { .. }), "{committed:?}");
                assert!(committed.task.is_some(), "its own end finds its row");
                ends.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    let sweep = async || {
        let mut gone = BTreeSet::new();
        while gone.len() < TASKS {
            assert!(Instant::now() < limit, "{} of {TASKS} are gone", gone.len());
            let mut tasks = f.store.aged(None, 500).await.unwrap();
            tasks.retain(|aged| aged.end.is_some());
            let answer = f.store.retain(RetainParams { tasks, keep: NOTHING }).await.unwrap().answer;
            for id in answer {
                assert!(gone.insert(id), "{id} went twice");
            }
            tokio::task::yield_now().await;
        }
        gone
    };
    let ((), (), gone) = tokio::join!(finish("n1"), finish("n2"), sweep());
    assert_eq!((ends.into_inner(), &gone), (TASKS, &made));
    assert!(f.store.aged(None, 10).await.unwrap().is_empty());
    // The ends were told past this fixture, which believes that these tasks are there.
    f.forget(&made);
}
