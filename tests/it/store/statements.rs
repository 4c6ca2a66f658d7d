//! Every statement of the catalogue on a migrated database, and the plans of those whose cost must not grow with what they
//! do not touch: the named index is taken and nothing is sorted aside, on an empty database, beside 20,000 tasks that the
//! planner has counted, and beside more than a million in the states that were laid out (TASKBELL_TEST_LONG=1; else a tenth
//! of them). On PostgreSQL (`statements_postgres.rs`) a million of those have ended and a hundred thousand wait.

use super::fixture::Fixture;
use super::words::{by, click, done, keyed, principal, under};
use crate::support::crowd;
use sqlx::AssertSqlSafe;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{Connection as _, Executor as _, Row as _, SqlSafeStr as _, Statement as _};
use taskbell::core::principal::Role;
use taskbell::core::submit::Submit;
use taskbell::core::task::State;
use taskbell::store::sql::SQLITE;
use taskbell::store::{ListParams, Reach, SortBy};

async fn connect(f: &Fixture) -> SqliteConnection {
    SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(f.path())).await.unwrap()
}

async fn plan(connection: &mut SqliteConnection, text: &str) -> String {
    let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {text}"));
    let rows = sqlx::query(explain).fetch_all(connection).await.unwrap();
    rows.iter().map(|r| r.get::<String, _>(3)).collect::<Vec<_>>().join("\n")
}

/// How many tasks stand beside those that a statement is for.
#[derive(Clone, Copy)]
pub(super) struct Crowd {
    pub ended: usize,
    pub waiting: usize,
    /// Each state in numbers of its own, whatever the shares of the owners.
    pub apart: bool,
}

/// Tasks that wait for their key, in every crowd.
pub(super) const BLOCKED: usize = 1_000;

impl Crowd {
    /// Some twenty thousand.
    pub fn small() -> Self {
        Self { ended: 17_000, waiting: 2_000, apart: false }
    }

    /// As many, ten that have ended for each that waits.
    pub fn apart() -> Self {
        Self { ended: 17_000, waiting: 1_700, apart: true }
    }

    /// A database that has been in use for years and has a bad day; in the short form a tenth of it.
    pub fn large() -> Self {
        let long = std::env::var("TASKBELL_TEST_LONG").is_ok_and(|v| v == "1");
        let part = if long { 1 } else { 10 };
        Self { ended: 1_000_000 / part, waiting: 100_000 / part, apart: false }
    }
}

/// Tasks of many owners in several states, which can be copied.
pub(super) async fn lay_out(f: &Fixture) {
    for batch in 0..4 {
        let who = |n: i32| principal(&format!("t{}", n % 3), &format!("u{}", n % 40), Role::User);
        let items = (0..125).map(|n| match n % 5 {
            0 => Submit { slot: under("k", 2).slot, ..by(&who(n)) },
            1 => Submit { run_at: Some(f.now().plus(60_000)), ..by(&who(n)) },
            2 => Submit { timeout_ms: Some(1_000), ..by(&who(n)) },
            _ => by(&who(n)),
        });
        f.submit(items.collect()).await;
        f.submit(vec![keyed(&format!("k{batch}")), click()]).await;
        f.pass(60_000);
        // Most have ended, as in any database that has been in use for a while.
        for claimed in f.claim(120).await.iter().skip(batch) {
            f.end(claimed, done()).await;
        }
    }
}

/// Adds copies of what was laid out, and lets the planner count them.
async fn fill(f: &Fixture, connection: &mut SqliteConnection, crowd: Crowd) {
    lay_out(f).await;
    if crowd.apart {
        // Those that wait are of few owners, each of whom has many.
        crowd::in_sqlite(connection, crowd::ENDED, crowd.ended).await;
        crowd::in_sqlite(connection, crowd::WAITING, crowd.waiting).await;
        crowd::in_sqlite(connection, crowd::BLOCKED, BLOCKED).await;
    } else {
        // All states alike, each owner's share as it was laid out: most have ended.
        crowd::in_sqlite(connection, "t.id IS NOT NULL", crowd.ended + crowd.waiting).await;
    }
    let seen = "UPDATE taskbell_tasks SET seen_at = finished_at WHERE active = 0 AND substr(id, -1) <> '7'";
    sqlx::query(seen).execute(&mut *connection).await.unwrap();
    sqlx::query("ANALYZE").execute(&mut *connection).await.unwrap();
}

