//! Transactions: a dropped one never was, effects happen in the commit of their chunk or not at all, and a database serves
//! many writers and outlives its processes.

use super::fixture::*;
use super::invariants::{all_tasks, assert_invariants};
use super::words::*;
use serde_json::json;
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use taskbell::core::chunk::{Outcome, Told};
use taskbell::core::effect::{Effect, SqlValue};
use taskbell::core::lifecycle::{Ask, Ended};
use taskbell::core::progress::Reported;
use taskbell::core::submit::Submit;
use taskbell::core::task::{State, limits};
use taskbell::store::migrate::Mode;
use taskbell::store::sqlite::{SqliteOptions, SqliteStore};
use taskbell::store::tx::{Document, DocumentKind};
use taskbell::store::{AskParams, ChunkCommit, Claimed, Report, Store, StoreError, SweepParams};
use tokio::task::JoinSet;

mod any_store {
    use super::*;

    store_suite! {
        a_transaction_that_is_dropped_never_was
    }
}

database_suite! {
    effects_happen_once_in_the_commit_of_their_chunk
    effects_of_a_chunk_that_failed_or_was_handed_back_do_not_happen
    a_refused_effect_undoes_its_own_chunk_and_no_other
    what_was_answered_is_there_for_the_next_process
    m4_eight_writers_in_two_processes_never_see_a_busy_database
    m22_deleting_while_others_finish_loses_no_completion_of_a_neighbour
}

async fn a_transaction_that_is_dropped_never_was(f: &Fixture) {
    let id = f.new_task(Submit { params: json!({"n": 1}), ..keyed("k") }).await;
    f.new_task(under("k", 1)).await;
    f.claim(2).await;
    let seen = || async {
        let (documents, events) = (f.store.documents(id).await.unwrap(), f.store.events(id, 0, 100).await.unwrap());
        (all_tasks(f.store.as_ref()).await, documents, events, f.store.center("acme", "bob").await.unwrap().head)
    };
    let before = seen().await;
    let mut tx = f.store.begin().await.unwrap();
    let task = tx.load(&[id]).await.unwrap().remove(0);
    tx.update(&[taskbell::core::task::Task { priority: 9, lease_until: None, ..task.clone() }]).await.unwrap();
    let new = taskbell::core::ids::TaskId::new();
    tx.insert(&[taskbell::core::task::Task { id: new, ..task }]).await.unwrap();
    let body = json!({"n": 2});
    tx.put_documents(&[Document { task: id, kind: DocumentKind::Params, body: body.clone() }]).await.unwrap();
    tx.put_documents(&[Document { task: id, kind: DocumentKind::Checkpoint, body }]).await.unwrap();
    tx.append_events(&[taskbell::core::task::TimelineEvent { seq: 9, ..before.2[0].clone() }]).await.unwrap();
    tx.bump_heads(&[("acme".into(), "bob".into()), ("acme".into(), "new".into())], true).await.unwrap();
    tx.remove(&[id]).await.unwrap();
    drop(tx);
    assert_eq!(seen().await, before);
    assert_eq!(f.store.head("acme", "new").await.unwrap().0, 0);
    assert!(
        matches!(f.click(keyed("k")).await, taskbell::core::submit::Submitted::Replayed(_)),
        "its key is still its own"
    );
}

/// Makes a business table of unique numbers.
async fn make_ledger(f: &Fixture) {
    let sql = "CREATE TABLE ledger (item INTEGER NOT NULL PRIMARY KEY, word TEXT)";
    f.store.execute(vec![Effect { sql, rows: vec![Vec::new()] }]).await.unwrap();
}

fn items(of: std::ops::Range<i64>) -> Vec<Effect> {
    let rows = of.map(|n| vec![SqlValue::Int(n), SqlValue::from("w")]).collect();
    vec![Effect { sql: "INSERT INTO ledger (item, word) VALUES ($1, $2)", rows }]
}

async fn ledger(f: &Fixture) -> Vec<i64> {
    let rows = f.store.query("SELECT item FROM ledger ORDER BY item", Vec::new()).await.unwrap();
    rows.into_iter().map(|row| if let SqlValue::Int(n) = row[0] { n } else { panic!("{row:?}") }).collect()
}

