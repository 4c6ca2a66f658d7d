//! Task logs over SQL, written once for all databases.
//!
//! One append is one transaction of five statements at most, however many tasks and lines it carries.

use super::ledger::{Head, Row};
use super::statements::LogStatements;
use super::{Append, Appended, Level, LogLimits, LogLine, LogParams, LogPart, LogStore, MAX_PART};
use crate::core::ids::TaskId;
use crate::core::time::Millis;
use crate::store::Result;
use crate::store::relational::driver::{Driver, Session};
use crate::store::row::{self, Columns};
use crate::store::sql::like;
use crate::store::value::{Batch, values};
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};

/// Lines looked at in one step when the oldest have to go.
const TRIM_STEP: usize = 1_000;

/// Task logs in a database.
pub struct SqlLogs<D> {
    pub(super) driver: D,
    pub(super) limits: LogLimits,
    pub(super) statements: &'static LogStatements,
}

/// What an append works on: loaded first, changed in memory, written back at its end.
struct Books<S> {
    session: S,
    statements: &'static LogStatements,
    heads: BTreeMap<TaskId, Head>,
    tenants: BTreeMap<String, i64>,
}

impl<S: Session> Books<S> {
    async fn load(mut self, tasks: &[TaskId], tenants: BTreeSet<String>) -> Result<Self> {
        for mut r in self.session.rows(&self.statements.heads, values![tasks]).await? {
            let task = row::task_id(&r.text()?.unwrap_or_default())?;
            let head = Head {
                tenant: r.text()?.unwrap_or_default(),
                token: r.int()?.unwrap_or_default(),
                newest: r.int()?.unwrap_or_default(),
                bytes: r.int()?.unwrap_or_default(),
                dropped: r.int()?.unwrap_or_default(),
            };
            self.heads.insert(task, head);
        }
        let held = self.heads.values().map(|head| &head.tenant);
        let names: BTreeSet<String> = tenants.iter().chain(held).cloned().collect();
        let names: Vec<String> = names.into_iter().collect();
        for mut r in self.session.rows(&self.statements.tenants, values![names.as_slice()]).await? {
            self.tenants.insert(r.text()?.unwrap_or_default(), r.int()?.unwrap_or_default());
        }
        Ok(self)
    }

    async fn put(&mut self, rows: &[Row]) -> Result<()> {
        let batch = Batch::of(rows, |row, to| {
            to.text(Some(&row.task.to_string()));
            to.int(Some(row.seq));
            to.int(Some(row.line.at.0));
            to.int(Some(row.line.level.rank()));
            to.text(Some(row.line.source));
            to.int(Some(row.line.chunk));
            to.int(Some(row.bytes));
            to.text(Some(&row.line.message));
        });
        if batch.rows() > 0 {
            self.session.run(&self.statements.put_lines, values![batch]).await?;
        }
        Ok(())
    }

    /// Writes everything back and ends the transaction.
    async fn save(mut self) -> Result<()> {
        let heads = Batch::of(&self.heads, |(task, head), to| {
            to.text(Some(&task.to_string()));
            to.text(Some(&head.tenant));
            to.int(Some(head.token));
            to.int(Some(head.newest));
            to.int(Some(head.bytes));
            to.int(Some(head.dropped));
        });
        let tenants = Batch::of(&self.tenants, |(tenant, bytes), to| {
            to.text(Some(tenant));
            to.int(Some(*bytes));
        });
        for (sql, batch) in [(&self.statements.put_heads, heads), (&self.statements.put_tenants, tenants)] {
            if batch.rows() > 0 {
                self.session.run(sql, values![batch]).await?;
            }
        }
        self.session.commit().await
    }

    /// Drops the oldest lines of a task until `excess` bytes are gone.
    async fn trim(&mut self, task: TaskId, excess: i64) -> Result<()> {
        let (mut lines, mut bytes, mut last) = (0, 0, 0);
        while bytes < excess {
            let oldest = self.session.rows(&self.statements.oldest, values![task, last, TRIM_STEP]).await?;
            if oldest.is_empty() {
                break;
            }
            for mut r in oldest {
                if bytes >= excess {
                    break;
                }
                last = r.int()?.unwrap_or_default();
                (lines, bytes) = (lines + 1, bytes + r.int()?.unwrap_or_default());
            }
        }
        self.session.run(&self.statements.drop_lines, values![task, last]).await?;
        let head = self.heads.entry(task).or_default();
        head.let_go(self.tenants.entry(head.tenant.clone()).or_default(), lines, bytes);
        Ok(())
    }
}

