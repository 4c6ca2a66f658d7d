//! The tail of a subscribed task's log: the last lines first, then what grows, read from the log store by a cursor.
//!
//! The only part of push with a cursor. Lines are never kept here: the bus tells up to where a log has grown, and the next
//! reading, at most four times a second, brings what is there. A tail that is far behind starts over at the end, and the
//! client sees the gap by the numbers. A log store that does not answer costs the lines a moment, never the connection.

use super::super::protocol::ServerFrame;
use super::super::socket::Socket;
use super::{End, Session};
use crate::core::ids::TaskId;
use crate::core::time::Mono;
use crate::store::logs::{LogLine, LogParams, LogPart};

/// How long after a failed reading the log store is asked again, ms.
const AGAIN_MS: u64 = 1_000;
/// What a line costs in JSON beside its text, bytes, at most about.
const LINE_BYTES: usize = 140;

/// Where a tail is.
#[derive(Debug)]
pub(super) struct Tail {
    /// The last seq that was sent; absent before the first reading.
    cursor: Option<i64>,
    /// The newest seq that is known of.
    newest: i64,
    /// When to read next, if there is something to read.
    due: Option<Mono>,
    read_at: Option<Mono>,
}

impl Tail {
    /// A tail that goes on after `cursor`.
    pub fn new(cursor: Option<i64>, now: Mono) -> Self {
        Self { cursor: cursor.map(|seq| seq.max(0)), newest: 0, due: Some(now), read_at: None }
    }

    /// Something may be there.
    pub fn look(&mut self, now: Mono) {
        self.due.get_or_insert(now);
    }

    /// The log has grown up to `newest`.
    fn grew(&mut self, newest: i64, now: Mono, every_ms: u64) {
        self.newest = self.newest.max(newest);
        if self.cursor.is_none_or(|cursor| self.newest > cursor) && self.due.is_none() {
            self.due = Some(self.read_at.map_or(now, |at| now.max(at + every_ms)));
        }
    }

    /// What to read.
    fn params(&self, limit: usize, behind: i64) -> LogParams {
        match self.cursor {
            Some(cursor) if self.newest - cursor <= behind => {
                LogParams { after: Some(cursor), limit, ..LogParams::default() }
            }
            _ => LogParams { before: Some(i64::MAX), limit, ..LogParams::default() },
        }
    }

    /// What was read.
    fn took(&mut self, part: &LogPart, limit: usize, now: Mono, every_ms: u64) {
        self.newest = self.newest.max(part.newest);
        let last = part.items.last().map_or(0, |line| line.seq);
        let full = part.items.len() >= limit && last < self.newest;
        let end = if full { last } else { last.max(part.newest) };
        self.cursor = Some(self.cursor.unwrap_or(0).max(end));
        self.read_at = Some(now);
        self.due = full.then_some(now + every_ms);
    }
}

impl<S: Socket> Session<'_, S> {
    /// When a tail has to be read.
    pub(super) fn tail_due(&self) -> Option<Mono> {
        if !self.visible {
            return None;
        }
        self.topics.values().flatten().filter_map(|tail| tail.due).min()
    }

    /// Sends the lines that are due.
    pub(super) async fn follow_logs(&mut self) -> Result<(), End> {
        let (now, every_ms) = (self.now(), self.hub.limits.log_ms);
        for (id, newest) in self.place.mailbox.take_logs() {
            if let Some(Some(tail)) = self.topics.get_mut(&id) {
                tail.grew(newest, now, every_ms);
            }
        }
        if !self.visible {
            return Ok(());
        }
        let is_due = |tail: &Tail| tail.due.is_some_and(|due| due <= now);
        let due: Vec<TaskId> =
            self.topics.iter().filter(|(_, tail)| tail.as_ref().is_some_and(is_due)).map(|(id, _)| *id).collect();
        for id in due {
            self.read_tail(id).await?;
        }
        Ok(())
    }

    async fn read_tail(&mut self, id: TaskId) -> Result<(), End> {
        let limits = &self.hub.limits;
        let (limit, every_ms, now) = (limits.log_lines, limits.log_ms, self.hub.clock.mono());
        let Some(Some(tail)) = self.topics.get_mut(&id) else { return Ok(()) };
        let Ok(part) = self.hub.logs.part(id, tail.params(limit, limits.log_behind)).await else {
            tail.due = Some(now + AGAIN_MS);
            return Ok(());
        };
        tail.took(&part, limit, now, every_ms);
        let mut rest = &part.items[..];
        while let [first, ..] = rest {
            let (lines, later) = rest.split_at(fitting(rest, limits.frame_bytes));
            let to = lines.last().map_or(first.seq, |line| line.seq);
            self.wire.send(&ServerFrame::Log { task: id, from: first.seq, to, lines }).await?;
            rest = later;
        }
        Ok(())
    }
}

/// How many of these lines fit into one frame; at least one.
fn fitting(lines: &[LogLine], most: usize) -> usize {
    let mut bytes = 0;
    let fits = |line: &&LogLine| {
        bytes += line.message.len() + LINE_BYTES;
        bytes <= most
    };
    lines.iter().take_while(fits).count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::Millis;
    use crate::store::logs::Level;

    fn part(seqs: std::ops::RangeInclusive<i64>, newest: i64) -> LogPart {
        let line = |seq| LogLine {
            seq,
            at: Millis(0),
            level: Level::Info,
            source: "handler".into(),
            chunk: 1,
            message: "x".into(),
        };
        LogPart { items: seqs.map(line).collect(), dropped: 0, newest }
    }

    #[test]
    fn a_tail_begins_with_the_last_lines_and_goes_on_after_them() {
        let mut tail = Tail::new(None, Mono(0));
        assert_eq!(tail.params(200, 2_000).before, Some(i64::MAX));
        tail.took(&part(801..=1_000, 1_000), 200, Mono(0), 250);
        assert_eq!((tail.cursor, tail.due), (Some(1_000), None));
        tail.grew(1_003, Mono(10), 250);
        assert_eq!(tail.due, Some(Mono(250)), "four readings a second are enough");
        assert_eq!(tail.params(200, 2_000).after, Some(1_000));
        tail.took(&part(1_001..=1_003, 1_003), 200, Mono(250), 250);
        tail.grew(1_003, Mono(300), 250);
        assert_eq!(tail.due, None, "nothing new");
    }

    #[test]
    fn a_tail_that_is_behind_reads_on_and_one_that_is_far_behind_starts_over() {
        let mut tail = Tail::new(Some(100), Mono(0));
        tail.took(&part(101..=300, 900), 200, Mono(0), 250);
        assert_eq!((tail.cursor, tail.due), (Some(300), Some(Mono(250))));
        tail.grew(5_000, Mono(10), 250);
        assert_eq!(tail.params(200, 2_000).before, Some(i64::MAX));
        tail.took(&part(4_801..=5_000, 5_000), 200, Mono(250), 250);
        assert_eq!((tail.cursor, tail.due), (Some(5_000), None));
    }

    #[test]
    fn lines_that_were_dropped_at_the_end_do_not_keep_a_tail_busy() {
        let mut tail = Tail::new(Some(10), Mono(0));
        tail.took(&part(11..=11, 15), 200, Mono(0), 250);
        assert_eq!((tail.cursor, tail.due), (Some(15), None));
    }
}
