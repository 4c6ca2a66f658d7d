//! The row-level steps that concern parents and children.

use super::super::super::row::{self, Columns};
use super::super::super::tx::SlotKey;
use super::super::super::value::values;
use super::super::super::{Result, StoreError};
use super::super::driver::Session;
use super::{SqlTx, task_ids, understood};
use crate::core::ids::TaskId;
use crate::core::task::Task;
use std::collections::{BTreeMap, BTreeSet};

impl<S: Session> SqlTx<S> {
    /// Tasks by id, locked without waiting, with the concurrency keys that they hold.
    pub(super) async fn lock_free(&mut self, ids: &[TaskId]) -> Result<Vec<Task>> {
        let rows = self.session.rows(&self.statements.lock_free_tasks, values![ids]).await?;
        let locked = rows.len();
        let found = understood(rows)?;
        let there = match locked {
            all if all == ids.len() => all,
            _ => self.session.rows(&self.statements.revisions, values![ids]).await?.len(),
        };
        let held = |t: &Task| t.concurrency.as_ref().map(|c| (t.tenant.clone(), c.key.clone()));
        let keys: BTreeSet<SlotKey> = found.iter().filter(|t| t.slot_held || t.gated).filter_map(held).collect();
        let keys: Vec<SlotKey> = keys.into_iter().collect();
        if locked < there || (!keys.is_empty() && !self.session.locked_elsewhere(&keys).await?.is_empty()) {
            return Err(StoreError::Conflict("a task is being changed at the same time".into()));
        }
        Ok(found)
    }

    /// Open children of stopped parents, of these or of all.
    pub(super) async fn forsaken_children(&mut self, parents: &[TaskId], limit: usize) -> Result<Vec<TaskId>> {
        task_ids(if parents.is_empty() {
            self.session.rows(&self.statements.forsaken, values![limit]).await?
        } else {
            self.session.rows(&self.statements.forsaken_of, values![parents, limit]).await?
        })
    }

    /// What is done of the children of each parent.
    pub(super) async fn done_by_parent(&mut self, parents: &[TaskId]) -> Result<BTreeMap<TaskId, i64>> {
        let rows = self.session.rows(&self.statements.done_of_children, values![parents]).await?;
        let sum = |mut r: S::Row| Ok((row::task_id(&r.text()?.unwrap_or_default())?, r.int()?.unwrap_or_default()));
        rows.into_iter().map(sum).collect()
    }
}
