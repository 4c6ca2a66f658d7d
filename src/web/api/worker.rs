//! Workers outside: fetch chunks, bring outcomes back. For callers with the scope `worker`, in the tenant of their key.

use super::worker_items::{self, Shape};
use crate::core::principal::Role;
use crate::core::progress::Reported;
use crate::engine::commands::workers::{Ask, ChunkOut, Held, Lent, Taken};
use crate::store::Renewed;
use crate::store::logs::Level;
use crate::web::auth::Caller;
use crate::web::body::JsonBody;
use crate::web::error::{ApiError, Code};
use crate::web::extract::WorkerCaller;
use crate::web::fields::Fields;
use crate::web::openapi::asked;
use crate::web::room::kept;
use crate::web::state::AppState;
use axum::Json;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use serde::Serialize;
use serde_json::Value;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use utoipa::ToSchema;

/// The most actions that a poll may name.
const MAX_ACTIONS: usize = 1_000;
/// The most chunks of one answer.
const MAX_CHUNKS: i64 = 100;
/// How long a poll may wait, ms, and how long it does when it does not say.
const MAX_WAIT_MS: i64 = 60_000;
const USUAL_WAIT_MS: i64 = 20_000;
/// Characters of a worker's name.
const NAME_CHARS: usize = 100;
/// Lines of one item.
const MAX_LINES: usize = 1_000;

/// Chunks to run.
#[derive(Debug, Serialize, ToSchema)]
pub struct Chunks<'a> {
    /// None when nothing came in the time of the wait.
    pub chunks: Vec<&'a ChunkOut>,
}

/// What became of the items of a request.
#[derive(Debug, Serialize, ToSchema)]
pub struct WorkerAnswer {
    /// One for each item, in order.
    pub items: Vec<WorkerItem>,
}

/// What became of one item.
#[derive(Debug, Serialize, ToSchema)]
pub struct WorkerItem {
    /// The task.
    pub task: String,
    /// How it stands.
    pub result: Standing,
    /// The outcome had been committed before; it counts once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated: Option<bool>,
}

/// How a chunk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// It is the caller's, and what was sent is taken.
    Ok,
    /// The same, and it should come to an end: somebody asked the task to stop, or the node goes down.
    Stop,
    /// It is not the caller's any more, or never was. Nothing was changed; drop it.
    Stale,
}

impl From<Renewed> for Standing {
    fn from(answer: Renewed) -> Self {
        match answer {
            // What is being written is held.
            Renewed::Ok | Renewed::Busy => Self::Ok,
            Renewed::Stop => Self::Stop,
            Renewed::Stale => Self::Stale,
        }
    }
}

/// The tenant that a caller works for; none for all of them.
fn tenant(caller: &Caller) -> Option<&str> {
    (caller.principal.role < Role::Platform).then_some(caller.principal.tenant.as_str())
}

fn answers(tasks: Vec<String>, answers: impl IntoIterator<Item = impl Into<Standing>>) -> Json<WorkerAnswer> {
    let item = |(task, answer): (String, _)| WorkerItem { task, result: Into::into(answer), repeated: None };
    Json(WorkerAnswer { items: tasks.into_iter().zip(answers).map(item).collect() })
}

fn names<T>(items: &[(Held, T)]) -> Vec<String> {
    items.iter().map(|(held, _)| held.task.to_string()).collect()
}

/// Fetches chunks to run, and waits for the first one where none is due.
///
/// Each chunk comes with a lease: renew it, or commit the outcome, before `leaseMs` is over. At most 100 polls of a key wait on
/// a node at once. When the client goes away before it has the answer, the chunks are given back.
#[utoipa::path(post, path = "/worker/claim", operation_id = "claimChunks", tag = "workers", request_body = asked::ClaimBody, responses((status = 200, body = Chunks, description = "The chunks.")), extensions(("x-codes" = json!(["too-many-polls"]))))]
pub async fn claim(
    State(state): State<AppState>,
    WorkerCaller(caller): WorkerCaller,
    JsonBody(mut fields): JsonBody,
) -> Result<Response, ApiError> {
    let ask = ask(&state, &caller, &mut fields);
    fields.finish()?;
    let key = caller.credential.as_deref().unwrap_or(&caller.principal.user);
    let permit = state.workers.place(key).ok_or_else(|| ApiError::new(Code::TooManyPolls))?;
    let chunks = state.workers.claim(permit, ask).await?;
    Ok(delivery(chunks))
}

