//! Whether the process lives, and whether it can do its work.

use crate::core::ids::TaskId;
use crate::push::Ways;
use crate::store::logs::LogParams;
use crate::web::state::AppState;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use std::time::Duration;
use utoipa::ToSchema;

/// A part that does not answer within this counts as down.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The process lives.
#[derive(Debug, Serialize, ToSchema)]
pub struct Alive {
    /// Always true: otherwise there is no answer.
    pub ok: bool,
}

/// The parts of a node.
#[derive(Debug, Serialize, ToSchema)]
pub struct Readiness {
    /// Each by its name.
    pub parts: NodeParts,
}

/// How the parts are.
#[derive(Debug, Serialize, ToSchema)]
pub struct NodeParts {
    /// `ok`, or `down`: then nothing works.
    pub database: &'static str,
    /// `ok`, or `down`: then lines are lost and tasks run on.
    pub logs: &'static str,
    /// `ok`, or `draining`.
    pub node: &'static str,
    /// `off`, `ok`, `down`, or `refused` (a wrong password, a user without the right to the channel): without it changes of
    /// other nodes come a little later, and nothing else.
    pub redis: &'static str,
    /// What wakes this node for work that another one took in: `redis`, `listen` (the database tells), or `poll`; `local` on
    /// a SQLite file, which has one process.
    pub wake: &'static str,
}

/// Whether the process lives; looks at nothing else.
#[utoipa::path(get, path = "/healthz", operation_id = "healthz", tag = "operations", responses((status = 200, body = Alive, description = "It does.")), security(()))]
pub async fn healthz() -> Json<Alive> {
    Json(Alive { ok: true })
}

/// Whether the node can do its work: its database answers, and it is not going down.
#[utoipa::path(get, path = "/readyz", operation_id = "readyz", tag = "operations", responses((status = 200, body = Readiness, description = "It can."), (status = 503, body = Readiness, description = "It cannot, or is going down.")), security(()))]
pub async fn readyz(State(state): State<AppState>) -> (StatusCode, Json<Readiness>) {
    let word = |answered: bool| if answered { "ok" } else { "down" };
    let database = tokio::time::timeout(PATIENCE, state.store.ready()).await.is_ok_and(|ready| ready.is_ok());
    // A log store that is down is told, and keeps the node ready: tasks run without it.
    let probe = LogParams { limit: 1, ..LogParams::default() };
    let logs = tokio::time::timeout(PATIENCE, state.logs.part(TaskId::new(), probe)).await.is_ok_and(|p| p.is_ok());
    let node = if state.is_draining() { "draining" } else { "ok" };
    let Ways { redis, wake } = state.hub.ways();
    let ready = database && node == "ok";
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let parts = NodeParts { database: word(database), logs: word(logs), node, redis, wake };
    (status, Json(Readiness { parts }))
}
