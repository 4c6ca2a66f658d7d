//! What a newer version has written and this one does not understand, as while nodes are replaced one by one.

use super::fixture::*;
use super::nodes::node;
use super::reading::ids_of;
use super::words::*;
use std::collections::BTreeSet;
use taskbell::core::effect::{Effect, SqlValue};
use taskbell::core::ids::{Head, TaskId};
use taskbell::core::lifecycle::Ask;
use taskbell::core::node::Standing;
use taskbell::core::submit::{SubmitRefusal, Submitted};
use taskbell::core::task::State;
use taskbell::store::{AskParams, Asked, ListParams, Reach, Report};

database_suite! {
    a_row_of_a_newer_version_is_left_out_and_nothing_else_fails_or_changes_it
    m20_batches_and_sweeps_pass_a_row_of_a_newer_version_over_and_serve_the_others
    m20_the_key_of_a_task_of_a_newer_version_stays_taken
    m20_a_timeline_is_told_without_the_lines_that_a_newer_version_wrote
    a_node_of_a_newer_version_is_shown_with_what_this_version_understands
}

async fn a_row_of_a_newer_version_is_left_out_and_nothing_else_fails_or_changes_it(f: &Fixture) {
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(f.new_task(click()).await);
        f.pass(1);
    }
    let (strange, known) = (ids[2], [ids[4], ids[3], ids[1], ids[0]]);
    let stored =
        async || f.store.query("SELECT state, revision, head FROM taskbell_tasks ORDER BY id", vec![]).await.unwrap();
    let becomes = async |state: &str, before: &str| {
        let values = [state.to_owned(), strange.to_string(), before.to_owned()].map(SqlValue::Text);
        let sql = "UPDATE taskbell_tasks SET state = $1 WHERE id = $2 AND state = $3";
        f.store.execute(vec![Effect { sql, rows: vec![values.to_vec()] }]).await.unwrap();
    };
    becomes("zz_new", "queued").await;
    let before = stored().await;
    for limit in [1, 2, 3, 100] {
        assert_eq!(
            ids_of(f, ListParams { limit, descending: true, ..ListParams::default() }).await,
            known,
            "pages of {limit}"
        );
    }
    let center = f.store.center("acme", "bob").await.unwrap();
    assert_eq!(center.tasks.iter().map(|t| t.id).collect::<Vec<_>>(), known);
    assert_eq!((center.counts.by_state, center.more), ([(State::Queued, 4)].into(), false));
    assert_eq!(f.store.counts(&Reach::default(), true).await.unwrap().by_state, [(State::Queued, 4)].into());
    let since = [(("acme".to_owned(), "bob".to_owned()), Head(0))];
    assert_eq!(f.store.changed(&since, 100).await.unwrap().len(), 4);
    assert_eq!(f.store.tasks(&Reach::default(), &ids).await.unwrap().len(), 4);
    assert_eq!(stored().await, before, "no look changes it");
    let claimed: BTreeSet<TaskId> = f.claim(10).await.into_iter().map(|c| c.task.id).collect();
    assert_eq!(claimed, known.into());
    becomes("queued", "zz_new").await;
}

