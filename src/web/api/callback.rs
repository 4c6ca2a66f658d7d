//! What the handler of a chunk may ask while its chunk runs, by the token that came with it.
//!
//! The token names the chunk, so no address here has an id of a task in it. It is dead as soon as its chunk is over: then
//! everything here is a 401, whatever it is about. Any node answers.

use super::files::{self, Upload};
use crate::core::callback::ChunkName;
use crate::core::progress::Reported;
use crate::core::task::limits;
use crate::engine::commands::outside::HeldChunk;
use crate::store::logs::Level;
use crate::web::auth::bearer;
use crate::web::body::{JsonBody, media_type};
use crate::web::error::{ApiError, Code};
use crate::web::fields::Fields;
use crate::web::openapi::asked;
use crate::web::query::Query;
use crate::web::state::AppState;
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Lines of one call.
const LINES: usize = 2_000;

/// A caller that holds a chunk which is under way.
pub struct Held(pub HeldChunk);

impl FromRequestParts<AppState> for Held {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let nobody = || ApiError::new(Code::Unauthenticated).detail("The token is of no chunk that is under way.");
        let token = parts.headers.get(header::AUTHORIZATION).and_then(bearer).ok_or_else(nobody)?;
        let actions = &state.catalogue.actions;
        let name = ChunkName::proven(token, state.clock.now(), |action| actions.get(action)?.keys().cloned());
        let held = state.chunk_calls.held(&name.ok_or_else(nobody)?).await?;
        held.map(Self).ok_or_else(nobody)
    }
}

/// Whether a chunk still counts.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    /// Always true: for a chunk that is over this is a 401.
    pub current: bool,
    /// Whether the chunk should come to an end: a cancel, a pause, a node that stops.
    pub stop_requested: bool,
}

/// Reports work that the handler has committed itself. Any rate is taken; the newest value counts.
#[utoipa::path(post, path = "/callback/progress", operation_id = "callbackProgress", tag = "handlers",
    request_body = asked::ReportBody, responses((status = 204, description = "Taken.")), security(("callback" = [])))]
pub async fn progress(Held(chunk): Held, JsonBody(mut fields): JsonBody) -> Result<StatusCode, ApiError> {
    let mut given = Map::new();
    for name in ["current", "total", "unit", "phase", "message"] {
        given.extend(fields.given(name).map(|value| (name.to_owned(), value)));
    }
    match Reported::parse(&Value::Object(given)) {
        Ok(report) => {
            fields.finish()?;
            chunk.report(report);
            Ok(StatusCode::NO_CONTENT)
        }
        Err(faults) => {
            for fault in &faults {
                fields.fault(fault.field, fault.reason);
                chunk.log(Level::Warn, &format!("dropped from the progress: {fault}"));
            }
            fields.finish()?;
            Ok(StatusCode::NO_CONTENT)
        }
    }
}

/// Writes lines into the task's log.
#[utoipa::path(post, path = "/callback/log", operation_id = "callbackLog", tag = "handlers",
    request_body = asked::LinesBody, responses((status = 204, description = "Taken.")), security(("callback" = [])))]
pub async fn log(Held(chunk): Held, JsonBody(mut fields): JsonBody) -> Result<StatusCode, ApiError> {
    let mut lines = Vec::new();
    for (i, line) in fields.required_list("lines", LINES).unwrap_or_default().into_iter().enumerate() {
        match line {
            Value::String(text) => lines.push((Level::Info, text)),
            Value::Object(map) => {
                let mut line = Fields::new(map);
                let (level, text) = (line.text("level"), line.required_text("message"));
                lines.extend(text.map(|text| (level.map_or(Level::Info, |l| Level::parse(&l)), text)));
                line.finish()?;
            }
            _ => fields.fault(&format!("lines[{i}]"), "must be a text, or an object with `message` and `level`"),
        }
    }
    fields.finish()?;
    for (level, text) in lines {
        chunk.log(level, &text);
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Whether the chunk still counts, and whether it should come to an end.
#[utoipa::path(get, path = "/callback/lease", operation_id = "callbackLease", tag = "handlers",
    responses((status = 200, body = Lease, description = "It is under way.")), security(("callback" = [])))]
pub async fn lease(Held(chunk): Held) -> Json<Lease> {
    Json(Lease { current: true, stop_requested: chunk.stop_requested() })
}

/// Keeps a result file of the task; at most 100 MiB, under the type that the request says.
///
/// It is kept at once and not with the chunk's commit.
#[utoipa::path(post, path = "/callback/artifacts", operation_id = "callbackArtifact", tag = "handlers", params(asked::UploadQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 201, body = Upload, description = "The file is kept.")), security(("callback" = [])))]
pub async fn artifact(
    State(state): State<AppState>,
    Held(chunk): Held,
    mut query: Query,
    request: Request,
) -> Result<(StatusCode, Json<Upload>), ApiError> {
    let name = query.required_text("name", limits::KEY_BYTES);
    query.finish()?;
    let content_type = media_type(request.headers()).unwrap_or_else(|| files::OCTETS.to_owned());
    let kept = files::keep(&state, chunk.new_file(name, content_type), request).await?;
    Ok((StatusCode::CREATED, Json(kept)))
}

/// A file that was uploaded for the task.
#[utoipa::path(get, path = "/callback/files/{id}", operation_id = "callbackFile", tag = "handlers",
    params(("id" = String, Path, description = "The id of the file.")),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream", description = "The bytes.")),
    security(("callback" = [])))]
pub async fn file(
    State(state): State<AppState>,
    Held(chunk): Held,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, ApiError> {
    let not_found = || ApiError::new(Code::NotFound);
    let Path(id) = path.map_err(|_| not_found())?;
    let file = chunk.file(&id).await?.ok_or_else(not_found)?;
    files::send(&state, &file).await
}
