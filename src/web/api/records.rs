//! The tasks of a business record, newest first.

use super::list::{self, Asked, TaskPage};
use crate::core::principal::Principal;
use crate::core::task::{RecordRef, limits};
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
    if kind.len() > limits::KEY_BYTES || id.len() > limits::KEY_BYTES || kind.contains('\0') || id.contains('\0') {
        return Err(ApiError::new(Code::NotFound));
    }
    let open = state.settings.open_records.contains(&kind);
    let params = ListParams {
        reach: if open { Reach { owner: None, ..Reach::of(&who) } } else { Reach::of(&who) },
        record: Some(RecordRef { kind, id }),
        archived: true,
        descending: true,
        ..ListParams::default()
    };
    let asked = Asked { bound_to: list::bound_to(&who, &params, false), params, nothing: false }.page(&mut query)?;
    query.finish()?;
    let mut page = list::fill(&state, &who, &lang, asked).await?;
    for task in page.items.iter_mut().filter(|task| !sees(&who, task)) {
        let action = state.catalogue.actions.get(&task.action);
        let title = action.map_or_else(|| task.action.clone(), |a| a.title.get(&lang).to_owned());
        task.cut_for_passers_by(title);
    }
    Ok(Json(page))
}

fn sees(who: &Principal, task: &TaskSummary) -> bool {
    who.is_operator() || who.user == task.owner
}
