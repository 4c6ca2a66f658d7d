//! What a newer version has written and this one does not understand, as while nodes are replaced one by one.

use super::fixture::*;
use super::nodes::node;
use super::reading::ids_of;
use super::words::*;
use std::collections::BTreeSet;
use taskbell::core::effect::{Effect, SqlValue};
use taskbell::core::ids::{Head, TaskId};
use taskbell::core::node::Standing;
use taskbell::core::task::State;
use taskbell::store::{ListParams, Reach};

database_suite! {
    a_row_of_a_newer_version_is_left_out_and_nothing_else_fails_or_changes_it
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