async fn effects_happen_once_in_the_commit_of_their_chunk(f: &Fixture) {
    make_ledger(f).await;
    f.new_task(click()).await;
    let claimed = f.claim_one().await;
    let first = ChunkCommit { effects: items(0..3), ..ended(&claimed, more(3)) };
    assert_eq!(f.commit(first.clone()).await.ended, Ended::Applied { continues: false });
    assert_eq!(f.commit(first.clone()).await.ended, Ended::Repeated);
    let claimed = f.claim_one().await;
    f.lose_leases().await;
    assert_eq!(f.commit(ChunkCommit { effects: items(3..5), ..ended(&claimed, more(5)) }).await.ended, Ended::Stale);
    assert_eq!(ledger(f).await, [0, 1, 2]);
}

async fn effects_of_a_chunk_that_failed_or_was_handed_back_do_not_happen(f: &Fixture) {
    make_ledger(f).await;
    for end in [|c: &_| ended(c, throws()), |c: &_| ended(c, gives_up()), |c: &_| handed_back(c)] {
        let id = f.new_task(click()).await;
        let claimed = f.claim_task(id).await;
        f.commit(ChunkCommit { effects: items(0..3), ..end(&claimed) }).await;
        assert_eq!(ledger(f).await, Vec::<i64>::new());
    }
}

async fn a_refused_effect_undoes_its_own_chunk_and_no_other(f: &Fixture) {
    make_ledger(f).await;
    f.submit((0..3).map(|_| click()).collect()).await;
    let claimed = f.claim(3).await;
    let before = f.get(claimed[1].task.id).await;
    let batch = vec![
        ChunkCommit { effects: items(0..2), ..ended(&claimed[0], done()) },
        ChunkCommit { effects: [items(10..12), items(1..2)].concat(), ..ended(&claimed[1], more(1)) },
        ChunkCommit { effects: items(5..6), ..ended(&claimed[2], done()) },
    ];
    let answers = f.heard(f.store.commit(batch).await.unwrap());
    assert!(answers[1].effect_fault.as_ref().is_some_and(|t| t.contains("ledger")), "{:?}", answers[1]);
    assert_eq!([answers[0].ended, answers[2].ended], [Ended::Applied { continues: false }; 2]);
    assert_eq!(ledger(f).await, [0, 1, 5], "all of the chunk's effects or none");
    assert_eq!(f.get(before.id).await, before);
    assert_eq!(f.store.documents(before.id).await.unwrap().checkpoint, None);
    assert_eq!(f.end(&claimed[1], throws()).await.ended, Ended::Applied { continues: false }, "it may still fail");
    // What an earlier item of the batch did to the same task stays.
    let id = f.new_task(click()).await;
    let claimed = f.claim_task(id).await;
    let keeps = ChunkCommit { effects: items(20..21), continue_for_ms: Some(LEASE_MS), ..ended(&claimed, more(1)) };
    let refused = ChunkCommit { chunk: 2, effects: items(0..1), ..ended(&claimed, more(2)) };
    let answers = f.heard(f.store.commit(vec![keeps, refused]).await.unwrap());
    assert_eq!((answers[0].ended, answers[1].ended), (Ended::Applied { continues: true }, Ended::Stale));
    let task = f.get(id).await;
    assert_eq!((task.chunks, task.progress.current, task.under_way()), (1, 1, true));
    assert_eq!(f.store.documents(id).await.unwrap().checkpoint, Some(json!({"n": 1})));
    assert_eq!(ledger(f).await, [0, 1, 5, 20]);
}

