//! What handlers are promised of their log: it never waits, never fails a task, leaks no secret, and counts what it loses.

use crate::support::clock::StillClock;
use crate::support::eventually;
use async_trait::async_trait;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use taskbell::bus::{LocalBus, Signal};
use taskbell::core::ids::{FencingToken, TaskId};
use taskbell::core::logline::{CUT_MARK, MAX_LINE_BYTES};
use taskbell::core::redact::Redactor;
use taskbell::core::time::Clock;
use taskbell::engine::logbook::{Logbook, Origin};
use taskbell::store::logs::{Append, Appended, Level, LogLimits, LogParams, LogPart, LogStore, MAX_PART, MemoryLogs};
use taskbell::store::{Result, StoreError};
use tokio::sync::Semaphore;

const LIMIT: Duration = Duration::from_secs(20);

/// A log store that can be cut off, can be held up, and can refuse the lines of one task.
struct Shaky {
    inner: MemoryLogs,
    gone: AtomicBool,
    poison: Mutex<Option<TaskId>>,
    gate: Semaphore,
    appends: AtomicUsize,
}

impl Default for Shaky {
    fn default() -> Self {
        Self {
            inner: MemoryLogs::new(LogLimits::default()),
            gone: AtomicBool::default(),
            poison: Mutex::default(),
            gate: Semaphore::new(1),
            appends: AtomicUsize::default(),
        }
    }
}

impl Shaky {
    fn answers(&self) -> Result<()> {
        if self.gone.load(Ordering::SeqCst) { Err(StoreError::Unavailable("cut off".into())) } else { Ok(()) }
    }
}

#[async_trait]
impl LogStore for Shaky {
    async fn append(&self, items: Vec<Append>) -> Result<Vec<Appended>> {
        self.appends.fetch_add(1, Ordering::SeqCst);
        let _open = self.gate.acquire().await.unwrap();
        self.answers()?;
        let poison = *self.poison.lock().unwrap();
        if items.iter().any(|item| Some(item.task) == poison) {
            return Err(StoreError::Limit("cannot be stored".into()));
        }
        self.inner.append(items).await
    }

    async fn part(&self, task: TaskId, params: LogParams) -> Result<LogPart> {
        self.inner.part(task, params).await
    }

    async fn note_dropped(&self, task: TaskId, count: i64) -> Result<()> {
        self.answers()?;
        self.inner.note_dropped(task, count).await
    }

    async fn delete(&self, tasks: &[TaskId]) -> Result<()> {
        self.inner.delete(tasks).await
    }
}

struct Desk {
    store: Arc<Shaky>,
    bus: LocalBus,
    book: Logbook,
}

fn desk() -> Desk {
    let (store, bus) = (Arc::new(Shaky::default()), LocalBus::default());
    let redactor = Redactor::new(["hunter-two"]);
    let book = Logbook::start(store.clone(), bus.clone(), Arc::new(StillClock::default()), redactor);
    Desk { store, bus, book }
}

fn origin(token: i64) -> Origin {
    Origin { task: TaskId::new(), tenant: "t".into(), token: FencingToken(token), chunk: 3 }
}

impl Desk {
    fn say(&self, origin: &Origin, text: &str) {
        self.book.log(origin, Level::Info, "handler", text);
    }

    async fn kept(&self, origin: &Origin) -> LogPart {
        let params = LogParams { before: Some(i64::MAX), limit: MAX_PART, ..LogParams::default() };
        self.store.part(origin.task, params).await.unwrap()
    }

    async fn texts(&self, origin: &Origin) -> Vec<String> {
        self.kept(origin).await.items.into_iter().map(|line| line.message).collect()
    }
}

#[tokio::test]
async fn lines_arrive_in_order_with_their_facts_and_watchers_are_told_after_the_commit() {
    let desk = desk();
    let mut watcher = desk.bus.subscribe();
    let chunk = origin(2);
    desk.say(&chunk, "one");
    desk.book.log(&chunk, Level::Error, "taskbell", "two");
    let Some(Signal::LogGrew { task, newest }) = watcher.next().await else { panic!("a signal of another kind") };
    assert_eq!((task, newest), (chunk.task, 2));
    let kept = desk.kept(&chunk).await;
    let facts: Vec<_> = kept.items.iter().map(|l| (l.level, l.source.as_str(), l.chunk, l.message.as_str())).collect();
    assert_eq!(facts, [(Level::Info, "handler", 3, "one"), (Level::Error, "taskbell", 3, "two")]);
    assert_eq!(kept.items[0].at, StillClock::default().now());
}

#[tokio::test]
async fn lines_of_many_tasks_share_a_commit() {
    let desk = desk();
    let chunks: Vec<Origin> = (0..100).map(|_| origin(1)).collect();
    for chunk in &chunks {
        for line in 0..4 {
            desk.say(chunk, &format!("line {line}"));
        }
    }
    desk.book.flush().await;
    for chunk in &chunks {
        assert_eq!(desk.texts(chunk).await, ["line 0", "line 1", "line 2", "line 3"]);
    }
    assert!(desk.store.appends.load(Ordering::SeqCst) <= 3, "400 lines take one commit, or few");
}

