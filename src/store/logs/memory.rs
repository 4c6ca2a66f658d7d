//! The reference model of the log store: what the others have to do, without a database. Nothing survives the process.

use super::ledger::{Head, bytes_of};
use super::{Append, Appended, LogLimits, LogLine, LogParams, LogPart, LogStore, MAX_PART};
use crate::core::ids::TaskId;
use crate::store::Result;
use async_trait::async_trait;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Task logs in memory.
pub struct MemoryLogs {
    limits: LogLimits,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    logs: BTreeMap<TaskId, (Head, VecDeque<LogLine>)>,
    tenants: HashMap<String, i64>,
}

impl MemoryLogs {
    /// An empty store.
    #[must_use]
    pub fn new(limits: LogLimits) -> Self {
        Self { limits, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl LogStore for MemoryLogs {
    async fn append(&self, items: Vec<Append>) -> Result<Vec<Appended>> {
        let kept = &mut *self.kept();
        let mut answers = Vec::with_capacity(items.len());
        for append in items {
            let (head, lines) = kept.logs.entry(append.task).or_default();
            let held = kept.tenants.entry(append.tenant.clone()).or_default();
            let mut rows = Vec::new();
            answers.push(head.admit(held, &self.limits, append, &mut rows));
            lines.extend(rows.into_iter().map(|row| LogLine {
                seq: row.seq,
                at: row.line.at,
                level: row.line.level,
                source: row.line.source.to_owned(),
                chunk: row.line.chunk,
                message: row.line.message,
            }));
            let (excess, mut gone) = (head.excess(&self.limits), 0);
            while gone < excess
                && let Some(line) = lines.pop_front()
            {
                let bytes = bytes_of(&line.message);
                head.let_go(held, 1, bytes);
                gone += bytes;
            }
        }
        Ok(answers)
    }

    async fn part(&self, task: TaskId, params: LogParams) -> Result<LogPart> {
        let kept = self.kept();
        let Some((head, lines)) = kept.logs.get(&task) else { return Ok(LogPart::default()) };
        let text = params.text.unwrap_or_default().to_ascii_lowercase();
        let wanted = |line: &&LogLine| {
            line.seq > params.after.unwrap_or(0)
                && line.seq < params.before.unwrap_or(i64::MAX)
                && line.level >= params.level.unwrap_or(super::Level::Debug)
                && line.message.to_ascii_lowercase().contains(&text)
        };
        let limit = params.limit.min(MAX_PART);
        let items = if params.before.is_some() {
            let mut newest: Vec<LogLine> = lines.iter().rev().filter(wanted).take(limit).cloned().collect();
            newest.reverse();
            newest
        } else {
            lines.iter().filter(wanted).take(limit).cloned().collect()
        };
        Ok(LogPart { items, dropped: head.dropped, newest: head.newest })
    }

    async fn note_dropped(&self, task: TaskId, count: i64) -> Result<()> {
        self.kept().logs.entry(task).or_default().0.lose(count);
        Ok(())
    }

    async fn delete(&self, tasks: &[TaskId]) -> Result<()> {
        let kept = &mut *self.kept();
        for task in tasks {
            if let Some((head, _)) = kept.logs.remove(task)
                && let Some(held) = kept.tenants.get_mut(&head.tenant)
            {
                *held -= head.bytes;
            }
        }
        Ok(())
    }
}