async fn what_was_answered_is_there_for_the_next_process(f: &Fixture) {
    let paused = f.new_task(click()).await;
    f.must(paused, Ask::Pause).await;
    let id = f.new_task(Submit { params: json!({"n": 1}), ..keyed("k") }).await;
    f.end(&f.claim_one().await, more(5)).await;
    f.claim_one().await;
    // The first is not closed, as after a kill.
    let next = f.opened_again().await;
    assert_eq!(next.epoch(), f.store.epoch());
    let before = all_tasks(f.store.as_ref()).await;
    assert_eq!(all_tasks(next.as_ref()).await, before);
    let at_start = SweepParams { limit: 500, all: true, cancel_grace_ms: GRACE_MS, retries: Default::default() };
    assert_eq!(f.heard(next.sweep(at_start).await.unwrap()), 1);
    let claimed = f.heard(next.claim(claim_params("n2", 10)).await.unwrap());
    assert_eq!(claimed.iter().map(|c| c.task.id).collect::<Vec<_>>(), [id], "what was paused stays paused");
    assert_eq!(claimed[0].documents.checkpoint, Some(json!({"n": 5})));
    assert_eq!(f.state(paused).await, State::Paused);
    assert_invariants(next.as_ref()).await;
}

#[tokio::test]
async fn the_clock_of_a_file_in_service_is_that_of_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::new(folder.path().join("taskbell.db"));
    let shift = options.clock_shift_ms.clone();
    let store = SqliteStore::open(options, Mode::Apply, &mut |_, _, _| {}).await.unwrap();
    let machine = || i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    for shift_ms in [0, 3_600_000] {
        shift.store(shift_ms, Ordering::Relaxed);
        let from = machine() + shift_ms;
        let (read, written) = (store.now().await.unwrap().0, store.begin().await.unwrap().now().await.unwrap().0);
        let to = machine() + shift_ms;
        // A second of slack: the machine's clock is slewed now and then, the store's goes on evenly.
        let near = from - 1_000..=to + 1_000;
        assert!(near.contains(&read) && near.contains(&written), "{from} {read} {written} {to}");
    }
}

fn long() -> bool {
    std::env::var("TASKBELL_TEST_LONG").is_ok_and(|v| v == "1")
}

/// What one writer does, over and over: every kind of writing transaction.
async fn write_all_kinds(store: Arc<dyn Store>, writer: usize) -> Result<usize, StoreError> {
    let (node, mut done_count) = (format!("n{writer}"), 0);
    let (from, mut round) = (Instant::now(), 0);
    while round < 40 || (long() && from.elapsed() < Duration::from_secs(60)) {
        round += 1;
        store.submit(vec![click(), keyed(&format!("{writer} {round}")), under("shared", 3)]).await?;
        let claimed = store.claim(claim_params(&node, 4)).await?.answer;
        let report = |c: &Claimed| Report {
            task: c.task.id,
            token: c.task.fencing_token,
            report: Reported::parse(&json!({"current": 1, "total": 9})).unwrap(),
        };
        store.report(claimed.iter().map(report).collect()).await?;
        if let Some(first) = claimed.first() {
            let caller = operator();
            store.ask(vec![AskParams { caller, task: first.task.id, ask: Ask::Cancel, reason: None }]).await?;
        }
        let ends = claimed.iter().map(|c| ended(c, done())).collect();
        let answers = store.commit(ends).await?.answer;
        done_count += answers.iter().filter(|c| matches!(c.ended, Ended::Applied { .. })).count();
        store
            .sweep(SweepParams { limit: 100, all: false, cancel_grace_ms: GRACE_MS, retries: Default::default() })
            .await?;
        mark_all_seen(store.as_ref()).await?;
    }
    Ok(done_count)
}

async fn m4_eight_writers_in_two_processes_never_see_a_busy_database(f: &Fixture) {
    // A second opening stands for another process: the command line beside the server of a file, another node of a server.
    let stores: [Arc<dyn Store>; 2] = [f.store.clone(), f.opened_again().await];
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        writers.spawn(write_all_kinds(stores[writer % 2].clone(), writer));
    }
    let done_counts: Vec<usize> = writers.join_all().await.into_iter().map(Result::unwrap).collect();
    let succeeded = all_tasks(f.store.as_ref()).await.iter().filter(|t| t.state == State::Succeeded).count();
    assert_eq!(done_counts.iter().sum::<usize>(), succeeded, "no completion is lost");
    assert_invariants(f.store.as_ref()).await;
}

