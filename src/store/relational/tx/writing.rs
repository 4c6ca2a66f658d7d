//! What a transaction writes of tasks: as the statements of a batch, and as what the commit tells others.

use super::super::super::row;
use super::super::super::sql::Batched;
use super::super::super::tx::{DocumentKind, Rows};
use super::super::super::value::Batch;
use super::super::super::{Result, StoreError};
use super::super::driver::Session;
use super::SqlTx;
use crate::core::ids::{Head, TaskId};
use crate::core::task::Task;
use std::collections::BTreeMap;

/// Batched statements, and how many rows each of them touches at least: new rows must not have been there already.
pub(super) struct Writes {
    pub statements: Vec<(&'static Batched, Batch)>,
    pub least: Vec<u64>,
}

impl<S: Session> SqlTx<S> {
    /// Notes for the commit what was written.
    fn note(&mut self, tasks: &[Task]) {
        for task in tasks {
            if task.under_way() { self.under_way.push(task.clone()) } else { self.at_rest.push(task.id) }
        }
    }

    /// What is to be run so that this is written. Where heads move with it, the tasks name the place of their owner meanwhile.
    pub(super) fn writes(&self, rows: &mut Rows) -> Writes {
        if S::MOVES_HEADS {
            rows.set_heads(|n| Head(n as i64 + 1));
        }
        let s = self.statements;
        // One statement cannot write a row twice: of two bodies of one document, the later one counts.
        let documents: BTreeMap<_, _> = rows.documents.iter().map(|d| ((d.task, d.kind), &d.body)).collect();
        let writes = [
            (&s.insert_tasks, Batch::of(&rows.fresh, row::encode_new), true),
            (&s.advance_tasks, Batch::of(&rows.advanced, row::encode_advanced), false),
            (&s.update_tasks, Batch::of(&rows.changed, row::encode_changed), false),
            (&s.put_documents, Batch::of(documents, document_columns), false),
            (&s.append_events, Batch::of(&rows.events, row::encode_event), true),
        ];
        let writes: Vec<_> = writes.into_iter().filter(|(_, batch, _)| batch.rows() > 0).collect();
        let least = |(_, batch, all): &(_, Batch, bool)| if *all { batch.rows() as u64 } else { 0 };
        Writes {
            least: writes.iter().map(least).collect(),
            statements: writes.into_iter().map(|(statement, batch, _)| (statement, batch)).collect(),
        }
    }

    /// Takes over what was written, and notes it for the commit.
    pub(super) fn wrote(
        &mut self,
        rows: &mut Rows,
        least: &[u64],
        (heads, touched): (Vec<i64>, Vec<u64>),
    ) -> Result<()> {
        if touched.iter().zip(least).any(|(touched, least)| touched < least) {
            return Err(StoreError::Conflict("the id of a task is taken".into()));
        }
        if S::MOVES_HEADS {
            let heads = Some(heads).filter(|heads| heads.len() == rows.owners.len());
            let heads = heads.ok_or_else(|| row::corrupt("head"))?;
            rows.set_heads(|n| Head(heads[n]));
        }
        self.note(&rows.advanced);
        self.note(&rows.changed);
        Ok(())
    }
}

fn document_columns(((task, kind), body): ((TaskId, DocumentKind), &serde_json::Value), to: &mut Batch) {
    to.text(Some(&task.to_string()));
    to.text(Some(kind.as_str()));
    to.text(Some(&body.to_string()));
}
