//! Every statement of the catalogue on a migrated PostgreSQL database, and the plans of those whose cost must not grow with
//! what they do not touch: beside 20,000 tasks, and beside a million that have ended and a hundred thousand that wait, that the
//! planner has counted, the named index is taken, whatever the values are (the generic plan), and the table is never read
//! whole. TASKBELL_TEST_LONG=1 has all of the million, else a tenth.

use super::fixture::Fixture;
use super::statements::{BLOCKED, Crowd, lay_out};
use super::words::click;
use crate::support::crowd;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Either, Executor as _, SqlSafeStr as _, Statement as _, TypeInfo as _};
use taskbell::store::sql::{POSTGRES, POSTGRES_OWN};

/// Adds copies of what was laid out, and lets the planner count them.
async fn fill(f: &Fixture, c: &mut PgConnection, crowd: Crowd) {
    lay_out(f).await;
    for (which, rows) in [(crowd::ENDED, crowd.ended), (crowd::WAITING, crowd.waiting), (crowd::BLOCKED, BLOCKED)] {
        crowd::in_postgres(c, which, rows).await;
    }
    let seen = "UPDATE taskbell_tasks SET seen_at = finished_at WHERE active = 0 AND substr(id, length(id)) <> '7'";
    sqlx::query(seen).execute(&mut *c).await.unwrap();
    for rows in [
        "INSERT INTO taskbell_documents SELECT id, 'params', '{}' FROM few ON CONFLICT DO NOTHING",
        "INSERT INTO taskbell_events (task_id, seq, at, to_state, reason, attempt, chunk) \
         SELECT id, n, 0, 'queued', 'submitted', 0, 0 FROM few, generate_series(1, 3) n ON CONFLICT DO NOTHING",
        "INSERT INTO taskbell_points SELECT id, n, 0, NULL, NULL, NULL, NULL, 1 FROM few, generate_series(1, 3) n",
        "INSERT INTO taskbell_keys SELECT tenant, action, 'caller', id, id, 1, 'f' FROM few",
        "INSERT INTO taskbell_heads SELECT tenant, id, 1 FROM few",
    ] {
        // Of some tasks: these tables are found by the id of a task, however many others there are.
        let few = "WITH few AS (SELECT * FROM taskbell_tasks ORDER BY id LIMIT 20000)";
        sqlx::query(AssertSqlSafe(format!("{few} {rows}"))).execute(&mut *c).await.unwrap();
    }
    sqlx::raw_sql("VACUUM ANALYZE").execute(&mut *c).await.unwrap();
}

/// How the server carries a statement out for values that it does not know.
async fn plan(c: &mut PgConnection, text: &str) -> String {
    let prepared = c.prepare(AssertSqlSafe(text.to_owned()).into_sql_str()).await.unwrap();
    let types: Vec<String> = match prepared.parameters() {
        Some(Either::Left(types)) => types.iter().map(|t| t.name().to_owned()).collect(),
        _ => Vec::new(),
    };
    let (declared, values) = match types.len() {
        0 => (String::new(), String::new()),
        n => (format!("({})", types.join(", ")), format!("({})", vec!["NULL"; n].join(", "))),
    };
    for sql in
        ["DEALLOCATE ALL", "SET plan_cache_mode = force_generic_plan", &format!("PREPARE one {declared} AS {text}")]
    {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut *c).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
    let rows = sqlx::raw_sql(AssertSqlSafe(format!("EXPLAIN (COSTS OFF) EXECUTE one {values}")))
        .fetch_all(&mut *c)
        .await
        .unwrap();
    rows.iter().map(|r| sqlx::Row::get::<String, _>(r, 0)).collect::<Vec<_>>().join("\n")
}