fn ask(state: &AppState, caller: &Caller, fields: &mut Fields) -> Ask {
    let actions = if fields.has("actions") { fields.texts("actions", MAX_ACTIONS) } else { None };
    let actions = actions.unwrap_or_default();
    if actions.is_empty() {
        fields.fault("actions", "must name at least one action");
    }
    for (n, action) in actions.iter().enumerate().filter(|(_, action)| !state.workers.run(action)) {
        let shown: String = action.chars().take(100).collect();
        fields.fault(&format!("actions[{n}]"), format!("`{shown}` is no action whose chunks workers fetch"));
    }
    let worker = fields.text("worker").unwrap_or_else(|| caller.principal.user.clone());
    if worker.is_empty() || worker.chars().count() > NAME_CHARS || worker.chars().any(char::is_control) {
        fields.fault("worker", format!("must have 1 to {NAME_CHARS} characters"));
    }
    let max = within(fields, "max", 1, 1..=MAX_CHUNKS);
    let wait_ms = within(fields, "waitMs", USUAL_WAIT_MS, 0..=MAX_WAIT_MS);
    Ask {
        tenant: tenant(caller).map(str::to_owned),
        actions,
        worker,
        max: usize::try_from(max).unwrap_or(1),
        wait: Duration::from_millis(wait_ms.unsigned_abs()),
    }
}

fn within(fields: &mut Fields, name: &str, usual: i64, range: std::ops::RangeInclusive<i64>) -> i64 {
    let value = fields.whole(name).unwrap_or(usual);
    if !range.contains(&value) {
        fields.fault(name, format!("must lie between {} and {}", range.start(), range.end()));
    }
    value.clamp(*range.start(), *range.end())
}

/// The answer with chunks, which counts as delivered once the connection has taken it.
fn delivery(chunks: Vec<Lent>) -> Response {
    let body = Chunks { chunks: chunks.iter().map(|lent| &lent.out).collect() };
    let bytes = Bytes::from(serde_json::to_vec(&body).expect("a chunk is plain data"));
    let parcel = Parcel { bytes: Some(bytes), chunks };
    ([(header::CONTENT_TYPE, "application/json")], Body::new(parcel)).into_response()
}

/// A body that knows whether it was taken. One that is dropped before drops its chunks, which are given back by that.
struct Parcel {
    bytes: Option<Bytes>,
    chunks: Vec<Lent>,
}

