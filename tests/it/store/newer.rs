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
use taskbell::core::task::{State, Task};
use taskbell::store::{AskParams, Asked, ListParams, Reach, Report};

database_suite! {
    m20_a_task_in_a_state_of_a_newer_version_is_listed_as_unknown_and_claimed_by_nobody
    m20_whatever_part_of_a_row_is_not_understood_the_task_is_unknown_and_held_by_nobody
    m20_a_child_that_is_not_understood_is_told_to_its_parent
    m20_batches_and_sweeps_pass_a_row_of_a_newer_version_over_and_serve_the_others
    m20_the_key_of_a_task_of_a_newer_version_stays_taken
    m20_a_line_of_a_timeline_that_a_newer_version_wrote_is_told_as_far_as_it_is_understood
    a_node_of_a_newer_version_is_shown_with_what_this_version_understands
}

async fn m20_a_task_in_a_state_of_a_newer_version_is_listed_as_unknown_and_claimed_by_nobody(f: &Fixture) {
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(f.new_task(click()).await);
        f.pass(1);
    }
    let (strange, known) = (ids[2], [ids[4], ids[3], ids[1], ids[0]]);
    let newest_first: Vec<TaskId> = ids.iter().rev().copied().collect();
    let stored =
        async || f.store.query("SELECT state, revision, head FROM taskbell_tasks ORDER BY id", vec![]).await.unwrap();
    as_newer(f, "UPDATE taskbell_tasks SET state = 'zz_new' WHERE id = $1", named(strange)).await;
    let before = stored().await;
    let of =
        |states: &[State]| ListParams { states: states.to_vec(), limit: 2, descending: true, ..Default::default() };
    for limit in [1, 2, 3, 100] {
        let page = ListParams { limit, ..of(&[]) };
        assert_eq!(ids_of(f, page).await, newest_first, "pages of {limit}");
    }
    assert_eq!(ids_of(f, of(&[State::Queued])).await, known);
    assert_eq!(ids_of(f, of(&[State::Unknown])).await, [strange]);
    assert_eq!(ids_of(f, of(&[State::Queued, State::Unknown])).await, newest_first);
    assert_eq!(ids_of(f, of(&[State::Failed, State::Unknown])).await, [strange]);
    assert_eq!(ids_of(f, of(&[State::Failed])).await, []);
    let in_state = |tasks: &[Task], state| tasks.iter().filter(|t| t.state == state).map(|t| t.id).collect::<Vec<_>>();
    let center = f.store.center("acme", "bob").await.unwrap();
    assert_eq!(in_state(&center.tasks, State::Queued), known);
    assert_eq!((in_state(&center.tasks, State::Unknown), center.more), (vec![strange], false));
    let counts = [(State::Queued, 4), (State::Unknown, 1)].into();
    assert_eq!(center.counts.by_state, counts);
    assert_eq!(f.store.counts(&Reach::default(), true).await.unwrap().by_state, counts);
    let since = [(("acme".to_owned(), "bob".to_owned()), Head(0))];
    assert_eq!(in_state(&f.store.changed(&since, 100).await.unwrap(), State::Unknown), [strange]);
    assert_eq!(in_state(&f.store.tasks(&Reach::default(), &ids).await.unwrap(), State::Unknown), [strange]);
    assert_eq!(stored().await, before, "no look changes it");
    let claimed: BTreeSet<TaskId> = f.claim(10).await.into_iter().map(|c| c.task.id).collect();
    assert_eq!(claimed, known.into());
    as_newer(f, "UPDATE taskbell_tasks SET state = 'queued' WHERE id = $1", named(strange)).await;
    assert_eq!(f.claim_one().await.task.id, strange, "known again, it is claimed as any other");
}

