//! Files: uploads for params, results of handlers. Streamed both ways, never held whole; for their owner and operators.

use crate::core::principal::Principal;
use crate::core::task::limits;
use crate::store::files::{FILE_BYTES, NewFile, UPLOAD_LIFE_MS};
use crate::store::{FileRow, StoreError};
use crate::web::body::{declared_above, drain, media_type, refuse_encoded};
use crate::web::error::{ApiError, Code};
use crate::web::extract::{Reader, Writer};
use crate::web::openapi::asked;
use crate::web::query::Query;
use crate::web::state::AppState;
use axum::Json;
use axum::body::{Body, BodyDataStream};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use std::time::Duration;
use utoipa::ToSchema;

/// An upload that brings nothing for so long has broken off.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// The longest that an upload may take.
const UPLOAD_TIME: Duration = Duration::from_secs(30 * 60);
pub(super) const OCTETS: &str = "application/octet-stream";

/// An accepted upload.
#[derive(Debug, Serialize, ToSchema)]
pub struct Upload {
    /// For params, and for `GET /artifacts/{id}`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Bytes.
    pub size: i64,
    /// SHA-256, hex.
    pub sha256: String,
}

/// Uploads a file for the params of a task; at most 100 MiB.
#[utoipa::path(post, path = "/uploads", operation_id = "upload", tag = "files", params(asked::UploadQuery), request_body(content = Vec<u8>, content_type = "application/octet-stream"), responses((status = 201, body = Upload, description = "The file is kept.")))]
pub async fn upload(
    State(state): State<AppState>,
    Writer(who): Writer,
    mut query: Query,
    request: Request,
) -> Result<(StatusCode, Json<Upload>), ApiError> {
    let name = query.required_text("name", limits::KEY_BYTES);
    query.finish()?;
    if media_type(request.headers()).is_none_or(|t| t != OCTETS) {
        return Err(ApiError::new(Code::UnsupportedMediaType).detail(format!("The body must be {OCTETS}.")));
    }
    let kept = keep(&state, new_upload(&who, name), request).await?;
    Ok((StatusCode::CREATED, Json(kept)))
}

/// Keeps the body of a request as a file, within its time and size.
pub(super) async fn keep(state: &AppState, new: NewFile, request: Request) -> Result<Upload, ApiError> {
    let (parts, body) = request.into_parts();
    refuse_encoded(&parts.headers)?;
    let mut chunks = body.into_data_stream();
    let kept = if declared_above(&parts.headers, FILE_BYTES) {
        Err(StoreError::Limit(String::new()))
    } else {
        let keep = state.files.put(new, Box::pin(patient(&mut chunks)));
        tokio::time::timeout(UPLOAD_TIME, keep).await.map_err(|_| ApiError::new(Code::TooSlow))?
    };
    if matches!(kept, Err(StoreError::Limit(_))) {
        drain(&parts.headers, &mut chunks).await;
        return Err(ApiError::new(Code::TooLarge).detail(format!("A file may have at most {FILE_BYTES} bytes.")));
    }
    let FileRow { id, name, size_bytes, sha256, .. } = kept?;
    Ok(Upload { id, name, size: size_bytes, sha256 })
}

fn new_upload(who: &Principal, name: String) -> NewFile {
    NewFile {
        tenant: who.tenant.clone(),
        owner: who.user.clone(),
        task: None,
        name,
        content_type: OCTETS.to_owned(),
        life_ms: UPLOAD_LIFE_MS,
    }
}

/// The chunks of a body, each within its time.
fn patient(chunks: &mut BodyDataStream) -> impl Stream<Item = Result<Bytes, String>> {
    stream::unfold(chunks, |chunks| async move {
        match tokio::time::timeout(IDLE_TIME, chunks.next()).await {
            Ok(None) => None,
            Ok(Some(chunk)) => Some((chunk.map_err(|e| e.to_string()), chunks)),
            Err(_) => Some((Err("nothing came for too long".to_owned()), chunks)),
        }
    })
}

/// An upload or a result file.
///
/// Always as an attachment, so that no file is shown as a page of ours.
#[utoipa::path(get, path = "/artifacts/{id}", operation_id = "downloadFile", tag = "files", params(("id" = String, Path, description = "The id of the file.")), responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream", description = "The bytes, under the type that the file was stored with.")))]
pub async fn download(
    State(state): State<AppState>,
    Reader(who): Reader,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, ApiError> {
    let not_found = || ApiError::new(Code::NotFound);
    let Path(id) = path.map_err(|_| not_found())?;
    let file = state.store.file(&id).await?.filter(|file| sees(&who, file)).ok_or_else(not_found)?;
    send(&state, &file).await
}

/// The answer that brings a file.
pub(super) async fn send(state: &AppState, file: &FileRow) -> Result<Response, ApiError> {
    if file.expires_at.is_some_and(|end| end <= state.clock.now()) {
        return Err(ApiError::new(Code::NotFound));
    }
    let bytes = state.files.stream(&file.id).await?;
    let headers = [
        (header::CONTENT_TYPE, content_type(file).to_owned()),
        (header::CONTENT_LENGTH, file.size_bytes.to_string()),
        (header::CONTENT_DISPOSITION, disposition(&file.name)),
    ];
    Ok((headers, Body::from_stream(bytes)).into_response())
}

fn sees(who: &Principal, file: &FileRow) -> bool {
    (who.is_operator() || who.user == file.owner)
        && (who.role == crate::core::principal::Role::Platform || who.tenant == file.tenant)
}

/// The stored type where it is one; anything else goes as bytes.
fn content_type(file: &FileRow) -> &str {
    let plain = |c: u8| c.is_ascii_alphanumeric() || b"/+-._;= ".contains(&c);
    let text = file.content_type.as_str();
    if text.contains('/') && text.len() <= 100 && text.bytes().all(plain) { text } else { OCTETS }
}

/// The name in a form that no quote, line break or other script can leave.
fn disposition(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "._- ".contains(c) { c } else { '_' }).collect();
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{}", utf8_percent_encode(name, NON_ALPHANUMERIC))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_its_place_in_the_header() {
        let text = disposition("a\"; x=\r\n客户.csv");
        assert_eq!(
            text,
            "attachment; filename=\"a__ x_____.csv\"; filename*=UTF-8''a%22%3B%20x%3D%0D%0A%E5%AE%A2%E6%88%B7%2Ecsv"
        );
    }
}
