//! The description of the API, made from the code that serves it: `/api/openapi.json`, and what the page at `/api/docs`
//! shows. Both are open to everybody: they tell what this version can do, and nothing of what it holds.
//!
//! An operation's route, shapes and own codes stand above its handler; the router is built from the same lines. Here they
//! are only put together, once. Invariant: the text of an answer is the same for every caller.

pub mod asked;
pub mod problem;

use super::auth;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::LazyLock;
use utoipa::OpenApi;

/// Nouns of the API, in the order of the page, each with a sentence.
const TAGS: [(&str, &str); 10] = [
    ("tasks", "Submit, read, list and control tasks; their logs and timelines."),
    ("actions", "The buttons that a caller may click."),
    ("records", "The tasks of a business record."),
    ("files", "Uploads for params, and results of handlers."),
    ("notifications", "The notification center over plain HTTP."),
    ("push", "The notification center over a WebSocket."),
    ("handlers", "For handlers that work outside of the service, while their chunk runs."),
    ("workers", "For programs of your own that fetch chunks and run them; with the scope `worker`."),
    ("packs", "Packs of scripts: their versions and their switches; for administrators."),
    ("operations", "For whoever runs the service, and for programs that read its description."),
];

/// The frame; paths and schemas come from the router.
#[derive(OpenApi)]
#[openapi(components(schemas(problem::Problem)))]
struct Frame;

static DOCUMENT: LazyLock<Value> = LazyLock::new(assemble);
static TEXT: LazyLock<String> = LazyLock::new(|| DOCUMENT.to_string());

/// The description as JSON.
#[must_use]
pub fn document() -> &'static Value {
    &DOCUMENT
}

/// The description of this API, as OpenAPI 3.1.
#[utoipa::path(get, path = "/api/openapi.json", operation_id = "openapi", tag = "operations",
    responses((status = 200, body = Object, description = "The document.")), security(()))]
pub async fn json() -> Response {
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")], TEXT.as_str()).into_response()
}

fn assemble() -> Value {
    let mut described = Frame::openapi();
    described.merge(super::described().into_openapi());
    let mut document = serde_json::to_value(described).expect("a description is JSON");
    document["info"] = json!({
        "title": "taskbell",
        "version": env!("CARGO_PKG_VERSION"),
        "license": {"name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE")},
        "description": "Durable, chunked background tasks with true progress. JSON in camelCase; ids are UUIDv7; instants are \
            RFC 3339 in UTC with milliseconds. Unknown fields and query keys are refused, unknown fields of answers are to be \
            ignored. Every answer carries `X-Request-Id`. `lang` in the query or `Accept-Language` choose the language of \
            titles. What belongs to somebody else looks exactly like what does not exist.",
    });
    document["tags"] = TAGS.iter().map(|(name, text)| json!({"name": name, "description": text})).collect();
    document["components"]["securitySchemes"] = json!({
        "key": {"type": "http", "scheme": "bearer", "description": "An API key, `tb_…`, made by `taskbell key create`, or a token (JWT) of a configured issuer."},
        "session": {"type": "apiKey", "in": "cookie", "name": auth::COOKIE,
            "description": "The session of the sign-in page; counts for pages of our own."},
        "callback": {"type": "http", "scheme": "bearer", "description": "The token that came with a chunk, `tbc_…`; good until the chunk is over."},
    });
    document["security"] = json!([{"key": []}, {"session": []}]);
    let paths = document["paths"].as_object_mut().expect("there are paths");
    for operation in paths.values_mut().filter_map(Value::as_object_mut).flat_map(|item| item.values_mut()) {
        problem::describe(operation.as_object_mut().expect("an operation is an object"));
    }
    document
}
