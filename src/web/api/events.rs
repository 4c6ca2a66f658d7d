//! The timeline of a task.

use crate::core::ids::TaskId;
use crate::core::task::TimelineEvent;
use crate::web::error::{ApiError, Code};
use crate::web::extract::{Reader, TaskPath};
use crate::web::openapi::asked;
use crate::web::query::{Query, SEARCH_CHARS};
use crate::web::state::AppState;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// A part of a timeline.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventPage {
    /// In order.
    pub items: Vec<TimelineEvent>,
    /// Go on with `after=` this; null at the end.
    pub next: Option<i64>,
}

/// The timeline of a task.
///
/// On which node something happened is told to operators, as the owner of a lease is.
#[utoipa::path(get, path = "/tasks/{id}/events", operation_id = "taskEvents", tag = "tasks", params(("id" = TaskId, Path, description = "The task."), asked::EventQuery), responses((status = 200, body = EventPage, description = "A part of the timeline.")), extensions(("x-codes" = json!(["bad-cursor"]))))]
pub async fn page(
    State(state): State<AppState>,
    Reader(who): Reader,
    TaskPath(id): TaskPath,
    mut query: Query,
) -> Result<Json<EventPage>, ApiError> {
    let after = place(&mut query, "after")?.unwrap_or(0);
    let limit = query.whole("limit", 1..=super::list::MAX_PAGE).unwrap_or(super::list::MAX_PAGE);
    query.finish()?;
    state.task(&who, id).await?;
    let limit = usize::try_from(limit).expect("1…200 was checked");
    let mut items = state.store.events(id, after, limit + 1).await?;
    let more = items.len() > limit;
    items.truncate(limit);
    if !who.is_operator() {
        items.iter_mut().for_each(|event| event.node = None);
    }
    let next = items.last().map(|e| e.seq).filter(|_| more);
    Ok(Json(EventPage { items, next }))
}

/// A place in a sequence, from 0.
///
/// # Errors
/// 400 for what is none.
pub fn place(query: &mut Query, key: &str) -> Result<Option<i64>, ApiError> {
    let Some(text) = query.text(key, SEARCH_CHARS) else { return Ok(None) };
    let place = text.parse::<i64>().ok().filter(|n| *n >= 0);
    let bad = || ApiError::new(Code::BadCursor).detail(format!("{key} must be a whole number from 0."));
    place.map(Some).ok_or_else(bad)
}
