//! The loop that empties the queue into the store and tells watchers.
//!
//! Must never end because of the store, and must never keep a line for a second try in memory: what the store does not take
//! after a few tries is counted as lost.

use super::Origin;
use super::queue::{Shelf, Waiting};
use crate::bus::{LocalBus, Signal};
use crate::core::ids::{FencingToken, TaskId};
use crate::core::logline::{self, CUT_MARK, MAX_LINE_BYTES};
use crate::core::metric;
use crate::core::redact::Redactor;
use crate::engine::measure;
use crate::store::Result;
use crate::store::logs::{Append, Appended, LogStore};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a line waits for company.
const BATCH_WAIT: Duration = Duration::from_millis(200);
/// How often a busy store is tried again, and the wait before the n-th time.
const RETRIES: u32 = 3;
const RETRY_STEP: Duration = Duration::from_millis(50);
/// How long after a failure the losses are told to the store again.
const LOSS_WAIT: Duration = Duration::from_secs(1);
/// The end of a text that was cut before masking is not kept: a secret may stand across the cut.
const UNSAFE_END_BYTES: usize = 4 * 1024;

pub(super) struct Writer {
    store: Arc<dyn LogStore>,
    bus: LocalBus,
    redactor: Arc<Redactor>,
    shelf: Arc<Shelf>,
    /// The last word of the store was a failure.
    down: bool,
}

impl Writer {
    pub(super) fn new(store: Arc<dyn LogStore>, bus: LocalBus, redactor: Redactor, shelf: Arc<Shelf>) -> Self {
        Self { store, bus, redactor: Arc::new(redactor), shelf, down: false }
    }

    /// Runs until the queue is closed and empty; `done` follows the number of lines that were seen to.
    pub(super) async fn run(mut self, done: watch::Sender<u64>) {
        loop {
            let work = self.shelf.until(|q| !q.is_empty() || q.closed || (!self.down && !q.is_told()));
            if self.down {
                let _ = timeout(LOSS_WAIT, work).await;
            } else {
                work.await;
            }
            let enough = self.shelf.until(|q| q.is_empty() || q.is_full_batch() || q.urgent || q.closed);
            let _ = timeout(BATCH_WAIT, enough).await;
            let (batch, reached) = self.shelf.queue().take();
            self.tell_losses().await;
            if !batch.is_empty() {
                self.write(batch).await;
            }
            done.send_replace(reached);
            let queue = self.shelf.queue();
            if queue.closed && queue.is_empty() && (queue.is_told() || self.down) {
                return;
            }
        }
    }

    /// Tells the store what was lost, as far as it listens.
    async fn tell_losses(&mut self) {
        let mut lost = self.shelf.queue().take_lost();
        while let Some((task, count)) = lost.pop_first() {
            let told = self.store.note_dropped(task, count).await;
            self.hear(&told);
            if told.is_err_and(|e| e.is_transient()) {
                lost.insert(task, count);
                break;
            }
        }
        let mut queue = self.shelf.queue();
        lost.into_iter().for_each(|(task, count)| queue.lose(task, count));
    }

    async fn write(&mut self, batch: Vec<Waiting>) {
        let redactor = self.redactor.clone();
        // Masking long lines takes a while, and the tasks share the threads of the runtime.
        let prepared = tokio::task::spawn_blocking(move || prepare(&redactor, batch)).await;
        let appends = prepared.expect("cleaning text does not panic");
        match self.patient(&appends).await {
            Ok(answers) => self.announce(&appends, answers),
            Err(e) if e.is_transient() || appends.len() == 1 => self.lose(&appends),
            Err(_) => {
                for append in appends {
                    match self.patient(std::slice::from_ref(&append)).await {
                        Ok(answers) => self.announce(&[append], answers),
                        Err(_) => self.lose(&[append]),
                    }
                }
            }
        }
    }

    async fn patient(&mut self, appends: &[Append]) -> Result<Vec<Appended>> {
        let mut attempt = 0;
        loop {
            match self.store.append(appends.to_vec()).await {
                Err(e) if e.is_transient() && attempt < RETRIES && !self.down => {
                    attempt += 1;
                    tokio::time::sleep(RETRY_STEP * attempt).await;
                }
                answer => {
                    self.hear(&answer);
                    return answer;
                }
            }
        }
    }

    fn announce(&self, appends: &[Append], answers: Vec<Appended>) {
        for (append, answer) in appends.iter().zip(answers) {
            if let Appended::From(first) = answer {
                self.bus.publish(Signal::LogGrew { task: append.task, newest: first + line_count(append) - 1 });
            }
        }
    }

    fn lose(&self, appends: &[Append]) {
        let mut queue = self.shelf.queue();
        for append in appends {
            measure::more(metric::LOG_LINES_DROPPED, append.lines.len());
            queue.lose(append.task, line_count(append));
        }
    }

    /// Notes whether the store works, and says so once when that changes.
    fn hear<T>(&mut self, answer: &Result<T>) {
        match answer {
            Ok(_) => {
                if std::mem::take(&mut self.down) {
                    tracing::info!("task logs are written again");
                }
            }
            Err(e) => {
                if !std::mem::replace(&mut self.down, true) {
                    tracing::warn!("task logs are lost until their store works again: {e}");
                }
            }
        }
    }
}

fn line_count(append: &Append) -> i64 {
    i64::try_from(append.lines.len()).expect("a batch is small")
}

/// Lines as the store takes them, those of one chunk together; older tokens first.
fn prepare(redactor: &Redactor, batch: Vec<Waiting>) -> Vec<Append> {
    let mut appends = BTreeMap::<(TaskId, FencingToken), Append>::new();
    for Waiting { origin: Origin { task, tenant, token, .. }, mut line, cut } in batch {
        line.message = harmless(redactor, &line.message, cut);
        let empty = || Append { tenant: tenant.to_string(), task, token, lines: Vec::new() };
        appends.entry((task, token)).or_insert_with(empty).lines.push(line);
    }
    appends.into_values().collect()
}

fn harmless(redactor: &Redactor, text: &str, cut: bool) -> String {
    let plain = logline::clean(text);
    let mut text = redactor.clean(&plain).into_owned();
    if cut {
        let end = text.len().saturating_sub(UNSAFE_END_BYTES).min(MAX_LINE_BYTES - CUT_MARK.len());
        text.truncate(text.floor_char_boundary(end));
        text.push_str(CUT_MARK);
    }
    logline::fit(text)
}
