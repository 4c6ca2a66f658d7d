//! The JSON API under `/api/v1`: its table of contents. One file a noun.

pub mod actions;
pub mod batch;
pub mod bulk;
pub mod control;
pub mod events;
pub mod files;
pub mod health;
pub mod list;
pub mod logs;
pub mod notifications;
pub mod records;
pub mod submit;
pub mod tasks;

use super::state::AppState;
use axum::Router;
use axum::routing::{get, post};

/// All routes of the API.
pub fn routes() -> Router<AppState> {
    Router::new()
        .route("/tasks", get(list::list).post(submit::submit))
        .route("/tasks/batch", post(batch::submit))
        .route("/tasks/bulk", post(bulk::act))
        .route("/tasks/{id}", get(tasks::get).delete(tasks::delete))
        .route("/tasks/{id}/cancel", post(control::cancel))
        .route("/tasks/{id}/pause", post(control::pause))
        .route("/tasks/{id}/resume", post(control::resume))
        .route("/tasks/{id}/retry", post(submit::retry))
        .route("/tasks/{id}/logs", get(logs::page))
        .route("/tasks/{id}/logs/download", get(logs::download))
        .route("/tasks/{id}/events", get(events::page))
        .route("/uploads", post(files::upload))
        .route("/artifacts/{id}", get(files::download))
        .route("/actions", get(actions::list))
        .route("/records/{type}/{id}/tasks", get(records::tasks))
        .route("/notifications", get(notifications::center))
        .route("/notifications/seen", post(notifications::seen))
        .route("/notifications/read", post(notifications::read))
        .route("/notifications/archive", post(notifications::archive))
}