impl HttpBody for Parcel {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = self.bytes.take();
        self.chunks.drain(..).for_each(Lent::delivered);
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// Commits the outcomes of chunks, each judged by itself.
///
/// An outcome is read like that of every handler; one that is none ends its task as `bad-outcome` and leaves its neighbours
/// alone. The same outcome may be sent again until it is answered: it counts once.
#[utoipa::path(post, path = "/worker/commit", operation_id = "commitChunks", tag = "workers", request_body = asked::CommitBody, responses((status = 200, body = WorkerAnswer, description = "What became of each.")))]
pub async fn commit(
    State(state): State<AppState>,
    WorkerCaller(caller): WorkerCaller,
    request: Request,
) -> Result<Json<WorkerAnswer>, ApiError> {
    let items = worker_items::read(request, &Shape { made: Some("outcome"), numbered: true }).await?;
    let tasks = names(&items);
    // What cannot be read, such as a number out of range or a depth of thousands, is no outcome either.
    let outcome = |(held, made): worker_items::Item| {
        let read = made.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        (held, read.unwrap_or_default())
    };
    let outcomes = items.into_iter().map(outcome).collect();
    let taken = kept(async move { state.workers.commit(tenant(&caller), outcomes).await }).await?;
    let item = |(task, taken): (String, Taken)| match taken {
        Taken::Stale => WorkerItem { task, result: Standing::Stale, repeated: None },
        Taken::Committed { again } => WorkerItem { task, result: Standing::Ok, repeated: again.then_some(true) },
    };
    Ok(Json(WorkerAnswer { items: tasks.into_iter().zip(taken).map(item).collect() }))
}

/// Reports progress of chunks under way: work that the worker itself has committed already.
///
/// Any rate is taken, the newest value counts. A number that cannot be one is dropped with a line in the task's log.
#[utoipa::path(post, path = "/worker/progress", operation_id = "reportProgress", tag = "workers", request_body = asked::ProgressBody, responses((status = 200, body = WorkerAnswer, description = "How each chunk stands.")))]
pub async fn progress(
    State(state): State<AppState>,
    WorkerCaller(caller): WorkerCaller,
    request: Request,
) -> Result<Json<WorkerAnswer>, ApiError> {
    let items = worker_items::read(request, &Shape { made: Some("progress"), numbered: false }).await?;
    let tasks = names(&items);
    let report = |(held, made): worker_items::Item| {
        let value = made.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok()).unwrap_or_default();
        (held, Reported::parse(&value))
    };
    let standing = state.workers.report(tenant(&caller), items.into_iter().map(report).collect()).await?;
    Ok(answers(tasks, standing))
}

/// Writes lines into the logs of the tasks of chunks under way.
#[utoipa::path(post, path = "/worker/log", operation_id = "logLines", tag = "workers", request_body = asked::WorkerLogBody, responses((status = 200, body = WorkerAnswer, description = "How each chunk stands.")))]
pub async fn log(
    State(state): State<AppState>,
    WorkerCaller(caller): WorkerCaller,
    request: Request,
) -> Result<Json<WorkerAnswer>, ApiError> {
    let items = worker_items::read(request, &Shape { made: Some("lines"), numbered: false }).await?;
    let tasks = names(&items);
    let mut read = Vec::with_capacity(items.len());
    for (n, (held, made)) in items.into_iter().enumerate() {
        let value = made.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok()).unwrap_or_default();
        let lines = lines(value).ok_or_else(|| {
            let rule = "must be a list of at most 1,000 texts, or objects with `message` and `level`";
            ApiError::field(format!("items[{n}].lines"), rule)
        })?;
        read.push((held, lines));
    }
    Ok(answers(tasks, state.workers.log(tenant(&caller), read).await?))
}

fn lines(value: Value) -> Option<Vec<(Level, String)>> {
    let Value::Array(lines) = value else { return None };
    if lines.len() > MAX_LINES {
        return None;
    }
    let line = |line: Value| match line {
        Value::String(text) => Some((Level::Info, text)),
        Value::Object(fields) => {
            let level = fields.get("level").and_then(Value::as_str).map(Level::parse).unwrap_or_default();
            Some((level, fields.get("message")?.as_str()?.to_owned()))
        }
        _ => None,
    };
    lines.into_iter().map(line).collect()
}

/// Lengthens the leases of chunks, and tells which should come to an end.
///
/// A lease lasts `leaseMs` from now, and never beyond the time of its chunk.
#[utoipa::path(post, path = "/worker/renew", operation_id = "renewLeases", tag = "workers", request_body = asked::RenewBody, responses((status = 200, body = WorkerAnswer, description = "How each chunk stands.")))]
pub async fn renew(
    State(state): State<AppState>,
    WorkerCaller(caller): WorkerCaller,
    request: Request,
) -> Result<Json<WorkerAnswer>, ApiError> {
    let items = worker_items::read(request, &Shape { made: None, numbered: false }).await?;
    let tasks = names(&items);
    let held = items.into_iter().map(|(held, _)| held).collect();
    Ok(answers(tasks, state.workers.renew(tenant(&caller), held).await?))
}
