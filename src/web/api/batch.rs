//! Many clicks in one request: each is judged by itself, and the answers come in their order.
//!
//! The clicks go into the group commit one after the other, so a batch costs a commit and not one for each; one that is
//! refused takes no other with it.

use super::submit::{SubmitAnswer, accept, take_request};
use crate::core::principal::Principal;
use crate::web::body::JsonBody;
use crate::web::error::ApiError;
use crate::web::extract::{Lang, Writer};
use crate::web::fields::Fields;
use crate::web::middleware::RequestId;
use crate::web::openapi::asked;
use crate::web::openapi::problem::Problem;
use crate::web::state::AppState;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use futures_util::future::join_all;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The most clicks of one request.
const MAX_ITEMS: usize = 500;

/// The answers.
#[derive(Debug, Serialize, ToSchema)]
pub struct BatchAnswer {
    /// One for each click, in order.
    pub items: Vec<ItemAnswer>,
}

/// What became of one click.
#[derive(Debug, Serialize, ToSchema)]
pub struct ItemAnswer {
    /// The status that the click alone would have had.
    pub status: u16,
    /// The task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<SubmitAnswer>>,
    /// Or why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Problem>)]
    pub problem: Option<Value>,
}

/// Submits up to 500 tasks, each judged by itself; the answers come in their order.
#[utoipa::path(post, path = "/tasks/batch", operation_id = "submitTasks", tag = "tasks", request_body = asked::BatchBody, responses((status = 200, body = BatchAnswer, description = "What became of each.")))]
pub async fn submit(
    State(state): State<AppState>,
    Writer(who): Writer,
    Lang(lang): Lang,
    Extension(id): Extension<RequestId>,
    headers: HeaderMap,
    JsonBody(mut fields): JsonBody<3>,
) -> Result<Json<BatchAnswer>, ApiError> {
    let items = fields.required_list("items", MAX_ITEMS);
    if headers.contains_key("idempotency-key") {
        fields.fault("idempotencyKey", "belongs into the items, since a header would be the key of them all");
    }
    fields.finish()?;
    let answers = items.unwrap_or_default().into_iter().map(|item| one(&state, &who, &lang, item));
    let items = join_all(answers).await.into_iter().map(|answer| told(answer, &id)).collect();
    Ok(Json(BatchAnswer { items }))
}

async fn one(
    state: &AppState,
    who: &Principal,
    lang: &str,
    item: Value,
) -> Result<(StatusCode, SubmitAnswer), ApiError> {
    let Value::Object(map) = item else { return Err(ApiError::field("", "must be an object")) };
    let mut fields = Fields::new(map);
    let request = take_request(&mut fields);
    fields.finish()?;
    accept(state, who, lang, state.resolver.submit(who, request)?).await
}

fn told(answer: Result<(StatusCode, SubmitAnswer), ApiError>, id: &RequestId) -> ItemAnswer {
    match answer {
        Ok((status, task)) => ItemAnswer { status: status.as_u16(), task: Some(Box::new(task)), problem: None },
        Err(error) => {
            if let Some(cause) = &error.cause {
                tracing::error!(request_id = id.0, code = error.code.as_str(), cause, "an item of a batch failed");
            }
            let (status, problem) = (error.code.status().as_u16(), error.problem(&id.0));
            ItemAnswer { status, task: None, problem: Some(problem) }
        }
    }
}
