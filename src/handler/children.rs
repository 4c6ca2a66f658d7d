//! What a handler sees of the children of its task.

use crate::core::ids::TaskId;
use crate::core::task::{RecordRef, State};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The most children of one page.
pub const CHILDREN_PAGE: usize = 100;

/// How many children there are, and a page of them by id.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildrenPage {
    /// How many of all children are in each state; states without children are absent.
    pub counts: BTreeMap<String, i64>,
    /// At most [`CHILDREN_PAGE`].
    pub items: Vec<ChildView>,
    /// After which child the next page begins; absent at the end.
    pub next: Option<TaskId>,
}

/// One child.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildView {
    /// Identity.
    pub id: TaskId,
    /// The declared action.
    pub action: String,
    /// Its own title, if it was given one.
    pub title: Option<String>,
    /// The business record.
    pub record: Option<RecordRef>,
    /// The idempotency key that it was submitted with.
    pub idempotency_key: Option<String>,
    /// Where it stands.
    pub state: State,
    /// What it left at its end.
    pub result: Option<Value>,
    /// Why it failed, as a user may read it.
    pub error: Option<ChildError>,
}

/// Why a child failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChildError {
    /// The handler's own code, or one of ours.
    pub code: String,
    /// Safe to show to the user.
    pub message: String,
}
