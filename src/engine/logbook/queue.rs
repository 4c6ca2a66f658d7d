//! The lines that wait for the loop, bounded in number and in bytes, for all tasks and for each; and what was lost, bounded in
//! the number of tasks.
//!
//! Many put in, one takes out. Never holds its lock over a wait.

use super::Origin;
use crate::core::ids::TaskId;
use crate::core::logline::MAX_LINE_BYTES;
use crate::core::metric;
use crate::core::time::Millis;
use crate::engine::measure;
use crate::store::logs::{Level, NewLine};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The most lines of one commit.
pub(super) const MAX_BATCH: usize = 500;
/// The most that may wait: lines, and bytes of their text.
const MAX_LINES: usize = 8_192;
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// The most tasks whose losses are remembered until the store listens again. Those of further tasks are counted in the metric
/// alone: an outage of hours must not grow the memory.
const MAX_LOSERS: usize = 65_536;
/// What is taken of a text that is longer than a line may be. More than a line, so that colour codes do not count.
const RAW_BYTES: usize = 2 * MAX_LINE_BYTES;

/// A line that waits, as it came, but not longer than [`RAW_BYTES`].
pub(super) struct Waiting {
    pub origin: Origin,
    pub line: NewLine,
    /// Its end is missing already.
    pub cut: bool,
}

impl Waiting {
    pub(super) fn new(origin: &Origin, at: Millis, level: Level, source: &'static str, text: &str) -> Self {
        let end = text.floor_char_boundary(RAW_BYTES);
        let line = NewLine { at, level, source, chunk: origin.chunk, message: text[..end].to_owned() };
        Self { origin: origin.clone(), line, cut: end < text.len() }
    }
}

/// The queue with the bell that rings when it changes.
#[derive(Default)]
pub(super) struct Shelf {
    queue: Mutex<Queue>,
    bell: Notify,
}

impl Shelf {
    pub(super) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, waiting: Waiting) {
        self.queue().put(waiting);
        self.bell.notify_one();
    }

    /// Asks for everything to be written now; answers the number that has to be reached.
    pub(super) fn hurry(&self) -> u64 {
        let asked = {
            let mut queue = self.queue();
            queue.urgent = true;
            queue.seen
        };
        self.bell.notify_one();
        asked
    }

    pub(super) fn close(&self) {
        self.queue().closed = true;
        self.bell.notify_one();
    }

    /// Waits until the queue is as wished. Only the loop waits here: the bell wakes one.
    pub(super) async fn until(&self, wished: impl Fn(&Queue) -> bool) {
        while !wished(&self.queue()) {
            self.bell.notified().await;
        }
    }
}

/// What waits.
#[derive(Default)]
pub(super) struct Queue {
    lines: VecDeque<Waiting>,
    bytes: usize,
    /// What waits of each task: lines, bytes.
    shares: HashMap<TaskId, (usize, usize)>,
    /// Lines of each task that are lost and that the store was not told of yet.
    lost: BTreeMap<TaskId, i64>,
    /// Lines that ever came, lost ones too.
    seen: u64,
    /// Somebody waits for the queue to be emptied.
    pub urgent: bool,
    /// Nobody will put anything in any more.
    pub closed: bool,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether there is enough for a full commit.
    pub(super) fn is_full_batch(&self) -> bool {
        self.lines.len() >= MAX_BATCH
    }

    fn put(&mut self, waiting: Waiting) {
        let (task, size) = (waiting.origin.task, waiting.line.message.len());
        let (lines, bytes) = self.shares.get(&task).copied().unwrap_or_default();
        self.seen += 1;
        let room = self.lines.len() < MAX_LINES
            && self.bytes + size <= MAX_BYTES
            && lines < MAX_LINES / 2
            && bytes + size <= MAX_BYTES / 2;
        if room {
            self.shares.insert(task, (lines + 1, bytes + size));
            self.bytes += size;
            self.lines.push_back(waiting);
        } else {
            measure::more(metric::LOG_LINES_DROPPED, 1);
            self.lose(task, 1);
        }
    }

    /// The oldest lines, at most a batch, and the number that is reached when they are written.
    pub(super) fn take(&mut self) -> (Vec<Waiting>, u64) {
        let count = self.lines.len().min(MAX_BATCH);
        let batch: Vec<Waiting> = self.lines.drain(..count).collect();
        for Waiting { origin, line, .. } in &batch {
            self.bytes -= line.message.len();
            if let Some(share) = self.shares.get_mut(&origin.task) {
                *share = (share.0 - 1, share.1 - line.message.len());
                if share.0 == 0 {
                    self.shares.remove(&origin.task);
                }
            }
        }
        self.urgent &= !self.lines.is_empty();
        (batch, self.seen - self.lines.len() as u64)
    }

    pub(super) fn lose(&mut self, task: TaskId, count: i64) {
        if self.lost.len() < MAX_LOSERS || self.lost.contains_key(&task) {
            *self.lost.entry(task).or_default() += count;
        }
    }

    /// Nothing is lost that the store was not told of.
    pub(super) fn is_told(&self) -> bool {
        self.lost.is_empty()
    }

    /// What some tasks have lost, to tell the store; not all of them, so that lines are not held up for long.
    pub(super) fn take_lost(&mut self) -> BTreeMap<TaskId, i64> {
        match self.lost.keys().nth(MAX_BATCH).copied() {
            None => std::mem::take(&mut self.lost),
            Some(from) => {
                let later = self.lost.split_off(&from);
                std::mem::replace(&mut self.lost, later)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_ever_more_tasks_take_no_more_memory_and_are_told_some_at_a_time() {
        let mut queue = Queue::default();
        let first = TaskId::new();
        queue.lose(first, 1);
        (0..MAX_LOSERS).for_each(|_| queue.lose(TaskId::new(), 1));
        queue.lose(first, 1);
        assert_eq!(queue.lost.len(), MAX_LOSERS);
        let (mut told, mut of_first) = (0, 0);
        while !queue.is_told() {
            let some = queue.take_lost();
            assert!((1..=MAX_BATCH).contains(&some.len()));
            told += some.len();
            of_first += some.get(&first).copied().unwrap_or_default();
        }
        assert_eq!((told, of_first), (MAX_LOSERS, 2), "a task that is remembered is counted on");
    }
}