impl<D: Driver> SqlLogs<D> {
    /// A writing transaction with what it needs of these tasks and tenants.
    async fn open_books(&self, tasks: &[TaskId], tenants: BTreeSet<String>) -> Result<Books<D::Session>> {
        let (session, statements) = (self.driver.begin_logs().await?, self.statements);
        let books = Books { session, statements, heads: BTreeMap::new(), tenants: BTreeMap::new() };
        books.load(tasks, tenants).await
    }
}

#[async_trait]
impl<D: Driver> LogStore for SqlLogs<D> {
    async fn append(&self, items: Vec<Append>) -> Result<Vec<Appended>> {
        let tasks: Vec<TaskId> = items.iter().map(|item| item.task).collect();
        let mut books = self.open_books(&tasks, items.iter().map(|item| item.tenant.clone()).collect()).await?;
        let (mut answers, mut rows) = (Vec::with_capacity(items.len()), Vec::new());
        for append in items {
            let held = books.tenants.entry(append.tenant.clone()).or_default();
            let head = books.heads.entry(append.task).or_default();
            answers.push(head.admit(held, &self.limits, append, &mut rows));
        }
        books.put(&rows).await?;
        for task in tasks {
            let excess = books.heads.get(&task).map_or(0, |head| head.excess(&self.limits));
            if excess > 0 {
                books.trim(task, excess).await?;
            }
        }
        books.save().await?;
        Ok(answers)
    }

    async fn part(&self, task: TaskId, params: LogParams) -> Result<LogPart> {
        let mut look = self.driver.look().await?;
        let head = look.rows(&self.statements.head, values![task]).await?;
        let Some(mut head) = head.into_iter().next() else { return Ok(LogPart::default()) };
        let (newest, dropped) = (head.int()?.unwrap_or_default(), head.int()?.unwrap_or_default());
        let backwards = params.before.is_some();
        let statement = if backwards { &self.statements.lines_before } else { &self.statements.lines_after };
        let text = params.text.filter(|text| !text.is_empty());
        let values = values![
            task,
            params.after.unwrap_or(0),
            params.before.unwrap_or(i64::MAX),
            params.level.unwrap_or(Level::Debug).rank(),
            text.as_deref().map(like),
            params.limit.min(MAX_PART),
        ];
        let rows = look.rows(statement, values).await?;
        let mut items = rows.into_iter().map(line_of).collect::<Result<Vec<_>>>()?;
        if backwards {
            items.reverse();
        }
        Ok(LogPart { items, dropped, newest })
    }

    async fn newest(&self, tasks: &[TaskId]) -> Result<BTreeMap<TaskId, i64>> {
        let mut found = BTreeMap::new();
        for mut r in self.driver.rows(&self.statements.heads, values![tasks]).await? {
            let task = row::task_id(&r.text()?.unwrap_or_default())?;
            let (_tenant, _token) = (r.text()?, r.int()?);
            found.insert(task, r.int()?.unwrap_or_default());
        }
        Ok(found)
    }

    async fn note_dropped(&self, task: TaskId, count: i64) -> Result<()> {
        let mut books = self.open_books(&[task], BTreeSet::new()).await?;
        books.heads.entry(task).or_default().lose(count);
        books.save().await
    }

    async fn delete(&self, tasks: &[TaskId]) -> Result<()> {
        for task in tasks {
            let mut books = self.open_books(&[*task], BTreeSet::new()).await?;
            for (_, head) in std::mem::take(&mut books.heads) {
                *books.tenants.entry(head.tenant).or_default() -= head.bytes;
            }
            books.session.run(&self.statements.drop_lines, values![*task, i64::MAX]).await?;
            books.session.run(&self.statements.drop_head, values![*task]).await?;
            books.save().await?;
        }
        Ok(())
    }
}

fn line_of(mut r: impl Columns) -> Result<LogLine> {
    Ok(LogLine {
        seq: r.int()?.unwrap_or_default(),
        at: Millis(r.int()?.unwrap_or_default()),
        level: Level::of_rank(r.int()?.unwrap_or_default()),
        source: r.text()?.unwrap_or_default(),
        chunk: r.int()?.unwrap_or_default(),
        message: r.text()?.unwrap_or_default(),
    })
}
