//! What released versions have left behind: a filled database of each kind in tests/fixtures/VERSION, as text. Every later
//! version opens them, brings them up to date, and goes on with what they hold.
//!
//! tests/fixtures/make writes the folder of the present version, by [`fill`].

use super::children::{child, wait};
use super::fixture::*;
use super::nodes::node;
use super::words::*;
use crate::support::postgres::{self, Database};
use serde_json::json;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use taskbell::core::chunk::Outcome;
use taskbell::core::family::OnFailure;
use taskbell::core::lifecycle::Ask;
use taskbell::core::principal::Role;
use taskbell::core::submit::{Submit, Submitted};
use taskbell::core::task::State;
use taskbell::store::migrate::Mode;
use taskbell::store::postgres::PostgresStore;
use taskbell::store::sqlite::{SqliteOptions, SqliteStore};
use taskbell::store::{
    ApiKey, ClaimParams, FileRow, ListParams, PackLoaded, PasswordHash, Reach, Session, Store, SweepParams, User,
};
use tempfile::TempDir;

/// Where the fixtures of all versions are.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Something of every kind that a database holds, and a task in every state.
async fn fill(f: &Fixture) {
    let (now, store) = (f.now(), &f.store);
    let user = User {
        name: "bob".into(),
        tenant: "acme".into(),
        role: Role::User,
        password: PasswordHash("$argon2id$fixture".into()),
        created_at: now,
        updated_at: now,
    };
    assert!(store.add_user(user).await.unwrap());
    let key = ApiKey { hash: "key".into(), principal: operator(), created_at: now, expires_at: None };
    store.put_api_key(key).await.unwrap();
    let (hash, principal, expires_at) = ("session".to_owned(), bob(), now.plus(3_600_000));
    let session = Session { hash, principal, created_at: now, used_at: now, expires_at, rests_on: Some(now) };
    store.put_session(session).await.unwrap();
    let file = FileRow {
        id: "0193c0de-0000-7000-8000-000000000001".into(),
        tenant: "acme".into(),
        owner: "bob".into(),
        task: None,
        name: "客户.csv".into(),
        content_type: "text/csv".into(),
        size_bytes: 3,
        sha256: "00".repeat(32),
        created_at: now,
        expires_at: None,
    };
    store.put_file(file).await.unwrap();
    store.note_asks(&[("*".to_owned(), "sync".to_owned())]).await.unwrap();
    store.beat(&node("fixture")).await.unwrap();
    let loaded = PackLoaded { name: "till".into(), version: "1.0.0".into(), serial: true };
    store.register_packs(vec![loaded]).await.unwrap();

    let params = json!({"file": "客户.csv", "n": 1});
    let succeeded = f.new_task(Submit { params, title: Some("O'Neil 导入".into()), ..keyed("kept") }).await;
    let claimed = f.claim_task(succeeded).await;
    f.end(&claimed, more(1_200)).await;
    let claimed = f.claim_task(succeeded).await;
    f.end(&claimed, Outcome::Done { result: Some(json!({"rows": 1_200})), told: counted(1_200) }).await;
    let failed = f.new_task(click()).await;
    let claimed = f.claim_task(failed).await;
    f.end(&claimed, gives_up()).await;
    f.must(f.new_task(click()).await, Ask::Cancel).await;
    for ask in [Ask::Pause, Ask::Cancel] {
        let id = f.new_task(click()).await;
        f.claim_task(id).await;
        f.must(id, ask).await;
    }
    let parent = f.new_task(click()).await;
    let claimed = f.claim_task(parent).await;
    let mut waits = ended(&claimed, wait(OnFailure::Collect));
    waits.children.push(child(&claimed));
    f.commit(waits).await;
    let holder = f.new_task(under("ddl", 1)).await;
    let claimed = f.claim_task(holder).await;
    f.end(&claimed, more(7)).await;
    f.claim_task(holder).await;
    f.new_task(under("ddl", 1)).await;
    let paused = f.new_task(click()).await;
    f.must(paused, Ask::Pause).await;
    f.new_task(Submit { pack: Some("till".into()), ..click() }).await;
    f.pass(1);
    f.new_task(click()).await;
}

