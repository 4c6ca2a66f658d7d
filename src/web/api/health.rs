//! Whether the process lives, and whether it can do its work.

use crate::core::ids::TaskId;
use crate::store::logs::LogParams;
use crate::web::state::AppState;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};
use std::time::Duration;

/// A part that does not answer within this counts as down.
const PATIENCE: Duration = Duration::from_secs(2);

/// `GET /healthz`: 200 while the process lives; looks at nothing else.
pub async fn healthz() -> Json<Value> {
    Json(json!({"ok": true}))
}

/// `GET /readyz`: 503 when a part is down or the node is going down.
pub async fn readyz(State(state): State<AppState>) -> (StatusCode, Json<Value>) {
    let word = |answered: bool| if answered { "ok" } else { "down" };
    let database = tokio::time::timeout(PATIENCE, state.store.ready()).await.is_ok_and(|ready| ready.is_ok());
    // A log store that is down is told, and keeps the node ready: tasks run without it.
    let probe = LogParams { limit: 1, ..LogParams::default() };
    let logs = tokio::time::timeout(PATIENCE, state.logs.part(TaskId::new(), probe)).await.is_ok_and(|p| p.is_ok());
    let node = if state.is_draining() { "draining" } else { "ok" };
    let ready = database && node == "ok";
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({"parts": {"database": word(database), "logs": word(logs), "node": node}})))
}