#[tokio::test]
async fn secrets_and_control_codes_never_reach_the_store() {
    let desk = desk();
    let chunk = origin(1);
    for text in [
        "signed in with hunter-two",
        "hunter\u{1b}[0m-two",
        "password=abc1 Authorization: Bearer abcdefgh12345678",
        r#"{"api_key":"abc2","n":1}"#,
        "secret: abc3\nnext line",
        "tb_0123456789abcdef",
        "\u{1b}[31mred\u{1b}[0m\tand\0 \u{7}quiet",
    ] {
        desk.say(&chunk, text);
    }
    desk.book.flush().await;
    let texts = desk.texts(&chunk).await;
    for secret in ["hunter-two", "abc1", "abcdefgh12345678", "abc2", "abc3", "0123456789abcdef"] {
        assert!(!texts.iter().any(|text| text.contains(secret)), "{secret} in {texts:?}");
    }
    assert_eq!(texts[0], "signed in with ***");
    assert_eq!(texts[1], "***", "a colour code does not hide a secret");
    assert!(texts[4].ends_with("\nnext line"), "line breaks stay: {:?}", texts[4]);
    assert_eq!(texts[6], "red\tand\u{FFFD} quiet");
}

#[tokio::test]
async fn a_secret_across_the_cut_of_a_huge_line_does_not_come_through_in_half() {
    let desk = desk();
    let chunk = origin(1);
    // Colour codes make the raw text longer than what is left of it, so that either cut falls near the secret.
    for pad in (0..4_096).step_by(64) {
        let text =
            format!("{}{}hunter-two{}", "\u{1b}[0m".repeat(pad), "x".repeat(MAX_LINE_BYTES - pad), "y".repeat(40_000));
        desk.say(&chunk, &text);
    }
    desk.book.flush().await;
    for text in desk.texts(&chunk).await {
        assert!(text.len() <= MAX_LINE_BYTES && text.ends_with(CUT_MARK));
        assert!(!text.contains("hun"), "{}", &text[text.len() - 60..]);
    }
}

/// Proves: G7.
#[tokio::test]
async fn logging_never_waits_for_a_store_that_hangs_and_the_gap_is_counted() {
    let desk = desk();
    let held = desk.store.gate.acquire().await.unwrap();
    let (flood, neighbour) = (origin(1), origin(1));
    // Nothing here awaits, so a call that waits for the store would never come back.
    for line in 0..20_000 {
        desk.say(&flood, &format!("line {line}"));
    }
    desk.say(&neighbour, "also mine");
    drop(held);
    desk.book.flush().await;
    assert_eq!(desk.texts(&neighbour).await, ["also mine"], "a flood loses its own lines and not those of others");
    let part = desk.kept(&flood).await;
    assert!(part.dropped >= 20_000 - 8_192, "{}", part.dropped);
    assert_eq!(part.newest, 20_000, "each line has a number, and those that were lost are missing");
}

/// Proves: G7.
#[tokio::test]
async fn what_an_outage_costs_is_counted_when_the_store_comes_back() {
    let desk = desk();
    let chunk = origin(1);
    desk.say(&chunk, "before");
    desk.book.flush().await;
    desk.store.gone.store(true, Ordering::SeqCst);
    for line in 0..7 {
        desk.say(&chunk, &format!("lost {line}"));
    }
    desk.book.flush().await;
    assert_eq!(desk.texts(&chunk).await, ["before"]);
    desk.store.gone.store(false, Ordering::SeqCst);
    // No further line is needed for the loss to show.
    let part =
        eventually("the loss shows", LIMIT, async || Some(desk.kept(&chunk).await).filter(|part| part.dropped == 7));
    assert_eq!(part.await.newest, 8);
    desk.say(&chunk, "after");
    desk.book.flush().await;
    let seqs: Vec<i64> = desk.kept(&chunk).await.items.iter().map(|line| line.seq).collect();
    assert_eq!(seqs, [1, 9]);
}

#[tokio::test]
async fn lines_that_cannot_be_stored_cost_their_neighbours_nothing_and_are_not_tried_for_ever() {
    let desk = desk();
    let (bad, good) = (origin(1), origin(1));
    *desk.store.poison.lock().unwrap() = Some(bad.task);
    desk.say(&bad, "poison");
    desk.say(&good, "fine");
    desk.book.flush().await;
    assert_eq!(desk.texts(&good).await, ["fine"]);
    let tries = desk.store.appends.load(Ordering::SeqCst);
    assert!(tries <= 3, "{tries}");
    eventually("the loss shows", LIMIT, async || (desk.kept(&bad).await.dropped == 1).then_some(())).await;
    assert_eq!(desk.store.appends.load(Ordering::SeqCst), tries);
}

#[tokio::test]
async fn a_writer_that_was_taken_over_writes_nothing_and_tells_nobody() {
    let desk = desk();
    let new = origin(5);
    let old = Origin { token: FencingToken(4), ..new.clone() };
    desk.say(&new, "mine");
    desk.book.flush().await;
    let mut watcher = desk.bus.subscribe();
    desk.say(&old, "late");
    desk.book.flush().await;
    assert_eq!(desk.texts(&new).await, ["mine"]);
    desk.say(&new, "mine too");
    let Some(Signal::LogGrew { newest, .. }) = watcher.next().await else { panic!("a signal of another kind") };
    assert_eq!(newest, 2, "the first signal is about the owner's line");
}

#[tokio::test]
async fn what_was_taken_is_written_after_the_last_holder_is_gone() {
    let desk = desk();
    let chunk = origin(1);
    desk.say(&chunk, "last words");
    let Desk { store, book, .. } = desk;
    drop(book);
    eventually("the line is kept", LIMIT, async || {
        let params = LogParams { limit: 1, ..LogParams::default() };
        (store.part(chunk.task, params).await.unwrap().items.len() == 1).then_some(())
    })
    .await;
}