async fn m22_deleting_while_others_finish_loses_no_completion_of_a_neighbour(f: &Fixture) {
    let finish = |store: Arc<dyn Store>| async move {
        let mut finished = 0;
        for _ in 0..60 {
            store.submit((0..5).map(|_| click()).collect()).await.unwrap();
            let claimed = store.claim(claim_params("n1", 5)).await.unwrap().answer;
            let force = |task| AskParams { caller: operator(), task, ask: Ask::ForceCancel, reason: None };
            store.ask(vec![force(claimed[0].task.id)]).await.unwrap();
            let answers = store.commit(claimed.iter().map(|c| ended(c, done())).collect()).await.unwrap().answer;
            assert_eq!(answers[0].ended, Ended::Stale);
            assert!(answers[1..].iter().all(|c| matches!(c.ended, Ended::Applied { .. })));
            finished += answers.len() - 1;
        }
        finished
    };
    let delete = |store: Arc<dyn Store>| async move {
        let mut deleted = 0;
        for _ in 0..150 {
            let ended = taskbell::store::ListParams {
                states: vec![State::Succeeded, State::Cancelled],
                limit: 20,
                ..Default::default()
            };
            let ids = store.list(ended).await.unwrap().items.iter().map(|t| t.id).collect();
            let answers = store.delete(&operator(), ids).await.unwrap().answer;
            deleted += answers.iter().filter(|a| **a == Some(true)).count();
        }
        deleted
    };
    let (finished, deleted) =
        tokio::join!(tokio::spawn(finish(f.store.clone())), tokio::spawn(delete(f.store.clone())));
    let left = all_tasks(f.store.as_ref()).await.len();
    assert_eq!(finished.unwrap() + 60, deleted.unwrap() + left);
    assert_invariants(f.store.as_ref()).await;
}

/// A task with documents of a size, which has rested once.
async fn with_documents(f: &Fixture, params_bytes: usize) {
    let params = json!({"text": "x".repeat(params_bytes)});
    f.new_task(Submit { params: params.clone(), ..click() }).await;
    let outcome = Outcome::More { checkpoint: Some(params), delay_ms: 1, told: Told::default() };
    f.end(&f.claim_one().await, outcome).await;
}

async fn ten_wakes(f: &Fixture) {
    for _ in 0..10 {
        f.pass(1);
        let claimed = f.claim_one().await;
        f.report(&claimed, json!({"message": "awake"})).await;
        f.end(&claimed, more_after(1)).await;
    }
}

/// Bytes that ten wakes of a task write, with params of a size.
async fn written_by_ten_wakes(params_bytes: usize) -> u64 {
    let f = Fixture::sqlite().await;
    with_documents(&f, params_bytes).await;
    let mut c = SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(f.path())).await.unwrap();
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut c).await.unwrap();
    ten_wakes(&f).await;
    std::fs::metadata(f.path().with_extension("db-wal")).unwrap().len()
}

#[tokio::test]
async fn a_wake_writes_little_however_large_the_documents_are() {
    let small = written_by_ten_wakes(10).await;
    let large = written_by_ten_wakes(limits::PARAMS_BYTES - 100).await;
    assert!(small > 0 && large < small + 10 * 10_000, "ten wakes wrote {large} bytes, with small documents {small}");
}

#[tokio::test]
async fn a_wake_leaves_the_rows_of_the_documents_on_a_server_where_they_are() {
    let f = Fixture::postgres().await;
    with_documents(&f, limits::PARAMS_BYTES - 100).await;
    let mut c = f.database().connect().await;
    let versions = "SELECT kind, CAST(xmin AS TEXT) FROM taskbell_documents ORDER BY kind";
    let before: Vec<(String, String)> = sqlx::query_as(versions).fetch_all(&mut c).await.unwrap();
    ten_wakes(&f).await;
    let after: Vec<(String, String)> = sqlx::query_as(versions).fetch_all(&mut c).await.unwrap();
    assert_eq!((before.len(), &after), (2, &before), "the versions of the rows");
}
