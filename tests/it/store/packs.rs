//! A pack's own database: every question on both databases with the same answers, and the marks that let a chunk happen once.

use crate::support::ground::Ground;
use crate::support::on_each_database;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use taskbell::core::pack::{Column, ColumnKind, Table};
use taskbell::core::tables::{Found, plain};
use taskbell::store::StoreError;
use taskbell::store::pack::{self, Marked, PackDatabase, PackWork};

const TIME: Duration = Duration::from_secs(30);

fn tables() -> Vec<Table> {
    let column = |name: &str, kind| Column { name: name.into(), kind };
    vec![Table {
        name: "Order \"rows\"".into(),
        key: "Id".into(),
        columns: vec![
            column("Id", ColumnKind::Text),
            column("Name", ColumnKind::Text),
            column("No", ColumnKind::Integer),
            column("Price", ColumnKind::Number),
            column("Open", ColumnKind::Boolean),
        ],
        unique: vec![vec!["Name".into()]],
    }]
}

fn open(ground: &Ground) -> Box<dyn PackDatabase> {
    match ground.database() {
        None => pack::sqlite(&ground.path().join("shop/shop.db")).unwrap(),
        Some(database) => pack::postgres(&database.url()).unwrap(),
    }
}

async fn prepared(ground: &Ground) -> Box<dyn PackDatabase> {
    let database = open(ground);
    database.prepare(&tables()).await.unwrap();
    database
}

/// Asks in the words of `cx.tables`.
async fn ask(work: &mut Box<dyn PackWork>, method: &str, argument: Value) -> Result<Value, StoreError> {
    let tables = tables();
    let ask = plain::read(&tables, method, &tables[0].name, &argument, "made").unwrap();
    work.ask(&ask).await.map(shown)
}

async fn look(database: &dyn PackDatabase, method: &str, argument: Value) -> Value {
    let tables = tables();
    shown(database.look(&plain::read(&tables, method, &tables[0].name, &argument, "made").unwrap()).await.unwrap())
}

fn shown(found: Found) -> Value {
    match found {
        Found::Rows(rows) => json!(rows),
        Found::Count(count) => json!(count),
    }
}

async fn commit(work: Box<dyn PackWork>, chunk: i64, outcome: &str) -> bool {
    work.commit(&Marked { task: "t1", chunk, token: 3, outcome }).await.unwrap()
}

/// A row for each number, in one committed chunk.
async fn filled(database: &dyn PackDatabase, numbers: std::ops::Range<i64>) {
    let mut work = database.begin(TIME).await.unwrap();
    for n in numbers {
        let price = if n % 2 == 0 { json!(n as f64 + 0.5) } else { json!(null) };
        let row =
            json!({"Id": format!("r{n}"), "Name": format!("name {n}"), "No": n, "Price": price, "Open": n % 3 == 0});
        ask(&mut work, "insert", row).await.unwrap();
    }
    assert!(commit(work, 1, "{}").await);
}

on_each_database! {
    a_missing_table_is_made_and_one_that_exists_is_never_changed
    rows_come_back_as_they_were_written_and_in_one_order
    a_refused_row_leaves_the_transaction_as_it_was
    what_a_chunk_changes_is_seen_by_itself_and_by_others_after_its_commit
    a_chunk_is_marked_once_and_the_slower_of_two_changes_nothing
    only_the_newest_chunk_of_a_task_keeps_its_mark
}

async fn a_missing_table_is_made_and_one_that_exists_is_never_changed(ground: Arc<Ground>) {
    let (database, other) = (open(&ground), open(&ground));
    let tables = tables();
    let (one, two) = tokio::join!(database.prepare(&tables), other.prepare(&tables));
    assert_eq!([one.unwrap(), two.unwrap()].concat(), [tables[0].name.clone()], "two nodes at once make it once");
    filled(database.as_ref(), 0..2).await;
    assert_eq!(open(&ground).prepare(&tables).await.unwrap(), [""; 0]);
    let mut more = tables.clone();
    more[0].columns.push(Column { name: "Later".into(), kind: ColumnKind::Text });
    let fault = open(&ground).prepare(&more).await.unwrap_err().to_string();
    assert!(fault.contains("Later"), "{fault}");
    assert_eq!(look(database.as_ref(), "count", json!({})).await, 2);
}

