//! JSON bodies: one object, read whole, checked before anything is made of it, taken apart field by field.
//!
//! A field that is not known is refused by its name, since it would be a misspelt one that is silently lost; `null` counts
//! as absent. All faults are told at once. The size is bounded while reading, the time too.

use super::error::{ApiError, Code};
use super::state::AppState;
use crate::core::json::{self, JsonFault};
use crate::core::params_check::FieldFault;
use crate::core::task::limits;
use crate::core::time::Millis;
use axum::body::{Body, BodyDataStream};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use serde_json::{Map, Value};
use std::time::Duration;

/// The longest that a JSON body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);
/// How much of a refused body is read and thrown away, so that the sender gets to read the answer.
const DRAIN_BYTES: u64 = 256 * 1024 * 1024;

/// The fields of one JSON object.
#[derive(Debug, Default)]
pub struct Fields {
    map: Map<String, Value>,
    at: String,
    faults: Vec<FieldFault>,
}

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
    let bytes = read_capped(&parts.headers, body, limits::BODY_BYTES).await?;
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
/// 413 above the size, 408 after the time.
pub async fn read_capped(headers: &HeaderMap, body: Body, cap_bytes: usize) -> Result<Bytes, ApiError> {
    let mut chunks = body.into_data_stream();
    if !declared_above(headers, cap_bytes as u64) {
        let read = tokio::time::timeout(BODY_TIME, gather(&mut chunks, cap_bytes)).await;
        if let Some(bytes) = read.unwrap_or_else(|_| Err(ApiError::new(Code::TooSlow)))? {
            return Ok(bytes);
        }
    }
    drain(headers, &mut chunks).await;
    Err(ApiError::new(Code::TooLarge).detail(format!("The body may have at most {cap_bytes} bytes.")))
}

/// The bytes of a body; `None` when they are more than the cap.
async fn gather(chunks: &mut BodyDataStream, cap_bytes: usize) -> Result<Option<Bytes>, ApiError> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| ApiError::new(Code::BadRequest).detail("The body broke off."))?;
        if bytes.len() + chunk.len() > cap_bytes {
            return Ok(None);
        }
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

impl Fields {
    /// The fields of an object.
    #[must_use]
    pub fn new(map: Map<String, Value>) -> Self {
        Self { map, ..Self::default() }
    }

    /// Notes a fault.
    pub fn fault(&mut self, name: &str, message: impl Into<String>) {
        let path = if name.is_empty() { self.at.clone() } else { format!("{}{}{name}", self.at, self.dot()) };
        self.faults.push(FieldFault::new(path, message));
    }

