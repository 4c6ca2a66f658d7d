//! JSON bodies: one object, read whole, and checked before anything is made of it.
//!
//! The size is bounded while reading, the time too. What a later reader would lose or choke on (doubled keys, U+0000, deep
//! nesting, numbers out of range) is refused by its place.

use super::error::{ApiError, Code};
use super::fields::Fields;
use super::room::Share;
use super::state::AppState;
use crate::core::json::{self, JsonFault};
use crate::core::task::limits;
use axum::body::{Body, BodyDataStream};
use axum::extract::{FromRequest, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use serde_json::Value;
use std::time::Duration;

/// The longest that a JSON body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);
/// How much of a refused body is read and thrown away, so that the sender gets to read the answer.
const DRAIN_BYTES: u64 = 256 * 1024 * 1024;

/// A body that must be there. `AROUND` = how many levels it puts around the params of a task.
#[derive(Debug)]
pub struct JsonBody<const AROUND: usize = 1>(pub Fields);

/// A body that may be left out.
#[derive(Debug)]
pub struct OptionalBody(pub Fields);

impl<const AROUND: usize> FromRequest<AppState> for JsonBody<AROUND> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &AppState) -> Result<Self, ApiError> {
        match read(request, AROUND).await? {
            Some(fields) => Ok(Self(fields)),
            None => Err(ApiError::new(Code::MalformedJson).detail("A JSON object is needed, but there is no body.")),
        }
    }
}

impl FromRequest<AppState> for OptionalBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &AppState) -> Result<Self, ApiError> {
        Ok(Self(read(request, 1).await?.unwrap_or_default()))
    }
}

/// `None`: there is no body.
async fn read(request: Request, around: usize) -> Result<Option<Fields>, ApiError> {
    let (parts, body) = request.into_parts();
    let is_json = media_type(&parts.headers).is_some_and(|t| t == "application/json");
    if parts.headers.contains_key(header::CONTENT_TYPE) && !is_json {
        return Err(ApiError::new(Code::UnsupportedMediaType).detail("The body must be application/json."));
    }
    refuse_encoded(&parts.headers)?;
    let bytes = read_capped(&parts, body, limits::BODY_BYTES).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if !is_json {
        return Err(ApiError::new(Code::UnsupportedMediaType).detail("Say Content-Type: application/json."));
    }
    json::check(&bytes, "", limits::JSON_DEPTH + around).map_err(|fault| refusal(&fault))?;
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(map)) => Ok(Some(Fields::new(map))),
        Ok(_) => Err(ApiError::field("", "the body must be an object")),
        Err(e) => Err(ApiError::new(Code::MalformedJson).detail(format!("The body is not valid JSON: {e}."))),
    }
}

/// The media type without its parameters, in lower case.
pub fn media_type(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// Compressed bodies are not unpacked, so that no small body becomes a large one.
pub fn refuse_encoded(headers: &HeaderMap) -> Result<(), ApiError> {
    match headers.get(header::CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => {
            Err(ApiError::new(Code::UnsupportedMediaType).detail("Compressed bodies are not taken."))
        }
        _ => Ok(()),
    }
}

/// The whole body, up to a size and within a time.
///
/// # Errors
/// 413 above the size, 408 after the time, 503 when the node holds too much of other bodies.
pub async fn read_capped(parts: &Parts, body: Body, cap_bytes: usize) -> Result<Bytes, ApiError> {
    let (headers, share) = (&parts.headers, Share::current());
    let mut chunks = body.into_data_stream();
    if !declared_above(headers, cap_bytes as u64) {
        let read = tokio::time::timeout(BODY_TIME, gather(&mut chunks, cap_bytes, share.as_ref())).await;
        match read.unwrap_or_else(|_| Err(ApiError::new(Code::TooSlow))) {
            Ok(Some(bytes)) => return Ok(bytes),
            Ok(None) => {}
            Err(full) if full.code == Code::Busy => {
                drain(headers, &mut chunks).await;
                return Err(full);
            }
            Err(fault) => return Err(fault),
        }
    }
    drain(headers, &mut chunks).await;
    Err(ApiError::new(Code::TooLarge).detail(format!("The body may have at most {cap_bytes} bytes.")))
}

/// The bytes of a body; `None` when they are more than the cap.
async fn gather(
    chunks: &mut BodyDataStream,
    cap_bytes: usize,
    share: Option<&Share>,
) -> Result<Option<Bytes>, ApiError> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| ApiError::new(Code::BadRequest).detail("The body broke off."))?;
        if bytes.len() + chunk.len() > cap_bytes {
            return Ok(None);
        }
        share.map_or(Ok(()), |share| share.grow(chunk.len()))?;
        bytes.extend_from_slice(&chunk);
    }
    Ok(Some(bytes.freeze()))
}

/// Whether the sender itself says that the body is larger than that.
pub fn declared_above(headers: &HeaderMap, cap_bytes: u64) -> bool {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<u64>().ok());
    length.is_some_and(|n| n > cap_bytes)
}

/// Reads the rest of a refused body and forgets it: a connection that is closed on a sender loses the answer. Not where the
/// sender waits to be told to go on, and not without a limit.
pub async fn drain(headers: &HeaderMap, chunks: &mut BodyDataStream) {
    if headers.contains_key(header::EXPECT) {
        return;
    }
    let reading = async {
        let mut left = DRAIN_BYTES;
        while let Some(Ok(chunk)) = chunks.next().await {
            match left.checked_sub(chunk.len() as u64) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    // Whether it came to its end does not matter: the answer is the same.
    let _ = tokio::time::timeout(BODY_TIME, reading).await;
}

fn refusal(fault: &JsonFault) -> ApiError {
    match fault {
        JsonFault::Syntax { line, column } => ApiError::new(Code::MalformedJson)
            .detail(format!("The body is not valid JSON at line {line}, column {column}.")),
        JsonFault::TooDeep { path, .. } => {
            ApiError::field(path, format!("is nested deeper than {} levels", limits::JSON_DEPTH))
        }
        JsonFault::DuplicateKey { path } => ApiError::field(path, "occurs twice"),
        JsonFault::Nul { path } => ApiError::field(path, "contains the character U+0000"),
        JsonFault::NumberRange { path } => ApiError::field(path, "is a number out of range"),
    }
}
