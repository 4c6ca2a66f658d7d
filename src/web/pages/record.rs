//! `/records/{type}/{id}`: the tasks of a business record, newest first.

use super::row::Row;
use super::shell::{ScriptJson, Shell, safe_link, script_json};
use super::when::When;
use crate::core::task::{RecordRef, State};
use crate::core::view::TaskSummary;
use askama::Template;
use serde_json::json;

/// The page.
#[derive(Template)]
#[template(path = "pages/record.html")]
pub struct RecordPage<'a> {
    page: &'a Shell,
    title: String,
    link: Option<String>,
    rows: Vec<Row<'a>>,
    next: Option<String>,
    record_json: ScriptJson,
}

impl<'a> RecordPage<'a> {
    /// The page for the tasks that the viewer may see; `url` is the way back to the record's own application.
    #[must_use]
    pub fn new(
        page: &'a Shell,
        record: &RecordRef,
        url: Option<&str>,
        tasks: &'a [TaskSummary],
        next: Option<String>,
    ) -> Self {
        let args = [("type", record.kind.as_str().into()), ("id", record.id.as_str().into())];
        Self {
            page,
            title: page.w.fill("page.record", &args),
            link: url.and_then(safe_link).map(str::to_owned),
            rows: tasks.iter().map(|task| Row::new(task, page.w, &page.watch, &page.csrf)).collect(),
            next,
            record_json: script_json(&json!({"type": record.kind, "id": record.id, "items": tasks})),
        }
    }
}