    fn dot(&self) -> &'static str {
        if self.at.is_empty() { "" } else { "." }
    }

    /// A field of any type; `null` counts as absent.
    pub fn value(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name).filter(|v| !v.is_null())
    }

    /// A text.
    pub fn text(&mut self, name: &str) -> Option<String> {
        match self.value(name)? {
            Value::String(text) => Some(text),
            _ => self.wrong(name, "must be a text"),
        }
    }

    /// A text that must be there.
    pub fn required_text(&mut self, name: &str) -> Option<String> {
        let there = self.map.get(name).is_some_and(|v| !v.is_null());
        if there { self.text(name) } else { self.wrong(name, "is missing") }
    }

    /// A yes or no; absent = no.
    pub fn flag(&mut self, name: &str) -> bool {
        match self.value(name) {
            None => false,
            Some(Value::Bool(yes)) => yes,
            Some(_) => self.wrong::<bool>(name, "must be true or false").unwrap_or_default(),
        }
    }

    /// A whole number.
    pub fn whole(&mut self, name: &str) -> Option<i64> {
        match self.value(name)?.as_i64() {
            Some(n) => Some(n),
            None => self.wrong(name, "must be a whole number"),
        }
    }

    /// An instant.
    pub fn instant(&mut self, name: &str) -> Option<Millis> {
        let text = self.text(name)?;
        match Millis::parse(&text) {
            Ok(at) => Some(at),
            Err(message) => self.wrong(name, message),
        }
    }

    /// An object.
    pub fn object(&mut self, name: &str) -> Option<Self> {
        match self.value(name)? {
            Value::Object(map) => {
                Some(Self { map, at: format!("{}{}{name}", self.at, self.dot()), faults: Vec::new() })
            }
            _ => self.wrong(name, "must be an object"),
        }
    }

    /// A list of anything.
    pub fn list(&mut self, name: &str, most: usize) -> Option<Vec<Value>> {
        match self.value(name)? {
            Value::Array(items) if items.len() <= most => Some(items),
            Value::Array(_) => self.wrong(name, format!("may have at most {most} items")),
            _ => self.wrong(name, "must be a list"),
        }
    }

    /// A list that must be there.
    pub fn required_list(&mut self, name: &str, most: usize) -> Option<Vec<Value>> {
        let there = self.map.get(name).is_some_and(|v| !v.is_null());
        if there { self.list(name, most) } else { self.wrong(name, "is missing") }
    }

    /// A list of texts.
    pub fn texts(&mut self, name: &str, most: usize) -> Option<Vec<String>> {
        let items = self.list(name, most)?;
        let texts: Option<Vec<String>> = items.into_iter().map(|i| i.as_str().map(str::to_owned)).collect();
        if texts.is_some() { texts } else { self.wrong(name, "must be a list of texts") }
    }

    /// One text or a list of them; absent = none.
    pub fn text_or_texts(&mut self, name: &str, most: usize) -> Vec<String> {
        match self.map.get(name) {
            Some(Value::Array(_)) => self.texts(name, most).unwrap_or_default(),
            _ => self.text(name).into_iter().collect(),
        }
    }

    fn wrong<T>(&mut self, name: &str, message: impl Into<String>) -> Option<T> {
        self.fault(name, message);
        None
    }

    /// Takes over what is wrong with an inner object, its unknown fields included.
    pub fn absorb(&mut self, inner: Self) {
        let mut inner = inner;
        inner.name_unknown();
        self.faults.append(&mut inner.faults);
    }

    fn name_unknown(&mut self) {
        for name in std::mem::take(&mut self.map).into_iter().map(|(name, _)| name) {
            let shown: String = name.chars().take(100).collect();
            self.fault(&shown, "is not known here");
        }
    }

    /// Nothing is wrong, and no field is left over.
    ///
    /// # Errors
    /// 422 with all faults.
    pub fn finish(mut self) -> Result<(), ApiError> {
        self.name_unknown();
        if self.faults.is_empty() { Ok(()) } else { Err(ApiError::invalid(self.faults)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(value: Value) -> Fields {
        let Value::Object(map) = value else { panic!("an object") };
        Fields::new(map)
    }

    #[test]
    fn every_wrong_field_is_named_and_null_is_absent() {
        let mut f = fields(json!({"a": 1, "b": "x", "c": null, "r": {"id": 7, "x": 0}, "odd": 1}));
        assert_eq!(f.text("a"), None);
        assert!(!f.flag("b"));
        assert_eq!(f.text("c"), None);
        let mut r = f.object("r").unwrap();
        assert_eq!(r.required_text("id"), None);
        assert_eq!(r.required_text("type"), None);
        f.absorb(r);
        let faults: Vec<String> = f.finish().unwrap_err().errors.iter().map(|e| e.path.clone()).collect();
        assert_eq!(faults, ["a", "b", "r.id", "r.type", "r.x", "odd"]);
    }

    #[test]
    fn what_is_right_passes() {
        let mut f = fields(json!({"at": "2026-11-29T12:00:00Z", "n": -3, "t": ["a"], "yes": true}));
        assert!(f.instant("at").is_some() && f.whole("n") == Some(-3) && f.flag("yes"));
        assert_eq!(f.texts("t", 1), Some(vec!["a".to_owned()]));
        assert!(f.finish().is_ok());
    }
}
