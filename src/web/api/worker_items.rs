//! The body that workers send: a list of items, each about one chunk.
//!
//! What a worker's handler made (an outcome, progress) is taken as it is: a fault in there is the handler's, counts for its
//! chunk alone, and must not keep its neighbours in the same body from being committed. All around it is held to the rules of
//! every request: unknown fields are refused, and all faulty fields are told at once.

use crate::core::ids::{FencingToken, TaskId};
use crate::engine::commands::workers::Held;
use crate::web::body::{media_type, read_capped, refuse_encoded};
use crate::web::error::{ApiError, Code};
use crate::web::fields::Fields;
use axum::extract::Request;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The most items of one request.
const MAX_ITEMS: usize = 500;
/// Bytes of a body: many outcomes come together.
const BODY_BYTES: usize = 16 * 1024 * 1024;

/// Which fields an item has beside `task` and `fencingToken`.
pub struct Shape {
    /// What the handler made; absent for a renewal.
    pub made: Option<&'static str>,
    /// Whether the number of the chunk has to be there.
    pub numbered: bool,
}

/// One item: the chunk, and what the handler made as it came.
pub type Item = (Held, Option<Box<RawValue>>);

/// Reads all items.
///
/// # Errors
/// 422 with all faults; those of every body.
pub async fn read(request: Request, shape: &Shape) -> Result<Vec<Item>, ApiError> {
    let (parts, body) = request.into_parts();
    refuse_encoded(&parts.headers)?;
    if media_type(&parts.headers).is_none_or(|t| t != "application/json") {
        return Err(ApiError::new(Code::UnsupportedMediaType).detail("Say Content-Type: application/json."));
    }
    let bytes = read_capped(&parts, body, BODY_BYTES).await?;
    let malformed =
        |e: serde_json::Error| ApiError::new(Code::MalformedJson).detail(format!("The body is not valid JSON: {e}."));
    let raw: Box<RawValue> = serde_json::from_slice(&bytes).map_err(malformed)?;
    let Ok(mut map) = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(raw.get()) else {
        return Err(ApiError::field("", "the body must be an object"));
    };
    let list = map.remove("items").filter(|items| items.get() != "null");
    let mut fields = Fields::new(map.keys().map(|name| (name.clone(), Value::Bool(true))).collect());
    let mut items = Vec::new();
    match list.map(|list| serde_json::from_str::<Vec<Box<RawValue>>>(list.get())) {
        None => fields.fault("items", "is missing"),
        Some(Err(_)) => fields.fault("items", "must be a list"),
        Some(Ok(list)) if list.len() > MAX_ITEMS => {
            fields.fault("items", format!("may have at most {MAX_ITEMS} items"));
        }
        Some(Ok(list)) => {
            for (n, raw) in list.iter().enumerate() {
                items.extend(item(&mut fields, raw, shape, format!("items[{n}]")));
            }
        }
    }
    fields.finish()?;
    Ok(items)
}

/// One item; none when something is wrong with it, which is noted.
fn item(around: &mut Fields, raw: &RawValue, shape: &Shape, at: String) -> Option<Item> {
    let Ok(mut map) = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(raw.get()) else {
        around.fault(&at, "must be an object");
        return None;
    };
    let made = shape.made.and_then(|name| map.remove(name));
    let value = |(name, raw): (String, Box<RawValue>)| {
        // What cannot be read is no text and no number, and is refused as such.
        (name, serde_json::from_str(raw.get()).unwrap_or(Value::Array(Vec::new())))
    };
    let mut fields = Fields::inside(map.into_iter().map(value).collect::<Map<_, _>>(), at);
    let task = fields.required_text("task").and_then(|text| match text.parse::<TaskId>() {
        Ok(id) if text.len() == 36 => Some(id),
        _ => {
            fields.fault("task", "is no id of a task");
            None
        }
    });
    let token = needed_whole(&mut fields, "fencingToken");
    let chunk = if shape.numbered { needed_whole(&mut fields, "chunk") } else { fields.whole("chunk") };
    if let (Some(name), None) = (shape.made, &made) {
        fields.fault(name, "is missing");
    }
    around.absorb(fields);
    Some((Held { task: task?, token: FencingToken(token?), chunk }, made))
}

fn needed_whole(fields: &mut Fields, name: &str) -> Option<i64> {
    if !fields.has(name) {
        fields.fault(name, "is missing");
        return None;
    }
    fields.whole(name)
}
