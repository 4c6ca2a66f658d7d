//! One task: read it, delete it.

use crate::core::ids::TaskId;
use crate::core::view::TaskDetail;
use crate::store::StoreError;
use crate::web::error::{ApiError, Code};
use crate::web::extract::{Lang, Reader, TaskPath, Writer};
use crate::web::state::AppState;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// One task with params and result.
///
/// Its revision is the `ETag`; a request with `If-None-Match` is answered by 304 while it has not changed.
#[utoipa::path(get, path = "/tasks/{id}", operation_id = "getTask", tag = "tasks", params(("id" = TaskId, Path, description = "The task.")), responses((status = 200, body = TaskDetail, description = "The task.", headers(("ETag" = String))), (status = 304, description = "It has not changed.")))]
pub async fn get(
    State(state): State<AppState>,
    Reader(who): Reader,
    TaskPath(id): TaskPath,
    Lang(lang): Lang,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let task = state.task(&who, id).await?;
    let tag = etag(task.revision.0);
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|v| v.to_str().ok());
    if known.flat_map(|v| v.split(',')).any(|t| t.trim().trim_start_matches("W/") == tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    Ok(answer(StatusCode::OK, &state.stored_detail(&who, &lang, &task).await?))
}

/// Deletes an ended task with its log and its files.
#[utoipa::path(delete, path = "/tasks/{id}", operation_id = "deleteTask", tag = "tasks", params(("id" = TaskId, Path, description = "The task.")), responses((status = 204, description = "It is gone.")), extensions(("x-codes" = json!(["not-ended"]))))]
pub async fn delete(
    State(state): State<AppState>,
    Writer(who): Writer,
    TaskPath(id): TaskPath,
) -> Result<StatusCode, ApiError> {
    match state.commands.delete(&who, id).await {
        Ok(Some(true)) => {}
        Ok(Some(false)) => return Err(ApiError::new(Code::NotEnded)),
        // What is there all the same is in words of a newer version: nothing is done to it here.
        Ok(None) | Err(StoreError::NotFound) => {
            state.task(&who, id).await?;
            return Err(ApiError::new(Code::NotEnded));
        }
        Err(e) => return Err(e.into()),
    }
    forget_logs(&state, &[id]).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes the logs of deleted tasks away. A log store that fails keeps them; it never makes the delete fail.
pub async fn forget_logs(state: &AppState, ids: &[TaskId]) {
    if let Err(e) = state.logs.delete(ids).await {
        tracing::warn!(count = ids.len(), "the logs of deleted tasks stay for now: {e}");
    }
}

/// A task as an answer, with its revision as `ETag`.
pub fn answer(status: StatusCode, task: &TaskDetail) -> Response {
    (status, [(header::ETAG, etag(task.summary.revision.0))], Json(task)).into_response()
}

fn etag(revision: i64) -> String {
    format!("\"{revision}\"")
}

/// Where a task is found.
pub fn location(id: TaskId) -> HeaderValue {
    HeaderValue::from_str(&format!("/api/v1/tasks/{id}")).expect("an id is a valid header value")
}