async fn a_node_of_a_newer_version_is_shown_with_what_this_version_understands(f: &Fixture) {
    f.store.beat(&node("a")).await.unwrap();
    let set = async |sql| f.store.execute(vec![Effect { sql, rows: vec![vec![]] }]).await;
    set(r#"UPDATE taskbell_nodes SET role = 'zz_new', standing = '{"running":4,"zz":{"new":1}}'"#).await.unwrap();
    let list = f.store.nodes().await.unwrap();
    assert_eq!((list.nodes[0].role.as_str(), list.nodes[0].standing.running), ("zz_new", 4));
    set("UPDATE taskbell_nodes SET standing = '[\"zz\"]'").await.unwrap();
    assert_eq!(f.store.nodes().await.unwrap().nodes[0].standing, Standing::default());
    set("UPDATE taskbell_nodes SET actions = '{\"zz\":1}'").await.unwrap();
    assert!(f.store.nodes().await.unwrap().nodes.is_empty(), "left out, and nothing fails with it");
}

/// Runs a statement on the database as a newer version might.
async fn as_newer(f: &Fixture, sql: &'static str, values: Vec<SqlValue>) {
    f.store.execute(vec![Effect { sql, rows: vec![values] }]).await.unwrap();
}

fn named(id: TaskId) -> Vec<SqlValue> {
    vec![SqlValue::Text(id.to_string())]
}

/// The whole row of a task as a text.
async fn row_of(f: &Fixture, id: TaskId) -> Vec<Vec<SqlValue>> {
    let sql = "SELECT state, revision, head, updated_at, stop_at, lease_until, fencing_token, warnings, error, seen_at \
        FROM taskbell_tasks WHERE id = $1";
    f.store.query(sql, named(id)).await.unwrap()
}

async fn m20_batches_and_sweeps_pass_a_row_of_a_newer_version_over_and_serve_the_others(f: &Fixture) {
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(f.new_task(click()).await);
    }
    let claimed = f.claim(4).await;
    let strange = claimed[1].task.id;
    as_newer(f, "UPDATE taskbell_tasks SET state = 'zz_new' WHERE id = $1", named(strange)).await;
    let before = row_of(f, strange).await;
    // In one batch with it, the others are served.
    let reports =
        claimed.iter().map(|c| Report { task: c.task.id, token: c.task.fencing_token, report: counted(3).report });
    let told = f.heard(f.store.report(reports.collect()).await.unwrap());
    assert_eq!(told.iter().filter(|stored| **stored).count(), 3);
    let ask = |id: &TaskId| AskParams { caller: operator(), task: *id, ask: Ask::Pause, reason: None };
    let asked = f.heard(f.store.ask(ids.iter().map(ask).collect()).await.unwrap());
    assert_eq!(asked.iter().filter(|a| matches!(a, Asked::Done { .. })).count(), 3);
    assert_eq!(asked.iter().filter(|a| matches!(a, Asked::NotFound)).count(), 1);
    let ends = claimed[..3].iter().map(|c| ended(c, more(1)));
    let committed = f.heard(f.store.commit(ends.collect()).await.unwrap());
    assert_eq!(committed.iter().filter(|c| c.task.is_some()).count(), 2);
    let deleted = f.heard(f.store.delete(&operator(), ids.clone()).await.unwrap());
    assert_eq!(deleted.iter().filter(|d| d.is_none()).count(), 1, "{deleted:?}");
    // The lease of the last one is over, and so is that of the strange one.
    f.lose_leases().await;
    assert_eq!(f.state(claimed[3].task.id).await, State::Paused);
    f.sweep().await;
    assert_eq!(row_of(f, strange).await, before, "nobody changed it");
    as_newer(f, "UPDATE taskbell_tasks SET state = 'running' WHERE id = $1", named(strange)).await;
    f.sweep().await;
    assert_eq!(f.get(strange).await.takeovers, 1, "known again, it is swept as any other");
}

async fn m20_the_key_of_a_task_of_a_newer_version_stays_taken(f: &Fixture) {
    let strange = f.new_task(keyed("k")).await;
    as_newer(f, "UPDATE taskbell_tasks SET state = 'zz_new' WHERE id = $1", named(strange)).await;
    let answers = f.submit(vec![keyed("k"), keyed("other")]).await;
    assert!(matches!(answers[0], Submitted::Refused(SubmitRefusal::IdempotencyConflict)), "{:?}", answers[0]);
    assert!(matches!(answers[1], Submitted::Created(_)), "{:?}", answers[1]);
    as_newer(f, "UPDATE taskbell_tasks SET state = 'queued' WHERE id = $1", named(strange)).await;
    assert!(matches!(f.click(keyed("k")).await, Submitted::Replayed(task) if task.id == strange));
}

async fn m20_a_timeline_is_told_without_the_lines_that_a_newer_version_wrote(f: &Fixture) {
    let id = f.new_task(click()).await;
    f.claim_one().await;
    assert_eq!(f.store.events(id, 0, 10).await.unwrap().len(), 2);
    as_newer(f, "UPDATE taskbell_events SET to_state = 'zz_new' WHERE task_id = $1 AND seq = 1", named(id)).await;
    as_newer(f, "UPDATE taskbell_events SET reason = 'zz-new' WHERE task_id = $1 AND seq = 2", named(id)).await;
    let told = f.store.events(id, 0, 10).await.unwrap();
    assert_eq!(told.iter().map(|e| (e.seq, e.reason.as_str())).collect::<Vec<_>>(), [(2, "zz-new")]);
    as_newer(f, "UPDATE taskbell_events SET to_state = 'queued' WHERE task_id = $1 AND seq = 1", named(id)).await;
}
