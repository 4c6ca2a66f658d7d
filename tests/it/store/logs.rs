//! What every log store promises, and beside it what the stores that keep can be asked: that lines outlive the process that
//! wrote them, and that the caps of the real size hold.

use crate::support::postgres::{self, Database};
use std::sync::Arc;
use taskbell::core::ids::{FencingToken, TaskId};
use taskbell::core::logline::{CUT_MARK, MAX_LINE_BYTES};
use taskbell::core::time::Millis;
use taskbell::store::logs::{
    Append, Appended, Level, LogLimits, LogLine, LogParams, LogPart, LogStore, MAX_PART, MemoryLogs, NewLine,
    PostgresLogs, SqliteLogs, beside,
};
use taskbell::store::migrate::Mode;
use tempfile::TempDir;

/// A log store, and the folder or database that has to outlive it.
struct Fixture {
    logs: Arc<dyn LogStore>,
    _folder: Option<TempDir>,
    _database: Option<Database>,
}

async fn memory(limits: LogLimits) -> Fixture {
    Fixture { logs: Arc::new(MemoryLogs::new(limits)), _folder: None, _database: None }
}

async fn sqlite(limits: LogLimits) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let logs = SqliteLogs::open(&folder.path().join("x-logs.db"), limits).await.unwrap();
    Fixture { logs: Arc::new(logs), _folder: Some(folder), _database: None }
}

async fn on_server(limits: LogLimits) -> Fixture {
    let database = Database::migrated().await;
    let (options, mut told) = (postgres::options(&database.url()), |_: usize, _: usize, _: &str| {});
    let logs = PostgresLogs::open(options, limits, Mode::Apply, &mut told).await.unwrap();
    Fixture { logs: Arc::new(logs), _folder: None, _database: Some(database) }
}

