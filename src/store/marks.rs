//! The marks of a notification center, and which of an owner's tasks they are meant for.

use crate::core::ids::{Head, TaskId};
use crate::core::task::{RecordRef, State};
use crate::core::time::Millis;

/// A mark that an owner sets on ended or opened items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Rendered in an open panel for a second.
    Seen,
    /// Opened.
    Read,
    /// Put away.
    Archived,
}

/// How many tasks one call may mark.
pub(crate) const MARKS_AT_ONCE: usize = 10_000;

/// Sets marks on an owner's tasks.
#[derive(Clone, Debug)]
pub struct MarkParams {
    /// Whose.
    pub tenant: String,
    /// Whose.
    pub owner: String,
    /// Which mark.
    pub mark: Mark,
    /// These tasks; or, when empty, all ended ones that `up_to` and the filters name.
    pub ids: Vec<TaskId>,
    /// Not changed after this head.
    pub up_to: Option<Head>,
    /// Only these.
    pub filter: MarkFilter,
}

/// Which of an owner's ended tasks a mark is meant for; what is not given does not filter.
#[derive(Clone, Debug, Default)]
pub struct MarkFilter {
    /// In any of these states; empty = all.
    pub states: Vec<State>,
    /// Of one action.
    pub action: Option<String>,
    /// Of one record.
    pub record: Option<RecordRef>,
    /// With this part of the title, the action, the id or the record's id; literal; at most 100 characters.
    pub text: Option<String>,
    /// Accepted at or after.
    pub from: Option<Millis>,
    /// Accepted before.
    pub to: Option<Millis>,
}