/// What [`fill`] leaves, by state.
fn states() -> BTreeMap<State, i64> {
    [
        (State::Queued, 2),
        (State::Blocked, 1),
        (State::Running, 3),
        (State::Pausing, 1),
        (State::Paused, 1),
        (State::Cancelling, 1),
        (State::Succeeded, 1),
        (State::Failed, 1),
        (State::Cancelled, 1),
    ]
    .into()
}

/// The whole of a SQLite file as statements.
async fn dump_of_file(file: &Path) -> String {
    let mut connection = SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(file)).await.unwrap();
    let listed = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type DESC, name";
    let mut text = String::new();
    for row in sqlx::query(listed).fetch_all(&mut connection).await.unwrap() {
        let (kind, name, sql): (String, String, String) = (row.get(0), row.get(1), row.get(2));
        text += &format!("{sql};\n");
        if kind != "table" {
            continue;
        }
        let columns = format!("SELECT name FROM pragma_table_info('{name}') ORDER BY cid");
        let columns: Vec<(String,)> = sqlx::query_as(AssertSqlSafe(columns)).fetch_all(&mut connection).await.unwrap();
        let quoted: Vec<String> = columns.iter().map(|(column,)| format!("quote(\"{column}\")")).collect();
        let rows = format!("SELECT {} FROM {name}", quoted.join(" || ', ' || "));
        let rows: Vec<(String,)> = sqlx::query_as(AssertSqlSafe(rows)).fetch_all(&mut connection).await.unwrap();
        rows.iter().for_each(|(values,)| text += &format!("INSERT INTO {name} VALUES ({values});\n"));
    }
    text
}

/// The whole of a database of a server, as its own tool tells it, without what depends on the release of the tool.
fn dump_of_server(url: &str) -> String {
    let told = Command::new("pg_dump").args(["--no-owner", "--no-privileges", "--inserts", url]).output().unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let text = String::from_utf8(told.stdout).unwrap();
    let own = |line: &&str| {
        let foreign = ["--", "\\", "SET ", "SELECT pg_catalog.set_config"];
        !line.is_empty() && !foreign.iter().any(|start| line.starts_with(start))
    };
    text.lines().filter(own).map(|line| format!("{line}\n")).collect()
}

fn write(name: &str, text: &str) {
    let folder = fixtures().join(env!("CARGO_PKG_VERSION"));
    std::fs::create_dir_all(&folder).unwrap();
    let head = "-- A filled database as this version leaves it. Made by tests/fixtures/make, and never changed after the release.\n";
    std::fs::write(folder.join(name), format!("{head}{text}")).unwrap();
}

fn writes() -> bool {
    std::env::var_os("TASKBELL_WRITE_FIXTURES").is_some()
}

/// The folders of all versions, and what each holds in a file of this name.
fn released(name: &str) -> Vec<(String, String)> {
    let folders = std::fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap().path()).filter(|p| p.is_dir());
    let read = |folder: PathBuf| {
        let version = folder.file_name().unwrap().to_string_lossy().into_owned();
        (version, std::fs::read_to_string(folder.join(name)).unwrap())
    };
    let all: Vec<_> = folders.map(read).collect();
    assert!(!all.is_empty(), "there is at least one version");
    all
}

async fn open_file(text: &str, folder: &TempDir) -> Arc<dyn Store> {
    let file = folder.path().join("taskbell.db");
    let options = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(text.to_owned())).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    Arc::new(SqliteStore::open(SqliteOptions::new(file), Mode::Apply, &mut |_, _, _| {}).await.unwrap())
}

