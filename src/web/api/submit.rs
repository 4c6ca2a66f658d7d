//! Starting tasks: a click, or an ended task over again. What became of it is told by one answer for both.

use crate::core::ids::TaskId;
use crate::core::principal::Principal;
use crate::core::resolve::Request;
use crate::core::submit::{Submit, SubmitRefusal, Submitted};
use crate::core::task::{RecordRef, State as TaskState};
use crate::core::time::Millis;
use crate::core::view::{Beside, Documents, TaskDetail};
use crate::web::body::{JsonBody, OptionalBody};
use crate::web::error::{ApiError, Code};
use crate::web::extract::{Lang, TaskPath, Writer};
use crate::web::fields::Fields;
use crate::web::openapi::asked;
use crate::web::room::kept;
use crate::web::state::AppState;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// When a queue behind a concurrency key is full: seconds until it is worth asking again.
const QUEUE_RETRY_SECONDS: u32 = 5;

/// A task with what the submit became.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubmitAnswer {
    /// The task.
    #[serde(flatten)]
    pub task: TaskDetail,
    /// It was there before: the holder of the idempotency key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<bool>,
    /// Who started it, when, and how many clicks it has answered since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// It was there before: the holder of the concurrency key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<bool>,
}

/// Facts of a replay.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    /// Who started the holder.
    pub started_by: String,
    /// When.
    pub created_at: Millis,
    /// Clicks that were answered with it.
    pub suppressed: i64,
}

/// Submits a task: a click on a button.
///
/// Only `action` is needed. The header `Idempotency-Key` may stand for the field; if both are there, they have to be equal.
#[utoipa::path(post, path = "/tasks", operation_id = "submitTask", tag = "tasks", params(("Idempotency-Key" = Option<String>, Header, description = "Submitting the same key again returns the same task.")), request_body = Request, responses((status = 201, body = SubmitAnswer, description = "A new task.", headers(("Location" = String), ("ETag" = String))), (status = 200, body = SubmitAnswer, description = "The task that holds the key: `replayed` or `skipped` says why.")), extensions(("x-codes" = json!(["unknown-action", "idempotency-mismatch", "idempotency-conflict", "concurrency-conflict", "key-queue-full"]))))]
pub async fn submit(
    State(state): State<AppState>,
    Writer(who): Writer,
    Lang(lang): Lang,
    headers: HeaderMap,
    JsonBody(fields): JsonBody,
) -> Result<Response, ApiError> {
    let request = read_request(fields, &headers)?;
    let (status, answer) = accept(&state, &who, &lang, state.resolver.submit(&who, request)?).await?;
    Ok(respond(status, &answer))
}

/// Starts a failed or cancelled task over, as a new one.
///
/// A second click within ten seconds, or while that task is unfinished, gets the same one.
#[utoipa::path(post, path = "/tasks/{id}/retry", operation_id = "retryTask", tag = "tasks", params(("id" = TaskId, Path, description = "The task.")), request_body = Option<asked::EmptyBody>, responses((status = 201, body = SubmitAnswer, description = "A new task.", headers(("Location" = String), ("ETag" = String))), (status = 200, body = SubmitAnswer, description = "The task that holds the key: `replayed` or `skipped` says why.")), extensions(("x-codes" = json!(["not-retryable", "unknown-action", "idempotency-mismatch", "idempotency-conflict", "concurrency-conflict", "key-queue-full"]))))]
pub async fn retry(
    State(state): State<AppState>,
    Writer(who): Writer,
    TaskPath(id): TaskPath,
    Lang(lang): Lang,
    OptionalBody(fields): OptionalBody,
) -> Result<Response, ApiError> {
    fields.finish()?;
    let (status, answer) = start_over(&state, &who, id, &lang).await?;
    Ok(respond(status, &answer))
}

/// Starts a failed or cancelled task over, as a new one.
///
/// # Errors
/// 409 for a task in another state; every refusal as its problem.
pub async fn start_over(
    state: &AppState,
    who: &Principal,
    id: TaskId,
    lang: &str,
) -> Result<(StatusCode, SubmitAnswer), ApiError> {
    let task = state.task(who, id).await?;
    if !matches!(task.state, TaskState::Failed | TaskState::Cancelled) {
        return Err(ApiError::new(Code::NotRetryable).with("state", task.state.as_str()));
    }
    let params = state.store.documents(id).await?.params;
    accept(state, who, lang, state.resolver.again(who, &task, params)?).await
}