/// A statement of the catalogue, and what its plan must name.
const PLANS: &[(&str, &[&str])] = &[
    ("aged", &["SEARCH t USING PRIMARY KEY (id>?)", "taskbell_keys_task (task_id=?)"]),
    ("candidates", &["SEARCH t USING INDEX taskbell_tasks_claim (tenant=? AND rank<?)"]),
    ("center_active", &["SEARCH t USING INDEX taskbell_tasks_active (active=? AND tenant=? AND owner=?)"]),
    ("center_newest", &["SEARCH t USING INDEX taskbell_tasks_owner (tenant=? AND owner=?)"]),
    ("center_unseen", &["taskbell_tasks_unseen (active=? AND seen_at=? AND archived_at=? AND tenant=? AND owner=?)"]),
    ("documents", &["(task_id=? AND kind=?)"]),
    ("events", &["SEARCH e USING PRIMARY KEY (task_id=? AND seq>?)"]),
    ("expired_files", &["taskbell_files_expiry"]),
    ("head", &["PRIMARY KEY (tenant=? AND owner=?)"]),
    ("key_holders", &["SEARCH t USING INDEX taskbell_tasks_slot (tenant=? AND concurrency_key=?)"]),
    ("key_rows", &["SEARCH k USING PRIMARY KEY (tenant=? AND action=? AND kind=? AND idempotency_key=?)"]),
    ("key_use", &["COVERING INDEX taskbell_tasks_slot", "COVERING INDEX taskbell_tasks_gate"]),
    ("key_waiters", &["SEARCH t USING INDEX taskbell_tasks_gate (tenant=? AND concurrency_key=?)"]),
    ("forsaken", &["USING INDEX taskbell_tasks_open_children", "SEARCH p USING PRIMARY KEY (id=?)"]),
    ("next_due", &["SEARCH f USING INDEX taskbell_tasks_claim (tenant=?)"]),
    ("pack_waiting", &["SEARCH t USING INDEX taskbell_tasks_pack (pack>?)"]),
    (
        "positions",
        &["SEARCH t USING PRIMARY KEY (id=?)", "taskbell_tasks_gate (tenant=?", "taskbell_tasks_claim (tenant=?"],
    ),
    ("remove_keys", &["taskbell_keys_task (task_id=?)"]),
    ("renew", &["SEARCH taskbell_tasks USING PRIMARY KEY (id=?)"]),
    ("tasks_by_id", &["SEARCH t USING PRIMARY KEY (id=?)"]),
    ("update_tasks", &["SEARCH taskbell_tasks USING PRIMARY KEY (id=?)"]),
    ("usual", &["taskbell_tasks_usual (tenant=? AND action=?)"]),
    ("waiting_in_vain", &["taskbell_tasks_awaits", "COVERING INDEX taskbell_tasks_parent (parent=? AND active=?)"]),
    ("waiting_tenants", &["COVERING INDEX taskbell_tasks_claim (tenant>?)"]),
];

/// Those that bring a few rows into another order after they were found.
const SORTED: &[(&str, &[&str])] = &[
    ("markable_by_id", &["SEARCH t USING PRIMARY KEY (id=?)"]),
    ("markable_count", &["taskbell_tasks_owner (tenant=? AND owner=?)"]),
    ("markable_unseen", &["taskbell_tasks_unseen (active=? AND seen_at=? AND archived_at=? AND tenant=? AND owner=?)"]),
    ("markable_up_to", &["taskbell_tasks_owner (tenant=? AND owner=?)"]),
    ("overdue", &["taskbell_tasks_under_way", "taskbell_tasks_deadline (active=? AND deadline>? AND deadline<?)"]),
    ("waited_keys", &["taskbell_tasks_gate (tenant=? AND concurrency_key>?)", "COVERING INDEX taskbell_tasks_slot"]),
    ("pack_strays", &["SEARCH t USING INDEX taskbell_tasks_pack (pack=? AND state=?)", "taskbell_tasks_held (pack=?)"]),
];

async fn assert_plans(c: &mut SqliteConnection) {
    let all = SQLITE.all();
    for (allowed_to_sort, table) in [(false, PLANS), (true, SORTED)] {
        for (name, parts) in table {
            let (_, text) = all.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("no statement {name}"));
            let plan = plan(c, text).await;
            for part in *parts {
                assert!(plan.contains(part), "{name} does not take `{part}`:\n{plan}");
            }
            let whole = plan.lines().any(|l| l == "SCAN t" || l == "SCAN taskbell_tasks" || l == "SCAN k");
            assert!(!whole, "{name} reads the whole table:\n{plan}");
            assert!(allowed_to_sort || !plan.contains("TEMP B-TREE"), "{name} sorts aside:\n{plan}");
        }
    }
    // To who sees all tenants, all may be the answer.
    for (name, text) in all.iter().filter(|(name, _)| !["counts_active", "counts_all", "list"].contains(name)) {
        let plan = plan(c, text).await;
        assert!(!plan.contains("taskbell_tasks_active (active=?)"), "{name} reads all unfinished tasks:\n{plan}");
        let whole = plan.lines().any(|l| l.starts_with("SCAN ") && l.contains("taskbell_tasks"))
            && !plan.contains("SCAN c USING INDEX taskbell_tasks_open_children");
        assert!(!whole, "{name} reads an index of the tasks from end to end:\n{plan}");
    }
}