async fn rows_come_back_as_they_were_written_and_in_one_order(ground: Arc<Ground>) {
    let database = prepared(&ground).await;
    filled(database.as_ref(), 0..6).await;
    let find = |argument: Value| look(database.as_ref(), "find", argument);
    let ids = |rows: Value| {
        rows.as_array().unwrap().iter().map(|row| row["Id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        find(json!({"where": {"Id": "r0"}})).await,
        json!([{"Id": "r0", "Name": "name 0", "No": 0, "Price": 0.5, "Open": true}])
    );
    for (argument, expected) in [
        (json!({"where": {"No": {"gt": 1, "lte": 4}}, "orderBy": "-No"}), &["r4", "r3", "r2"][..]),
        (json!({"where": {"No": {"notIn": [0, 1, 2]}}, "limit": 2}), &["r3", "r4"]),
        (json!({"where": {"Price": null}}), &["r1", "r3", "r5"]),
        (json!({"where": {"Price": {"gte": 2.5}, "Open": false}}), &["r2", "r4"]),
        (json!({"where": {"Name": ["name 5", "name 0"]}}), &["r0", "r5"]),
        (json!({"where": {"Name": {"startsWith": "NAME"}}, "offset": 4, "limit": 9}), &["r4", "r5"]),
        (json!({"where": {"Name": {"contains": "%"}}}), &[]),
        (json!({"where": [{"No": 1}, {"Open": true, "No": {"gt": 0}}]}), &["r1", "r3"]),
        (json!({"where": {"Open": [true]}}), &["r0", "r3"]),
        (json!({"where": {"Id": []}}), &[]),
        (json!({"orderBy": ["Price", "-No"]}), &["r5", "r3", "r1", "r0", "r2", "r4"]),
        (json!({"orderBy": ["-Price"]}), &["r4", "r2", "r0", "r1", "r3", "r5"]),
    ] {
        assert_eq!(ids(find(argument.clone()).await), expected, "{argument}");
    }
    let some = find(json!({"select": ["No", "Id"], "where": {"No": 3}})).await;
    assert_eq!(some.to_string(), r#"[{"No":3,"Id":"r3"}]"#);
}

async fn a_refused_row_leaves_the_transaction_as_it_was(ground: Arc<Ground>) {
    let database = prepared(&ground).await;
    let mut work = database.begin(TIME).await.unwrap();
    assert_eq!(ask(&mut work, "insert", json!({"Name": "one"})).await.unwrap()[0]["Id"], "made");
    for twice in [json!({"Name": "two"}), json!({"Id": "other", "Name": "one"})] {
        let refused = ask(&mut work, "insert", twice).await.unwrap_err();
        assert!(
            matches!(&refused, StoreError::Limit(why) if !why.contains("'one'") && !why.contains("(one)")),
            "{refused}"
        );
    }
    let refused = ask(&mut work, "update", json!({"where": {"No": null}, "set": {"Id": null}})).await.unwrap_err();
    assert!(matches!(refused, StoreError::Limit(_)), "{refused}");
    assert_eq!(ask(&mut work, "insert", json!({"Id": "b", "Name": "two"})).await.unwrap()[0]["Name"], "two");
    assert!(commit(work, 1, "{}").await);
    assert_eq!(look(database.as_ref(), "count", json!({})).await, 2);
}

async fn what_a_chunk_changes_is_seen_by_itself_and_by_others_after_its_commit(ground: Arc<Ground>) {
    let database = prepared(&ground).await;
    filled(database.as_ref(), 0..3).await;
    let mut work = database.begin(TIME).await.unwrap();
    assert_eq!(ask(&mut work, "update", json!({"where": {"No": {"gte": 1}}, "set": {"Open": true}})).await.unwrap(), 2);
    assert_eq!(ask(&mut work, "update", json!({"where": {"No": 77}, "set": {"Open": true}})).await.unwrap(), 0);
    assert_eq!(ask(&mut work, "delete", json!({"where": {"Id": "r0"}})).await.unwrap(), 1);
    assert_eq!(ask(&mut work, "count", json!({})).await.unwrap(), 2);
    assert_eq!(look(database.as_ref(), "count", json!({})).await, 3);
    drop(work);
    let mut again = database.begin(TIME).await.unwrap();
    assert_eq!(
        ask(&mut again, "count", json!({"where": {"Open": true}})).await.unwrap(),
        1,
        "a dropped chunk is undone"
    );
    ask(&mut again, "delete", json!({"where": {"Id": "r0"}})).await.unwrap();
    assert!(commit(again, 2, "{}").await);
    assert_eq!(look(database.as_ref(), "count", json!({})).await, 2);
}

async fn a_chunk_is_marked_once_and_the_slower_of_two_changes_nothing(ground: Arc<Ground>) {
    let database = prepared(&ground).await;
    assert_eq!(database.mark("t1").await.unwrap(), None);
    filled(database.as_ref(), 0..1).await;
    let mut work = database.begin(TIME).await.unwrap();
    ask(&mut work, "insert", json!({"Id": "late", "Name": "late"})).await.unwrap();
    assert!(!commit(work, 1, r#"{"other":1}"#).await);
    assert_eq!(database.mark("t1").await.unwrap(), Some((1, "{}".into())));
    assert_eq!(look(database.as_ref(), "count", json!({"where": {"Id": "late"}})).await, 0);
}

async fn only_the_newest_chunk_of_a_task_keeps_its_mark(ground: Arc<Ground>) {
    let database = prepared(&ground).await;
    filled(database.as_ref(), 0..1).await;
    let mut work = database.begin(TIME).await.unwrap();
    ask(&mut work, "insert", json!({"Id": "x", "Name": "x"})).await.unwrap();
    assert!(commit(work, 5, "[5]").await);
    assert_eq!(database.mark("t1").await.unwrap(), Some((5, "[5]".into())));
    let work = database.begin(TIME).await.unwrap();
    assert!(!commit(work, 4, "[4]").await, "an earlier chunk comes too late");
}