/// Runs each body on each kind of log store.
macro_rules! log_store_suite {
    ($($name:ident)*) => {
        mod on_memory {
            $(#[tokio::test] async fn $name() { super::$name(super::memory).await; })*
        }
        mod on_sqlite {
            $(#[tokio::test] async fn $name() { super::$name(super::sqlite).await; })*
        }
        mod on_postgres {
            $(#[tokio::test] async fn $name() { super::$name(super::on_server).await; })*
        }
    };
}

log_store_suite! {
    lines_are_numbered_per_task_in_the_order_they_came
    a_writer_that_was_taken_over_is_refused
    one_task_twice_in_a_batch_is_taken_in_order
    a_part_begins_at_either_end_and_pages_without_gaps
    a_level_and_a_literal_text_select_lines
    wildcards_mean_themselves
    a_nul_is_kept_as_the_replacement_character
    a_line_above_the_cap_is_cut_between_characters_and_marked
    above_the_cap_of_a_task_the_oldest_lines_go_and_the_gap_shows
    above_the_cap_of_a_tenant_lines_are_refused_and_counted_and_others_are_not_touched
    deleted_logs_are_gone_and_give_their_room_back
    lost_lines_are_counted_and_leave_a_gap
    no_log_is_an_empty_part
}

const SMALL: LogLimits = LogLimits { task_bytes: 10_000, tenant_bytes: 25_000 };

fn append(tenant: &str, task: TaskId, token: i64, texts: &[&str]) -> Append {
    let lines = texts.iter().map(|text| line(Level::Info, text)).collect();
    Append { tenant: tenant.into(), task, token: FencingToken(token), lines }
}

fn line(level: Level, text: &str) -> NewLine {
    NewLine { at: Millis(1_700_000_000_123), level, source: "handler", chunk: 7, message: text.to_owned() }
}

async fn put(logs: &Arc<dyn LogStore>, task: TaskId, texts: &[&str]) -> Appended {
    logs.append(vec![append("t", task, 1, texts)]).await.unwrap()[0]
}

async fn part(logs: &Arc<dyn LogStore>, task: TaskId, params: LogParams) -> LogPart {
    logs.part(task, params).await.unwrap()
}

async fn all(logs: &Arc<dyn LogStore>, task: TaskId) -> LogPart {
    part(logs, task, LogParams { limit: MAX_PART, ..LogParams::default() }).await
}

fn texts(part: &LogPart) -> Vec<&str> {
    part.items.iter().map(|line| line.message.as_str()).collect()
}

fn seqs(part: &LogPart) -> Vec<i64> {
    part.items.iter().map(|line| line.seq).collect()
}

async fn lines_are_numbered_per_task_in_the_order_they_came(open: impl AsyncFn(LogLimits) -> Fixture) {
    let fixture = open(LogLimits::default()).await;
    let (a, b) = (TaskId::new(), TaskId::new());
    let items = vec![append("t", a, 1, &["a1", "a2\nstill a2"]), append("u", b, 5, &["b1"])];
    assert_eq!(fixture.logs.append(items).await.unwrap(), [Appended::From(1), Appended::From(1)]);
    assert_eq!(put(&fixture.logs, a, &["a3"]).await, Appended::From(3));
    let part = all(&fixture.logs, a).await;
    assert_eq!((part.newest, part.dropped), (3, 0));
    let first = LogLine {
        seq: 1,
        at: Millis(1_700_000_000_123),
        level: Level::Info,
        source: "handler".into(),
        chunk: 7,
        message: "a1".into(),
    };
    assert_eq!(part.items[0], first);
    assert_eq!(texts(&part), ["a1", "a2\nstill a2", "a3"]);
    assert_eq!(texts(&all(&fixture.logs, b).await), ["b1"]);
}

async fn a_writer_that_was_taken_over_is_refused(open: impl AsyncFn(LogLimits) -> Fixture) {
    let fixture = open(LogLimits::default()).await;
    let (task, other) = (TaskId::new(), TaskId::new());
    fixture.logs.append(vec![append("t", task, 4, &["mine"])]).await.unwrap();
    let items =
        vec![append("t", task, 3, &["late"]), append("t", other, 1, &["fine"]), append("t", task, 4, &["mine too"])];
    let answers = fixture.logs.append(items).await.unwrap();
    assert_eq!(answers, [Appended::Stale, Appended::From(1), Appended::From(2)]);
    assert_eq!(texts(&all(&fixture.logs, task).await), ["mine", "mine too"]);
    // The next owner shuts the door with its first words, even with none.
    fixture.logs.append(vec![append("t", task, 5, &[])]).await.unwrap();
    assert_eq!(fixture.logs.append(vec![append("t", task, 4, &["late"])]).await.unwrap(), [Appended::Stale]);
}

async fn one_task_twice_in_a_batch_is_taken_in_order(open: impl AsyncFn(LogLimits) -> Fixture) {
    let fixture = open(LogLimits::default()).await;
    let task = TaskId::new();
    let items = vec![append("t", task, 1, &["1", "2"]), append("t", task, 2, &["3"]), append("t", task, 1, &["late"])];
    let answers = fixture.logs.append(items).await.unwrap();
    assert_eq!(answers, [Appended::From(1), Appended::From(3), Appended::Stale]);
    assert_eq!(texts(&all(&fixture.logs, task).await), ["1", "2", "3"]);
}

async fn a_part_begins_at_either_end_and_pages_without_gaps(open: impl AsyncFn(LogLimits) -> Fixture) {
    let fixture = open(LogLimits::default()).await;
    let task = TaskId::new();
    let words: Vec<String> = (1..=2_500).map(|n| format!("line {n}")).collect();
    put(&fixture.logs, task, &words.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let (mut seen, mut after) = (Vec::new(), 0);
    loop {
        let params = LogParams { after: Some(after), limit: 5_000, ..LogParams::default() };
        let page = part(&fixture.logs, task, params).await;
        assert!(page.items.len() <= MAX_PART);
        let Some(last) = page.items.last() else { break };
        after = last.seq;
        seen.extend(seqs(&page));
    }
    assert_eq!(seen, (1..=2_500).collect::<Vec<_>>());
    let newest = LogParams { before: Some(i64::MAX), limit: 3, ..LogParams::default() };
    assert_eq!(seqs(&part(&fixture.logs, task, newest).await), [2_498, 2_499, 2_500]);
    let older = LogParams { before: Some(2_498), after: Some(2_496), limit: 3, ..LogParams::default() };
    assert_eq!(seqs(&part(&fixture.logs, task, older).await), [2_497]);
    let odd = LogParams { before: Some(-1), after: Some(i64::MAX), limit: 3, ..LogParams::default() };
    assert_eq!(seqs(&part(&fixture.logs, task, odd).await), Vec::<i64>::new());
}

async fn a_level_and_a_literal_text_select_lines(open: impl AsyncFn(LogLimits) -> Fixture) {
    let fixture = open(LogLimits::default()).await;
    let task = TaskId::new();
    let lines =
        [Level::Debug, Level::Info, Level::Warn, Level::Error].map(|level| line(level, level.as_str())).to_vec();
    let append = Append { tenant: "t".into(), task, token: FencingToken(1), lines };
    fixture.logs.append(vec![append]).await.unwrap();
    for (level, text, found) in [
        (Some(Level::Debug), None, vec!["debug", "info", "warn", "error"]),
        (Some(Level::Warn), None, vec!["warn", "error"]),
        (Some(Level::Error), Some("warn"), vec![]),
        (None, Some("R"), vec!["warn", "error"]),
        (None, Some(""), vec!["debug", "info", "warn", "error"]),
    ] {
        let params = LogParams { level, text: text.map(str::to_owned), limit: 10, ..LogParams::default() };
        assert_eq!(texts(&part(&fixture.logs, task, params).await), found, "{level:?} {text:?}");
    }
}

async fn wildcards_mean_themselves(open: impl AsyncFn(LogLimits) -> Fixture) {
    let fixture = open(LogLimits::default()).await;
    let task = TaskId::new();
    let lines = ["50% done", "50 done", "a_b", "axb", r"c:\dir", "it's [x]*?", "导入 50%"];
    put(&fixture.logs, task, &lines).await;
    for (text, found) in [
        ("%", vec!["50% done", "导入 50%"]),
        ("_", vec!["a_b"]),
        (r"\", vec![r"c:\dir"]),
        ("a_b", vec!["a_b"]),
        ("'", vec!["it's [x]*?"]),
        ("[x]*?", vec!["it's [x]*?"]),
        ("导入", vec!["导入 50%"]),
        ("%_%_", vec![]),
    ] {
        let params = LogParams { text: Some(text.into()), limit: 10, ..LogParams::default() };
        assert_eq!(texts(&part(&fixture.logs, task, params).await), found, "{text}");
    }
}

async fn a_nul_is_kept_as_the_replacement_character(open: impl AsyncFn(LogLimits) -> Fixture) {
    let fixture = open(LogLimits::default()).await;
    let task = TaskId::new();
    put(&fixture.logs, task, &["a\0b", "\0"]).await;
    assert_eq!(texts(&all(&fixture.logs, task).await), ["a\u{FFFD}b", "\u{FFFD}"]);
}

async fn a_line_above_the_cap_is_cut_between_characters_and_marked(open: impl AsyncFn(LogLimits) -> Fixture) {
    let fixture = open(LogLimits::default()).await;
    let task = TaskId::new();
    let (whole, huge) = ("x".repeat(MAX_LINE_BYTES), "界".repeat(1_700_000));
    put(&fixture.logs, task, &[&whole, &huge]).await;
    let part = all(&fixture.logs, task).await;
    assert_eq!(part.items[0].message, whole);
    let cut = &part.items[1].message;
    assert!(cut.len() <= MAX_LINE_BYTES && cut.strip_suffix(CUT_MARK).unwrap().chars().all(|c| c == '界'));
}

async fn above_the_cap_of_a_task_the_oldest_lines_go_and_the_gap_shows(open: impl AsyncFn(LogLimits) -> Fixture) {
    let fixture = open(LogLimits { tenant_bytes: 100_000, ..SMALL }).await;
    let task = TaskId::new();
    let long = "y".repeat(900);
    for _ in 0..30 {
        put(&fixture.logs, task, &[&long, &long]).await;
    }
    let part = all(&fixture.logs, task).await;
    assert!(part.items.len() >= 8 && part.items.len() <= 10, "{}", part.items.len());
    assert_eq!(part.newest, 60);
    assert_eq!(part.dropped + i64::try_from(part.items.len()).unwrap(), part.newest, "each lost line is counted");
    assert_eq!(seqs(&part), (part.dropped + 1..=60).collect::<Vec<_>>(), "the oldest went, the newest stay");
    // One append above the whole cap does not take the newest with it.
    put(&fixture.logs, task, &vec![long.as_str(); 50]).await;
    let part = all(&fixture.logs, task).await;
    assert_eq!((part.newest, part.items.last().unwrap().seq), (110, 110));
    assert!(part.items.len() <= 10);
}

async fn above_the_cap_of_a_tenant_lines_are_refused_and_counted_and_others_are_not_touched(
    open: impl AsyncFn(LogLimits) -> Fixture,
) {
    let fixture = open(SMALL).await;
    let (long, tasks) = ("z".repeat(900), [TaskId::new(), TaskId::new(), TaskId::new(), TaskId::new()]);
    for task in tasks {
        put(&fixture.logs, task, &[long.as_str(); 9]).await;
    }
    let parts = [all(&fixture.logs, tasks[2]).await, all(&fixture.logs, tasks[3]).await];
    assert_eq!((parts[0].items.len(), parts[0].dropped, parts[0].newest), (7, 2, 9));
    assert_eq!((parts[1].items.len(), parts[1].dropped, parts[1].newest), (0, 9, 9));
    let other = TaskId::new();
    fixture.logs.append(vec![append("other", other, 1, &["has room"])]).await.unwrap();
    assert_eq!(texts(&all(&fixture.logs, other).await), ["has room"]);
}

async fn deleted_logs_are_gone_and_give_their_room_back(open: impl AsyncFn(LogLimits) -> Fixture) {
    let fixture = open(SMALL).await;
    let (long, tasks) = ("z".repeat(900), [TaskId::new(), TaskId::new(), TaskId::new(), TaskId::new()]);
    for task in tasks {
        put(&fixture.logs, task, &[long.as_str(); 9]).await;
    }
    fixture.logs.delete(&tasks[..3]).await.unwrap();
    fixture.logs.delete(&tasks[..1]).await.unwrap();
    assert_eq!(all(&fixture.logs, tasks[0]).await.newest, 0);
    put(&fixture.logs, tasks[3], &[long.as_str(); 9]).await;
    let part = all(&fixture.logs, tasks[3]).await;
    assert_eq!((part.items.len(), part.dropped), (9, 9));
    assert_eq!(seqs(&part), (10..=18).collect::<Vec<_>>());
}

async fn lost_lines_are_counted_and_leave_a_gap(open: impl AsyncFn(LogLimits) -> Fixture) {
    let fixture = open(LogLimits::default()).await;
    let (task, silent) = (TaskId::new(), TaskId::new());
    put(&fixture.logs, task, &["1"]).await;
    fixture.logs.note_dropped(task, 40).await.unwrap();
    put(&fixture.logs, task, &["42"]).await;
    let part = all(&fixture.logs, task).await;
    assert_eq!((seqs(&part), part.dropped, part.newest), (vec![1, 42], 40, 42));
    fixture.logs.note_dropped(silent, 3).await.unwrap();
    let part = all(&fixture.logs, silent).await;
    assert_eq!((part.items.len(), part.dropped), (0, 3));
    assert_eq!(put(&fixture.logs, silent, &["4"]).await, Appended::From(4));
}

async fn no_log_is_an_empty_part(open: impl AsyncFn(LogLimits) -> Fixture) {
    let fixture = open(LogLimits::default()).await;
    let part = all(&fixture.logs, TaskId::new()).await;
    assert_eq!((part.items.len(), part.dropped, part.newest), (0, 0, 0));
    assert_eq!(fixture.logs.append(Vec::new()).await.unwrap(), []);
}

#[tokio::test]
async fn lines_in_the_file_outlive_the_process_that_wrote_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = beside(&folder.path().join("taskbell.db"));
    assert_eq!(path.file_name().unwrap(), "taskbell-logs.db");
    let task = TaskId::new();
    let first: Arc<dyn LogStore> = Arc::new(SqliteLogs::open(&path, LogLimits::default()).await.unwrap());
    put(&first, task, &["before"]).await;
    // The first is not closed: a second process may look while it lives, and after it was killed.
    let second: Arc<dyn LogStore> = Arc::new(SqliteLogs::open(&path, LogLimits::default()).await.unwrap());
    put(&second, task, &["after"]).await;
    assert_eq!(texts(&all(&first, task).await), ["before", "after"]);
    assert_eq!(texts(&all(&second, task).await), ["before", "after"]);
}

#[tokio::test]
async fn a_hundred_thousand_lines_are_kept_and_searched() {
    let fixture = sqlite(LogLimits::default()).await;
    let task = TaskId::new();
    for batch in 0..200 {
        let words: Vec<String> = (0..500).map(|n| format!("row {} of 100000 read", batch * 500 + n)).collect();
        put(&fixture.logs, task, &words.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }
    let params = LogParams { before: Some(i64::MAX), limit: 200, ..LogParams::default() };
    assert_eq!(part(&fixture.logs, task, params).await.items.len(), 200);
    for (text, count) in [("row 99999 ", 1), ("%", 0), (&"%_".repeat(5_000), 0)] {
        let params = LogParams { text: Some(text.into()), limit: 200, ..LogParams::default() };
        assert_eq!(part(&fixture.logs, task, params).await.items.len(), count);
    }
}

#[tokio::test]
async fn a_log_file_of_a_newer_version_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x-logs.db");
    SqliteLogs::open(&path, LogLimits::default()).await.unwrap().close().await;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    sqlx::query("PRAGMA user_version = 99").execute(&pool).await.unwrap();
    pool.close().await;
    let refused = SqliteLogs::open(&path, LogLimits::default()).await.err().unwrap().to_string();
    assert!(refused.contains("version 99") && refused.contains("newer program"), "{refused}");
}