/// Gives a click to the engine and tells what became of it.
///
/// # Errors
/// Every refusal as its problem.
pub async fn accept(
    state: &AppState,
    who: &Principal,
    lang: &str,
    submit: Submit,
) -> Result<(StatusCode, SubmitAnswer), ApiError> {
    let params = submit.params.clone();
    let commands = state.commands.clone();
    let submitted = kept(async move { commands.submit(submit).await }).await?;
    failpoint!("submit.reply");
    if let Submitted::Created(task) = &submitted
        && let Err(e) = state.files.used_by(&task.tenant, &params, task.created_at).await
    {
        // The task is accepted all the same; its files are kept for the usual week.
        tracing::warn!(task = %task.id, "the files of a task are not kept longer: {e}");
    }
    let (status, task, documents) = match &submitted {
        Submitted::Created(task) => (StatusCode::CREATED, task, Documents { params, ..Documents::default() }),
        Submitted::Replayed(task) | Submitted::Skipped(task) => {
            (StatusCode::OK, task, state.store.documents(task.id).await?)
        }
        Submitted::Refused(refusal) => return Err(refused(refusal)),
    };
    let replay = matches!(submitted, Submitted::Replayed(_)).then(|| Replay {
        started_by: task.started_by.clone(),
        created_at: task.created_at,
        suppressed: task.suppressed,
    });
    let answer = SubmitAnswer {
        replayed: replay.is_some().then_some(true),
        replay,
        skipped: matches!(submitted, Submitted::Skipped(_)).then_some(true),
        task: match (status, task.state) {
            // A new task at the end of its queue has nothing beside it yet: no file, no holder, no place worth a read.
            (StatusCode::CREATED, TaskState::Queued) => {
                state.lens(who, lang).detail(task, &Beside::default(), documents)
            }
            _ => state.detail(who, lang, task, documents).await?,
        },
    };
    Ok((status, answer))
}

fn respond(status: StatusCode, answer: &SubmitAnswer) -> Response {
    let task = &answer.task.summary;
    let etag = format!("\"{}\"", task.revision);
    let mut response = (status, [(header::ETAG, etag)], Json(answer)).into_response();
    response.headers_mut().insert(header::LOCATION, super::tasks::location(task.id));
    response
}

fn refused(refusal: &SubmitRefusal) -> ApiError {
    match refusal {
        SubmitRefusal::IdempotencyMismatch { task, paths } => ApiError::new(Code::IdempotencyMismatch)
            .detail(format!("The idempotency key belongs to a request that differs in: {}.", paths.join(", ")))
            .with("task", task.to_string())
            .with("paths", paths.clone()),
        SubmitRefusal::IdempotencyConflict => ApiError::new(Code::IdempotencyConflict),
        SubmitRefusal::ConcurrencyConflict { task: Some(task) } => {
            ApiError::new(Code::ConcurrencyConflict).with("task", task.to_string())
        }
        SubmitRefusal::ConcurrencyConflict { task: None } => ApiError::new(Code::ConcurrencyConflict),
        SubmitRefusal::KeyQueueFull { limit } => {
            ApiError::new(Code::KeyQueueFull).with("limit", *limit).retry_after(QUEUE_RETRY_SECONDS)
        }
    }
}

/// The request in a body, and the key in the header `Idempotency-Key`.
///
/// # Errors
/// 422 with all fields of a wrong type or an unknown name.
pub fn read_request(mut fields: Fields, headers: &HeaderMap) -> Result<Request, ApiError> {
    let mut request = take_request(&mut fields);
    match header_key(headers) {
        Ok(None) => {}
        Ok(Some(key)) => match &request.idempotency_key {
            Some(other) if *other != key => {
                fields.fault("idempotencyKey", "differs from the header Idempotency-Key");
            }
            _ => request.idempotency_key = Some(key),
        },
        Err(message) => fields.fault("idempotencyKey", message),
    }
    fields.finish()?;
    Ok(request)
}

/// The fields of one request.
pub fn take_request(fields: &mut Fields) -> Request {
    Request {
        action: fields.required_text("action").unwrap_or_default(),
        params: fields.value("params"),
        record: take_record(fields),
        title: fields.text("title"),
        owner: fields.text("owner"),
        idempotency_key: fields.text("idempotencyKey"),
        concurrency_key: fields.text("concurrencyKey"),
        priority: fields.whole("priority"),
        run_at: fields.instant("runAt"),
    }
}

fn take_record(fields: &mut Fields) -> Option<RecordRef> {
    let mut inner = fields.object("record")?;
    let (kind, id) = (inner.required_text("type"), inner.required_text("id"));
    fields.absorb(inner);
    Some(RecordRef { kind: kind?, id: id? })
}

fn header_key(headers: &HeaderMap) -> Result<Option<String>, &'static str> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err("is given by two headers");
    }
    let text = std::str::from_utf8(value.as_bytes()).map_err(|_| "is not UTF-8 in the header")?;
    Ok(Some(text.to_owned()))
}