async fn assert_reach_plans(c: &mut SqliteConnection) {
    let tenant = Reach { tenant: Some("t".into()), owner: None };
    let owner = Reach { tenant: Some("t".into()), owner: Some("u".into()) };
    for (reach, columns) in [(&tenant, "tenant=?"), (&owner, "tenant=? AND owner=?")] {
        let active = plan(c, SQLITE.counts_active.within(reach)).await;
        assert!(active.contains(&format!("COVERING INDEX taskbell_tasks_active (active=? AND {columns})")), "{active}");
        let marks = plan(c, SQLITE.counts_marks.within(reach)).await;
        for index in ["unseen (active=? AND seen_at=?", "attention (state=? AND read_at=?"] {
            let part = format!("COVERING INDEX taskbell_tasks_{index} AND archived_at=? AND {columns})");
            assert!(marks.contains(&part), "{part}:\n{marks}");
        }
    }
}

async fn assert_list_plans(c: &mut SqliteConnection) {
    let record = Some(taskbell::core::task::RecordRef { kind: "order".into(), id: "7".into() });
    for descending in [false, true] {
        for after in [None, Some((0, taskbell::core::ids::TaskId::new()))] {
            let seek = match (after, descending) {
                (None, _) => "",
                (_, false) => " AND (created_at,id)>(?,?)",
                (_, true) => " AND (created_at,id)<(?,?)",
            };
            let reach = Reach { tenant: Some("t".into()), owner: None };
            let base =
                ListParams { reach, after, descending, sort: SortBy::CreatedAt, limit: 50, ..ListParams::default() };
            let by_tenant = plan(c, SQLITE.list(&base, None)).await;
            let by_owner = plan(c, SQLITE.list(&base, Some(&"u".into()))).await;
            let by_record = plan(c, SQLITE.list(&ListParams { record: record.clone(), ..base.clone() }, None)).await;
            let unfinished = ListParams { states: vec![State::Queued, State::Running], ..base.clone() };
            let unfinished = plan(c, SQLITE.list(&unfinished, Some(&"u".into()))).await;
            for (plan, index) in [
                (&by_tenant, "taskbell_tasks_tenant (tenant=?"),
                (&by_owner, "taskbell_tasks_owner (tenant=? AND owner=?"),
                (&unfinished, "taskbell_tasks_active (active=? AND tenant=? AND owner=?"),
                (&by_record, "taskbell_tasks_record (tenant=? AND record_type=? AND record_id=?"),
            ] {
                assert!(plan.contains(&format!("{index}{seek})")), "{index}{seek}:\n{plan}");
                assert!(!plan.contains("TEMP B-TREE"), "the default order is that of the index:\n{plan}");
            }
        }
    }
}

#[tokio::test]
async fn every_statement_of_the_catalogue_is_understood_by_its_database() {
    let f = Fixture::sqlite().await;
    let mut c = connect(&f).await;
    for (name, text) in SQLITE.all() {
        assert!(!text.contains('@'), "{name}: a mark is not filled:\n{text}");
        let statement = c.prepare(AssertSqlSafe(text.to_owned()).into_sql_str()).await;
        let statement = statement.unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
        let reads = text.trim_start().starts_with("SELECT") || text.trim_start().starts_with("WITH");
        assert_eq!(reads || text.contains("RETURNING"), !statement.columns().is_empty(), "{name}");
    }
}

#[tokio::test]
async fn statements_take_their_indexes_on_an_empty_database() {
    let f = Fixture::sqlite().await;
    let mut c = connect(&f).await;
    assert_plans(&mut c).await;
    assert_reach_plans(&mut c).await;
    assert_list_plans(&mut c).await;
}

#[tokio::test]
async fn statements_take_their_indexes_beside_20000_tasks_that_were_counted() {
    take_their_indexes_beside(Crowd::small()).await;
    take_their_indexes_beside(Crowd::apart()).await;
}

#[tokio::test]
async fn statements_take_their_indexes_beside_more_than_a_million_tasks() {
    take_their_indexes_beside(Crowd::large()).await;
}

async fn take_their_indexes_beside(crowd: Crowd) {
    let f = Fixture::sqlite().await;
    let mut c = connect(&f).await;
    fill(&f, &mut c, crowd).await;
    drop(c);
    let mut c = connect(&f).await;
    assert_plans(&mut c).await;
    assert_reach_plans(&mut c).await;
    assert_list_plans(&mut c).await;
}
