//! The buttons that a caller may click.

use crate::core::schema::localise_schema;
use crate::web::error::ApiError;
use crate::web::extract::{Lang, Reader};
use crate::web::query::Query;
use crate::web::state::AppState;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A button.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionView {
    /// By which it is submitted.
    pub key: String,
    /// What it is called.
    pub title: String,
    /// The card it stands on.
    pub group: String,
    /// One line on what it does.
    pub description: String,
    /// JSON Schema of its params, with texts in the caller's language.
    pub params: Value,
    /// The record type it sits on.
    pub record: Option<String>,
    /// Median duration of its last successes, ms, once there are some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usual_ms: Option<i64>,
}

/// All buttons of a caller.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ActionList {
    /// By key.
    pub items: Vec<ActionView>,
}

/// The buttons that the caller may click, in the caller's language.
#[utoipa::path(get, path = "/actions", operation_id = "listActions", tag = "actions", responses((status = 200, body = ActionList, description = "All of them.")))]
pub async fn list(
    State(state): State<AppState>,
    Reader(who): Reader,
    Lang(lang): Lang,
    query: Query,
) -> Result<Json<ActionList>, ApiError> {
    query.finish()?;
    let mut items = Vec::new();
    for action in state.catalogue.actions.iter().filter(|a| a.clickable_by(&who)) {
        items.push(ActionView {
            key: action.key.clone(),
            title: action.title.get(&lang).to_owned(),
            group: action.group.get(&lang).to_owned(),
            description: action.description.get(&lang).to_owned(),
            params: localise_schema(&action.params, &lang),
            record: action.record.clone(),
            usual_ms: state.beside.usual(&who.tenant, &action.key).await?.duration_ms,
        });
    }
    Ok(Json(ActionList { items }))
}