/// A statement of the catalogue, and what its plan must name.
const PLANS: &[(&str, &[&str])] = &[
    ("aged", &["taskbell_tasks_pkey", "(id > $1)", "taskbell_keys_task"]),
    ("candidates", &["Index Scan using taskbell_tasks_claim", "Index Cond: ((tenant = $1) AND (rank <="]),
    ("center_active", &["Index Scan Backward using taskbell_tasks_active", "(tenant = $1) AND (owner = $2)"]),
    ("center_newest", &["Index Scan Backward using taskbell_tasks_owner", "(tenant = $1) AND (owner = $2)"]),
    ("center_unseen", &["(tenant = $1) AND (owner = $2)"]),
    (
        "changed",
        &[
            "Index Scan using taskbell_tasks_log",
            "AND (log_head > j.head)",
            "Index Scan using taskbell_tasks_under_way",
        ],
    ),
    ("documents", &["taskbell_documents_pkey"]),
    ("events", &["Index Scan using taskbell_events_pkey", "(task_id = $1) AND (seq > $2)"]),
    ("forsaken", &["taskbell_tasks_open_children"]),
    ("head", &["taskbell_heads_pkey"]),
    ("key_holders", &["taskbell_tasks_slot", "(tenant = $1) AND (concurrency_key = $2)"]),
    ("key_rows", &["taskbell_keys_pkey"]),
    ("key_use", &["Only Scan using taskbell_tasks_slot", "Only Scan using taskbell_tasks_gate"]),
    ("key_waiters", &["taskbell_tasks_gate", "(tenant = $1) AND (concurrency_key = $2)"]),
    ("lock_keys_of", &["taskbell_keys_task"]),
    ("lock_slots", &["taskbell_tasks_pkey"]),
    ("lock_tasks", &["taskbell_tasks_pkey", "(id = ANY ($1))"]),
    ("markable_by_id", &["taskbell_tasks_pkey"]),
    ("markable_count", &["(tenant = $1) AND (owner = $2)"]),
    ("markable_unseen", &["taskbell_tasks_unseen", "(tenant = $1) AND (owner = $2)"]),
    ("markable_up_to", &["taskbell_tasks_log", "(tenant = $1) AND (owner = $2)"]),
    ("next_due", &["Index Only Scan using taskbell_tasks_claim on taskbell_tasks f", "(tenant = tenants.tenant)"]),
    ("overdue", &["taskbell_tasks_under_way", "taskbell_tasks_deadline", "(deadline <= $1)"]),
    ("pass_keys", &["taskbell_keys_pkey"]),
    ("points", &["taskbell_points_pkey"]),
    ("positions", &["taskbell_tasks_pkey", "taskbell_tasks_gate", "taskbell_tasks_claim"]),
    ("remove_documents", &["taskbell_documents_pkey"]),
    ("remove_events", &["taskbell_events_pkey"]),
    ("remove_keys", &["taskbell_keys_task"]),
    ("remove_points", &["taskbell_points_pkey"]),
    ("remove_tasks", &["taskbell_tasks_pkey"]),
    ("renew", &["taskbell_tasks_pkey"]),
    ("revisions", &["taskbell_tasks_pkey"]),
    ("tasks_by_id", &["taskbell_tasks_pkey"]),
    ("update_tasks", &["taskbell_tasks_pkey"]),
    ("usual", &["taskbell_tasks_usual", "(tenant = $1) AND (action = $2)"]),
    ("waited_keys", &["using taskbell_tasks_gate", "taskbell_tasks_slot"]),
    ("waiting_tenants", &["taskbell_tasks_claim"]),
];

/// All statements, those that only PostgreSQL has among them.
fn all() -> Vec<(&'static str, &'static str)> {
    let own = &*POSTGRES_OWN;
    let mut all = POSTGRES.all();
    all.extend([
        ("lock_keys_of", own.lock_keys_of.as_str()),
        ("lock_slots", own.lock_slots.as_str()),
        ("locked_elsewhere", own.locked_elsewhere.as_str()),
        ("begin_logs", own.begin_logs.as_str()),
        ("end_still", own.end_still.as_str()),
        ("grown_tables", own.grown_tables.as_str()),
    ]);
    all
}

