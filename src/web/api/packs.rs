//! Packs, for administrators: which there are, how this node stands to their folders, and their switches.
//!
//! A pack is one for all tenants, so its switch is too; what is counted is counted in the caller's tenant only.

use crate::core::pack::PackSeen;
use crate::core::principal::{Principal, Role};
use crate::core::time::Millis;
use crate::store::{PackRow, PackStanding, PackSwitch};
use crate::web::body::OptionalBody;
use crate::web::error::{ApiError, Code};
use crate::web::extract::Administrator;
use crate::web::query::Query;
use crate::web::state::AppState;
use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use std::collections::BTreeSet;
use utoipa::ToSchema;

/// All packs.
#[derive(Debug, Serialize, ToSchema)]
pub struct PackList {
    /// By name.
    pub items: Vec<PackView>,
}

/// A pack.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackView {
    /// Its name, which is that of its folder.
    pub name: String,
    /// Its chunks may start.
    pub enabled: bool,
    /// The version that a node loaded last; null for one that none could load yet.
    pub version: Option<String>,
    /// The version that this node runs; null where it runs none.
    pub loaded_version: Option<String>,
    /// At most one chunk of it runs at any instant.
    pub serial: bool,
    /// Unfinished tasks without a chunk under way, in the caller's tenant.
    pub tasks_waiting: i64,
    /// When it was switched last.
    pub changed_at: Option<Millis>,
    /// Why this node cannot load the folder as it is now; null when it can.
    pub fault: Option<PackFaultView>,
}

/// Why a folder cannot be loaded.
#[derive(Debug, Serialize, ToSchema)]
pub struct PackFaultView {
    /// When it was read.
    pub at: Option<Millis>,
    /// The file, from the folder of packs.
    pub file: String,
    /// Its line, from 1, where that is known.
    pub line: Option<usize>,
    /// What is wrong.
    pub reason: String,
    /// Further faults; the log of the node has all of them.
    pub others: usize,
}

/// All packs: their versions, whether they are switched on, and why a folder cannot be loaded.
#[utoipa::path(get, path = "/admin/packs", operation_id = "listPacks", tag = "packs", responses((status = 200, body = PackList, description = "The packs.")))]
pub async fn list(
    State(state): State<AppState>,
    Administrator(who): Administrator,
    query: Query,
) -> Result<Json<PackList>, ApiError> {
    query.finish()?;
    Ok(Json(PackList { items: views(&state, &who).await? }))
}

/// Switches a pack off: its tasks are paused, and no chunk of it starts any more.
///
/// It holds on every node from the moment of the answer and over restarts. A chunk under way comes to its end. Asking again is no
/// offence.
#[utoipa::path(post, path = "/admin/packs/{name}/pause", operation_id = "pausePack", tag = "packs", params(("name" = String, Path, description = "The pack.")), responses((status = 200, body = PackView, description = "The pack as it is now.")))]
pub async fn pause(
    State(state): State<AppState>,
    Administrator(who): Administrator,
    Path(name): Path<String>,
    OptionalBody(fields): OptionalBody,
) -> Result<Json<PackView>, ApiError> {
    fields.finish()?;
    switch(&state, &who, name, true).await
}

/// Switches a pack on: exactly the tasks that were paused with it go on.
#[utoipa::path(post, path = "/admin/packs/{name}/resume", operation_id = "resumePack", tag = "packs", params(("name" = String, Path, description = "The pack.")), responses((status = 200, body = PackView, description = "The pack as it is now.")))]
pub async fn resume(
    State(state): State<AppState>,
    Administrator(who): Administrator,
    Path(name): Path<String>,
    OptionalBody(fields): OptionalBody,
) -> Result<Json<PackView>, ApiError> {
    fields.finish()?;
    switch(&state, &who, name, false).await
}

async fn switch(state: &AppState, who: &Principal, name: String, paused: bool) -> Result<Json<PackView>, ApiError> {
    let params = PackSwitch { name: name.clone(), paused, by: who.user.clone() };
    let changed = state.commands.switch_pack(params).await?.ok_or_else(|| ApiError::new(Code::NotFound))?;
    if changed {
        tracing::info!(pack = name, paused, by = who.user, tenant = who.tenant, "a pack was switched");
    }
    let view = views(state, who).await?.into_iter().find(|view| view.name == name);
    view.map(Json).ok_or_else(|| ApiError::new(Code::NotFound))
}

/// Packs of the database and of this node's folder, by name.
async fn views(state: &AppState, who: &Principal) -> Result<Vec<PackView>, ApiError> {
    let tenant = (who.role < Role::Platform).then(|| who.tenant.clone());
    let standing = state.store.packs(tenant).await?;
    let seen = state.packs.all();
    let names: BTreeSet<&String> = standing.iter().map(|one| &one.row.name).chain(seen.keys()).collect();
    let of = |name: &str| standing.iter().find(|one| one.row.name == name);
    Ok(names.into_iter().map(|name| view(name, of(name), seen.get(name))).collect())
}

fn view(name: &str, standing: Option<&PackStanding>, seen: Option<&PackSeen>) -> PackView {
    let row: Option<&PackRow> = standing.map(|one| &one.row);
    let fault = seen.and_then(|seen| {
        let first = seen.faults.first()?;
        let (file, line, reason) = (first.file.clone(), first.line, first.reason.clone());
        Some(PackFaultView { at: seen.at, file, line, reason, others: seen.faults.len() - 1 })
    });
    PackView {
        name: name.to_owned(),
        enabled: row.is_none_or(|row| !row.paused),
        version: row.map(|row| row.version.clone()),
        loaded_version: seen.and_then(|seen| seen.loaded.clone()),
        serial: row.is_some_and(|row| row.serial),
        tasks_waiting: standing.map_or(0, |one| one.waiting),
        changed_at: row.and_then(|row| row.changed_at),
        fault,
    }
}
