//! The picture of a task: how far it was when, and which finish was told at that moment.

use crate::core::ids::TaskId;
use crate::core::picture::Point;
use crate::web::error::ApiError;
use crate::web::extract::{Reader, TaskPath};
use crate::web::state::AppState;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// The picture of a task.
#[derive(Debug, Serialize, ToSchema)]
pub struct Picture {
    /// In order; at most 120. None for a task that took less than two seconds.
    pub items: Vec<Point>,
}

/// How the progress of a task went, and which finish was told when.
///
/// The spacing of the points grows with the age of the task; where work stopped or went on there is one too.
#[utoipa::path(get, path = "/tasks/{id}/progress", operation_id = "taskProgress", tag = "tasks", params(("id" = TaskId, Path, description = "The task.")), responses((status = 200, body = Picture, description = "The points.")))]
pub async fn picture(
    State(state): State<AppState>,
    Reader(who): Reader,
    TaskPath(id): TaskPath,
) -> Result<Json<Picture>, ApiError> {
    state.task(&who, id).await?;
    Ok(Json(Picture { items: state.store.points(id).await? }))
}