#[tokio::test]
async fn every_statement_of_the_catalogue_is_understood_by_postgres() {
    let f = Fixture::postgres().await;
    let mut c = f.database().connect().await;
    for (name, text) in all() {
        assert!(!text.contains('@'), "{name}: a mark is not filled:\n{text}");
        let statement = c.prepare(AssertSqlSafe(text.to_owned()).into_sql_str()).await;
        let statement = statement.unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
        let reads = text.trim_start().starts_with("SELECT") || text.trim_start().starts_with("WITH");
        assert_eq!(reads || text.contains("RETURNING"), !statement.columns().is_empty(), "{name}");
        let Some(Either::Left(types)) = statement.parameters() else { panic!("{name} does not tell its parameters") };
        // Numbers are bound as INT8, which a place that asks for INT4 compares as well.
        let bound = ["TEXT", "INT8", "INT4", "TEXT[]", "INT8[]"];
        assert!(types.iter().all(|t| bound.contains(&t.name())), "{name} takes {types:?}, and is given {bound:?}");
    }
}

#[tokio::test]
async fn statements_on_postgres_take_their_indexes_beside_20000_tasks_that_were_counted() {
    take_their_indexes_beside(Crowd::small()).await;
}

#[tokio::test]
async fn statements_on_postgres_take_their_indexes_beside_a_million_ended_and_a_hundred_thousand_waiting() {
    take_their_indexes_beside(Crowd::large()).await;
}

async fn take_their_indexes_beside(crowd: Crowd) {
    let f = Fixture::postgres().await;
    let mut c = f.database().connect().await;
    fill(&f, &mut c, crowd).await;
    let all = all();
    for (name, parts) in PLANS {
        let (_, text) = all.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("no statement {name}"));
        let plan = plan(&mut f.database().connect().await, text).await;
        for part in *parts {
            assert!(plan.contains(part), "{name} does not take `{part}`:\n{plan}");
        }
        for table in ["tasks", "documents", "events", "points", "keys", "heads"] {
            assert!(!plan.contains(&format!("Seq Scan on taskbell_{table}")), "{name} reads a whole table:\n{plan}");
        }
    }
    // Pages of a tenant, of an owner and of a record, in the default order, from their beginning and from a place in them.
    let pages = all.iter().filter(|(name, text)| *name == "list" && text.contains("ORDER BY t.created_at"));
    for (_, text) in pages.filter(|(_, text)| text.contains("t.tenant = $1")) {
        let plan = plan(&mut f.database().connect().await, text).await;
        assert!(plan.contains("(tenant = $1)") && !plan.contains("Seq Scan"), "{text}\n{plan}");
    }
}

#[tokio::test]
async fn what_changes_while_a_chunk_is_under_way_is_written_in_place_on_postgres() {
    let f = Fixture::postgres().await;
    f.submit(vec![click(), click()]).await;
    let task = f.claim(1).await.remove(0).task;
    let mut c = f.database().connect().await;
    // As a report, a lengthened lease, and a chunk that goes on change the row.
    let change = "UPDATE taskbell_tasks SET revision = revision + 1, head = head + 1, updated_at = updated_at + 1, \
        lease_until = lease_until + 1, chunks = chunks + 1, checkpoint_hash = 7, progress_current = 7, progress_total = 9, \
        progress_message = 'seven', progress_at = updated_at, estimator = '{\"x\":1}', event_count = event_count + 1 \
        WHERE id = $1 AND under_way = 1";
    let written = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = 'taskbell_tasks'";
    let mut tx = c.begin().await.unwrap();
    sqlx::query(change).bind(task.id.to_string()).execute(&mut *tx).await.unwrap();
    let counts: (i64, i64) = sqlx::query_as(written).fetch_one(&mut *tx).await.unwrap();
    assert_eq!(counts, (1, 1), "(rows changed, of them without an entry in any index)");
}
