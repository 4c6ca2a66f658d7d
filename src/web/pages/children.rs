//! The subtasks of a task, on its page: the newest ones as rows, and how many there are.
//!
//! Must never show one that the viewer could not open: the list is read within the viewer's own reach.

use super::row::Row;
use super::shell::{ScriptJson, Shell, script_json};
use super::words::grouped;
use crate::core::principal::Principal;
use crate::core::task::Task;
use crate::core::view::TaskSummary;
use crate::store::{ListParams, Reach};
use crate::web::error::ApiError;
use crate::web::state::AppState;
use serde_json::json;

/// Rows of the page; `static/children.js` asks for as many.
const ROWS: usize = 50;

/// The newest subtasks.
#[derive(Debug, Default)]
pub struct Newest {
    /// Newest first.
    pub items: Vec<TaskSummary>,
    /// Whether there are older ones.
    pub more: bool,
}

/// Reads them.
///
/// # Errors
/// Those of the store.
pub async fn read(state: &AppState, who: &Principal, lang: &str, parent: &Task) -> Result<Newest, ApiError> {
    if parent.family.is_none() {
        return Ok(Newest::default());
    }
    let reach = Reach::of(who);
    let params = ListParams {
        reach,
        parent: Some(parent.id),
        archived: true,
        descending: true,
        limit: ROWS,
        ..ListParams::default()
    };
    let page = state.store.list(params).await?;
    Ok(Newest { items: state.summaries(who, lang, &page.items).await?, more: page.next.is_some() })
}

/// The section of the page.
pub struct Children<'a> {
    /// The rows.
    pub rows: Vec<Row<'a>>,
    /// How many there are; with a plus where only the newest are shown.
    pub count: String,
    /// The tasks, for the page's script.
    pub json: ScriptJson,
}

impl<'a> Children<'a> {
    /// As the page shows them.
    #[must_use]
    pub fn new(page: &'a Shell, newest: &'a Newest) -> Self {
        let n = i64::try_from(newest.items.len()).expect("a page has few rows");
        Self {
            rows: newest.items.iter().map(|task| Row::new(task, page.w, &page.watch, &page.csrf)).collect(),
            count: if newest.more { page.w.count("group.more", n) } else { grouped(n) },
            json: script_json(&json!({"items": newest.items, "more": newest.more})),
        }
    }
}
