//! The tasks of a business record, newest first.

use super::list::{self, Asked, TaskPage};
use crate::core::principal::Principal;
use crate::core::task::RecordRef;
use crate::core::view::TaskSummary;
use crate::store::{ListParams, Reach};
use crate::web::error::{ApiError, Code};
use crate::web::extract::{Lang, Reader};
use crate::web::openapi::asked;
use crate::web::query::Query;
use crate::web::state::AppState;
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};

/// The tasks of a business record, newest first.
///
/// Where the record type is open to its tenant, the tasks of others are there too, cut to
/// state, numbers, starter and times.
#[utoipa::path(get, path = "/records/{type}/{id}/tasks", operation_id = "recordTasks", tag = "records", params(("type" = String, Path, description = "The record type."), ("id" = String, Path, description = "The application's id of the record."), asked::PageQuery), responses((status = 200, body = TaskPage, description = "The page, without counts.")), extensions(("x-codes" = json!(["bad-cursor"]))))]
pub async fn tasks(
    State(state): State<AppState>,
    Reader(who): Reader,
    path: Result<Path<(String, String)>, PathRejection>,
    Lang(lang): Lang,
    mut query: Query,
) -> Result<Json<TaskPage>, ApiError> {
    let Ok(Path((kind, id))) = path else { return Err(ApiError::new(Code::NotFound)) };
    let record = RecordRef { kind, id };
    if !record.may_exist() {
        return Err(ApiError::new(Code::NotFound));
    }
    let params = ListParams {
        reach: Reach::of_record(&who, state.catalogue.open_records.contains(&record.kind)),
        record: Some(record),
        archived: true,
        descending: true,
        ..ListParams::default()
    };
    let asked = Asked { bound_to: list::bound_to(&who, &params, false), params, nothing: false }.page(&mut query)?;
    query.finish()?;
    let mut page = list::fill(&state, &who, &lang, asked).await?;
    for task in page.items.iter_mut().filter(|task| !sees(&who, task)) {
        task.cut_for_passers_by(state.lens(&who, &lang).action_title(&task.action));
    }
    Ok(Json(page))
}

fn sees(who: &Principal, task: &TaskSummary) -> bool {
    who.is_operator() || who.user == task.owner
}