/// A word of a newer version beside a state that is known; a field that is not known is passed over.
async fn m20_whatever_part_of_a_row_is_not_understood_the_task_is_unknown_and_held_by_nobody(f: &Fixture) {
    let id = f.new_task(click()).await;
    f.claim_one().await;
    let told = f.get(id).await.revision;
    let own = f.store.query("SELECT error, awaits, family FROM taskbell_tasks WHERE id = $1", named(id)).await.unwrap();
    let error =
        r#"{"kind":"KIND","code":"x","message":"m","retryable":false,"at":"2026-01-01T00:00:00.000Z","zz":{"a":1}}"#;
    for (column, strange, understood) in [
        ("error", error.replace("KIND", "zz-new"), error.replace("KIND", "handler")),
        ("awaits", "zz-new".to_owned(), "collect".to_owned()),
        ("family", "\"zz\"".to_owned(), r#"{"children":1,"zz":2}"#.to_owned()),
    ] {
        let set = async |value: SqlValue| {
            let sql: &'static str = match column {
                "error" => "UPDATE taskbell_tasks SET error = $1, revision = revision + 1 WHERE id = $2",
                "awaits" => "UPDATE taskbell_tasks SET awaits = $1, revision = revision + 1 WHERE id = $2",
                _ => "UPDATE taskbell_tasks SET family = $1, revision = revision + 1 WHERE id = $2",
            };
            as_newer(f, sql, vec![value, SqlValue::Text(id.to_string())]).await;
        };
        set(SqlValue::Text(strange)).await;
        let before = row_of(f, id).await;
        let shown = f.get(id).await;
        assert_eq!((shown.state, shown.under_way(), shown.lease_owner), (State::Unknown, false, None), "{column}");
        assert!(matches!(f.ask(id, Ask::Cancel).await, Asked::NotFound), "{column}");
        assert_eq!(row_of(f, id).await, before, "{column}");
        set(SqlValue::Text(understood)).await;
        assert_eq!(f.get(id).await.state, State::Running, "{column}");
        set(SqlValue::Null).await;
    }
    let back = vec![SqlValue::Int(told.0), SqlValue::Text(id.to_string())];
    as_newer(f, "UPDATE taskbell_tasks SET revision = $1 WHERE id = $2", back).await;
    assert_eq!(
        f.store.query("SELECT error, awaits, family FROM taskbell_tasks WHERE id = $1", named(id)).await.unwrap(),
        own
    );
}

async fn m20_a_child_that_is_not_understood_is_told_to_its_parent(f: &Fixture) {
    let parent = f.new_task(click()).await;
    let claimed = f.claim_one().await;
    f.end(&claimed, more(1)).await;
    let child = f.new_task(click()).await;
    let values = vec![SqlValue::Text(parent.to_string()), SqlValue::Text(child.to_string())];
    let sql = "UPDATE taskbell_tasks SET parent = $1, depth = 1, weight = 1, state = 'zz_new' WHERE id = $2";
    as_newer(f, sql, values).await;
    let children = f.store.children(parent, None, 10).await.unwrap();
    assert_eq!(children.iter().map(|t| (t.id, t.state)).collect::<Vec<_>>(), [(child, State::Unknown)]);
    let counts = f.store.family_counts(&[parent]).await.unwrap();
    assert_eq!(counts[&parent], [(State::Unknown, 1)].into());
    as_newer(
        f,
        "UPDATE taskbell_tasks SET parent = NULL, depth = NULL, weight = NULL, state = 'queued' WHERE id = $1",
        named(child),
    )
    .await;
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

async fn m20_a_line_of_a_timeline_that_a_newer_version_wrote_is_told_as_far_as_it_is_understood(f: &Fixture) {
    let id = f.new_task(click()).await;
    f.claim_one().await;
    assert_eq!(f.store.events(id, 0, 10).await.unwrap().len(), 2);
    as_newer(f, "UPDATE taskbell_events SET to_state = 'zz_new' WHERE task_id = $1 AND seq = 1", named(id)).await;
    as_newer(
        f,
        "UPDATE taskbell_events SET reason = 'zz-new', failure = '[7]' WHERE task_id = $1 AND seq = 2",
        named(id),
    )
    .await;
    let told = f.store.events(id, 0, 10).await.unwrap();
    let told: Vec<_> = told.iter().map(|e| (e.to, e.reason.as_str(), e.failure.is_some())).collect();
    assert_eq!(told, [(State::Unknown, "submitted", false), (State::Running, "zz-new", false)]);
    as_newer(f, "UPDATE taskbell_events SET to_state = 'queued' WHERE task_id = $1 AND seq = 1", named(id)).await;
}
