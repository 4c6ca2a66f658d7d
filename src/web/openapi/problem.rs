//! The problem document, as the description tells it, and which codes an operation may answer with.
//!
//! What follows from the shape of an operation is added here: that callers have to be known, that bodies may be malformed,
//! that an id may name nothing. A handler lists in `x-codes` only what is its own.

use crate::core::ids::TaskId;
use crate::core::params_check::FieldFault;
use crate::core::task::State;
use crate::web::error::Code;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// An RFC 9457 problem. Its last members come with some codes only; docs/errors.md tells which.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "only the derived description reads it; what is sent is `ApiError::problem`")]
pub struct Problem {
    /// `urn:taskbell:problem:` and the code.
    r#type: String,
    /// The sentence of the code.
    title: String,
    /// The HTTP status.
    status: u16,
    /// Stable; programs are written against it.
    code: String,
    /// This case in a sentence.
    detail: String,
    /// Finds the line in the log of the service.
    request_id: String,
    /// The fields that break their rules.
    errors: Option<Vec<FieldFault>>,
    /// The task that is in the way, where it may be told.
    task: Option<TaskId>,
    /// The state that refuses.
    state: Option<State>,
    /// Where two requests under one key differ.
    paths: Option<Vec<String>>,
    /// How many may wait.
    limit: Option<i64>,
}

/// The list of an operation's own codes, as its handler tells it.
pub const OWN: &str = "x-codes";

/// Writes the answers of an operation that are problems.
///
/// # Panics
/// When a handler lists a code that there is not.
pub fn describe(operation: &mut Map<String, Value>) {
    let mut codes: Vec<Code> = by_shape(operation);
    let own = operation.remove(OWN).unwrap_or_default();
    for word in own.as_array().into_iter().flatten() {
        let known = Code::ALL.iter().find(|code| Some(code.as_str()) == word.as_str());
        codes.push(*known.unwrap_or_else(|| panic!("there is no code {word}")));
    }
    let responses = operation["responses"].as_object_mut().expect("an operation has answers");
    for code in Code::ALL.iter().filter(|code| codes.contains(code)) {
        let status = code.status().as_str().to_owned();
        let told = responses.entry(status).or_insert_with(|| {
            json!({"description": "", "content": {"application/problem+json": {"schema": {
                "allOf": [{"$ref": "#/components/schemas/Problem"}, {"properties": {"code": {"enum": []}}}]}}}})
        });
        // The answers of probes have shapes of their own, also when they refuse.
        let schema = &mut told["content"]["application/problem+json"]["schema"];
        let Some(words) = schema["allOf"][1]["properties"]["code"]["enum"].as_array_mut() else { continue };
        words.push(code.as_str().into());
        let text = told["description"].as_str().unwrap_or_default();
        let gap = if text.is_empty() { "" } else { "\n" };
        told["description"] = format!("{text}{gap}`{}`: {}", code.as_str(), code.sentence()).into();
    }
}

/// Whether an operation, by its `security`, needs no caller.
fn is_open(security: &Value) -> bool {
    security.as_array().is_some_and(|ways| ways.contains(&json!({})))
}

fn by_shape(operation: &Map<String, Value>) -> Vec<Code> {
    let parameters = operation.get("parameters").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let any_in = |place: &str| parameters.iter().any(|parameter| parameter["in"] == place);
    let mut codes = vec![Code::OriginRefused, Code::HostRefused, Code::Internal];
    if operation.get("security").is_some_and(is_open) {
        return codes;
    }
    codes.extend([Code::Unauthenticated, Code::Forbidden, Code::Busy, Code::Unavailable]);
    if any_in("path") {
        codes.push(Code::NotFound);
    }
    if any_in("query") {
        codes.push(Code::Invalid);
    }
    if operation.contains_key("requestBody") {
        codes.extend([Code::BadRequest, Code::TooSlow, Code::TooLarge, Code::UnsupportedMediaType]);
    }
    if operation.get("requestBody").is_some_and(|body| !body["content"]["application/json"].is_null()) {
        codes.extend([Code::MalformedJson, Code::Invalid]);
    }
    codes
}