async fn open_on_server(text: &str, database: &Database) -> Arc<dyn Store> {
    sqlx::raw_sql(AssertSqlSafe(text.to_owned())).execute(&mut database.connect().await).await.unwrap();
    let options = postgres::options(&database.url());
    Arc::new(PostgresStore::open(options, Mode::Apply, &mut |_, _, _| {}).await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_each_released_version_is_opened_and_gone_on_with() {
    if writes() {
        let f = Fixture::sqlite().await;
        fill(&f).await;
        f.check().await;
        write("sqlite.sql", &dump_of_file(&f.path()).await);
    }
    for (version, text) in released("sqlite.sql") {
        let folder = tempfile::tempdir().unwrap();
        goes_on(&version, open_file(&text, &folder).await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_each_released_version_is_opened_by_many_nodes_at_once_and_gone_on_with() {
    if writes() {
        let f = Fixture::postgres().await;
        fill(&f).await;
        f.check().await;
        write("postgres.sql", &dump_of_server(&f.database().url()));
    }
    for (version, text) in released("postgres.sql") {
        let database = Database::empty().await;
        let store = open_on_server(&text, &database).await;
        let open = async || {
            let options = postgres::options(&database.url());
            PostgresStore::open(options, Mode::Apply, &mut |_, _, _| {}).await.map(|s| s.epoch().to_owned())
        };
        let (a, b, c) = tokio::join!(open(), open(), open());
        assert!([a, b, c].into_iter().all(|epoch| epoch.unwrap() == store.epoch()));
        goes_on(&version, store).await;
    }
}

/// All that [`fill`] left is there, and each unfinished task can be brought to its end.
async fn goes_on(version: &str, store: Arc<dyn Store>) {
    assert_eq!(store.counts(&Reach::default(), true).await.unwrap().by_state, states(), "{version}");
    let all = store.list(ListParams { limit: 200, ..ListParams::default() }).await.unwrap().items;
    for task in &all {
        let events = store.events(task.id, 0, 100).await.unwrap();
        assert_eq!(events.len() as i64, task.event_count, "{version}: {task:?}");
    }
    let of = |state| all.iter().find(|task| task.state == state).unwrap();
    let done = of(State::Succeeded);
    assert_eq!((done.title.as_deref(), done.progress.current), (Some("O'Neil 导入"), 1_200), "{version}");
    let documents = store.documents(done.id).await.unwrap();
    assert_eq!((&documents.params["file"], &documents.result.unwrap()["rows"]), (&json!("客户.csv"), &json!(1_200)));
    assert_eq!(store.user("bob").await.unwrap().unwrap().password, PasswordHash("$argon2id$fixture".into()));
    assert_eq!(store.known_api_keys(&["key".into()]).await.unwrap()[0].principal, operator());
    assert!(store.session("session").await.unwrap().is_some());
    assert_eq!(store.file("0193c0de-0000-7000-8000-000000000001").await.unwrap().unwrap().name, "客户.csv");
    assert_eq!(store.packs(None).await.unwrap()[0].row.name, "till");
    assert_eq!(of(State::Failed).error.as_ref().unwrap().code, "no-use");
    // Whoever ran the tasks is long gone: their leases are taken, and all go on from their checkpoints.
    let sweep = SweepParams { limit: 500, all: true, cancel_grace_ms: GRACE_MS, retries: Default::default() };
    store.sweep(sweep).await.unwrap();
    let mut fresh = keyed("new");
    fresh.caller = bob();
    assert!(matches!(store.submit(vec![fresh]).await.unwrap().answer[0], Submitted::Created(_)));
    let mut checkpoints = 0;
    loop {
        let params = ClaimParams { lease_ms: 60_000, ..claim_params("later", 10) };
        let claimed = store.claim(params).await.unwrap().answer;
        if claimed.is_empty() {
            break;
        }
        checkpoints += claimed.iter().filter(|c| c.documents.checkpoint == Some(json!({"n": 7}))).count();
        store.commit(claimed.iter().map(|c| ended(c, super::words::done())).collect()).await.unwrap();
    }
    assert_eq!(checkpoints, 1, "{version}: the one that was under way goes on from its checkpoint");
    let left = store.counts(&Reach::default(), true).await.unwrap().by_state;
    let ends = [(State::Paused, 2), (State::Succeeded, 8), (State::Failed, 1), (State::Cancelled, 2)];
    assert_eq!(left, ends.into(), "{version}");
}
