//! The nodes that share the database, for the platform: who is there, what each can run, and how it is.
//!
//! Every node answers the same: it is read from the database. Nothing of a task or a tenant's data is in it but the names of
//! actions and tenants, and so it takes the role platform.

use crate::core::node::{Fault, LoopHealth, Node};
use crate::core::time::Millis;
use crate::web::error::ApiError;
use crate::web::extract::PlatformCaller;
use crate::web::query::Query;
use crate::web::state::AppState;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// All nodes.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeViews {
    /// By id.
    pub items: Vec<NodeView>,
    /// The database's now, against which ages are told.
    pub as_of: Millis,
}

/// A node.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeView {
    /// Its name, unique among the living.
    pub id: String,
    /// `all`, `web` or `work`.
    pub role: String,
    /// The version of its binary.
    pub version: String,
    /// `alive`, `draining`, or `stale`: silent for longer than its lease, so that it holds no task any more.
    pub state: &'static str,
    /// Chunks at once; 0 where it runs none.
    pub slots: i64,
    /// Chunks under way at its last beat.
    pub running: i64,
    /// Only these tenants; `*` = all.
    pub tenants: Vec<String>,
    /// The actions that it can run.
    pub actions: Vec<String>,
    /// When it last claimed something.
    pub last_claim_at: Option<Millis>,
    /// Chunks that it claimed since its start.
    pub claimed: i64,
    /// Chunks that it brought to an end since its start.
    pub executed: i64,
    /// The last claim that failed since its start.
    pub last_claim_error: Option<FaultView>,
    /// Its loops; empty where it has none.
    pub loops: Vec<LoopView>,
    /// How signals of others reach it by Redis: `off`, `ok`, `down` or `refused`.
    pub redis: String,
    /// What wakes it for work of others: `redis`, `listen`, `poll` or `local`.
    pub wake: String,
    /// When it started.
    pub started_at: Millis,
    /// Its last beat.
    pub heartbeat_at: Millis,
    /// How long ago that was.
    pub heartbeat_age_ms: i64,
}

/// Something that went wrong.
#[derive(Debug, Serialize, ToSchema)]
pub struct FaultView {
    /// When.
    pub at: Millis,
    /// What.
    pub message: String,
}

/// A loop of a node.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoopView {
    /// `claim`, `heartbeat` or `sweep`.
    pub name: String,
    /// It turned as often as it should.
    pub ok: bool,
    /// When it last began a turn.
    pub turned_at: Option<Millis>,
    /// How often it broke down and was started again.
    pub breakdowns: i64,
}

/// The nodes that were heard of within the last hour.
///
/// A node tells of itself with every heartbeat. One that is silent for longer than its lease is `stale`, and leaves the list an
/// hour after its last beat; one that was stopped in order leaves it at once.
#[utoipa::path(get, path = "/admin/nodes", operation_id = "listNodes", tag = "operations", responses((status = 200, body = NodeViews, description = "The nodes.")))]
pub async fn list(
    State(state): State<AppState>,
    _who: PlatformCaller,
    query: Query,
) -> Result<Json<NodeViews>, ApiError> {
    query.finish()?;
    let list = state.store.nodes().await?;
    let items = list.nodes.into_iter().map(|node| view(node, list.as_of)).collect();
    Ok(Json(NodeViews { items, as_of: list.as_of }))
}

fn view(node: Node, now: Millis) -> NodeView {
    let state = match (node.is_stale(now), node.standing.draining) {
        (true, _) => "stale",
        (false, true) => "draining",
        (false, false) => "alive",
    };
    let standing = node.standing;
    let tenants = if node.tenants.is_empty() { vec!["*".to_owned()] } else { node.tenants };
    NodeView {
        id: node.id,
        role: node.role,
        version: node.version,
        state,
        slots: node.parallelism,
        running: standing.running,
        tenants,
        actions: node.actions,
        last_claim_at: standing.last_claim_at,
        claimed: standing.claimed,
        executed: standing.executed,
        last_claim_error: standing.last_claim_error.map(|Fault { at, message }| FaultView { at, message }),
        loops: standing.loops.into_iter().map(loop_view).collect(),
        redis: standing.redis,
        wake: standing.wake,
        started_at: node.started_at,
        heartbeat_at: node.beat_at,
        heartbeat_age_ms: now.since(node.beat_at).max(0),
    }
}

fn loop_view(one: LoopHealth) -> LoopView {
    let LoopHealth { name, ok, turned_at, breakdowns } = one;
    LoopView { name, ok, turned_at, breakdowns }
}
