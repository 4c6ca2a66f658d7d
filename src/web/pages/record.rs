//! `/records/{type}/{id}`: the tasks of a business record, newest first.

use super::html;
use super::row::Row;
use super::shell::{ScriptJson, Shell, safe_link, script_json};
use super::visitor::Visitor;
use super::when::When;
use crate::core::task::RecordRef;
use crate::core::view::TaskSummary;
use crate::web::api::records;
use crate::web::error::{ApiError, Code};
use crate::web::extract::{Lang, Reader};
use crate::web::query::Query;
use crate::web::state::AppState;
use askama::Template;
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::json;

/// The page.
#[derive(Template)]
#[template(path = "pages/record.html")]
pub struct RecordPage<'a> {
    page: &'a Shell,
    title: String,
    link: Option<String>,
    rows: Vec<Row<'a>>,
    /// The page of the newest tasks, which has the chip.
    newest: bool,
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
            newest: !page.here.contains("cursor="),
            next,
            record_json: script_json(&json!({"type": record.kind, "id": record.id, "items": tasks})),
        }
    }
}

impl<'a> RecordPage<'a> {
    /// The record's newest task, where this is the page of it.
    fn chip(&self) -> Option<&Row<'a>> {
        self.rows.first().filter(|_| self.newest)
    }
}

/// `GET /records/{type}/{id}`
///
/// # Errors
/// Those of the list of its tasks.
pub async fn show(
    State(state): State<AppState>,
    Visitor { who, shell }: Visitor,
    path: Result<Path<(String, String)>, PathRejection>,
    query: Query,
) -> Result<Response, ApiError> {
    let Path((kind, id)) = path.map_err(|_| ApiError::new(Code::NotFound))?;
    let record = RecordRef { kind: kind.clone(), id: id.clone() };
    let path = Ok(Path((kind, id)));
    let lang = shell.w.lang().to_owned();
    let Json(tasks) = records::tasks(State(state.clone()), Reader(who.clone()), path, Lang(lang), query).await?;
    let url = state.lens(&who, shell.w.lang()).record(&record).url;
    Ok(html(&RecordPage::new(&shell, &record, url.as_deref(), &tasks.items, tasks.next)))
}
