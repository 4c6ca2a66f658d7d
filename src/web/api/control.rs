//! What people ask of a task: cancel, pause, resume. Asking again for what is already asked is a 202 without effect.

use crate::core::ids::TaskId;
use crate::core::lifecycle::Ask;
use crate::core::principal::Principal;
use crate::core::task::{State as TaskState, Task, limits};
use crate::core::view::TaskDetail;
use crate::core::view::may_cancel;
use crate::store::Asked;
use crate::web::body::OptionalBody;
use crate::web::error::{ApiError, Code};
use crate::web::extract::{Lang, TaskPath, Writer};
use crate::web::fields::Fields;
use crate::web::openapi::asked;
use crate::web::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

/// Cancels: at once, or when the chunk under way has ended.
///
/// `force` does not wait for the chunk under way and is for operators. Asking again is a 202 without effect.
#[utoipa::path(post, path = "/tasks/{id}/cancel", operation_id = "cancelTask", tag = "tasks", params(("id" = TaskId, Path, description = "The task.")), request_body = Option<asked::StopBody>, responses((status = 202, body = TaskDetail, description = "The task as it is now.")), extensions(("x-codes" = json!(["not-cancellable"]))))]
pub async fn cancel(
    State(state): State<AppState>,
    Writer(who): Writer,
    TaskPath(id): TaskPath,
    Lang(lang): Lang,
    OptionalBody(mut fields): OptionalBody,
) -> Result<Response, ApiError> {
    let force = fields.flag("force");
    let reason = take_reason(fields)?;
    if force && !who.is_operator() {
        return Err(ApiError::new(Code::Forbidden).detail("Only operators may force a cancel."));
    }
    let task = state.task(&who, id).await?;
    let action = state.catalogue.actions.get(&task.action);
    if !force && !task.state.is_final() && !may_cancel(&who, action.as_deref()) {
        return Err(ApiError::new(Code::Forbidden).detail("Tasks of this action are not yours to cancel."));
    }
    let ask = if force { Ask::ForceCancel } else { Ask::Cancel };
    act(&state, &who, &lang, &task, ask, reason, Code::NotCancellable).await
}

/// Pauses: at once, or when the chunk under way has ended.
#[utoipa::path(post, path = "/tasks/{id}/pause", operation_id = "pauseTask", tag = "tasks", params(("id" = TaskId, Path, description = "The task.")), request_body = Option<asked::ReasonBody>, responses((status = 202, body = TaskDetail, description = "The task as it is now.")), extensions(("x-codes" = json!(["not-pausable"]))))]
pub async fn pause(
    State(state): State<AppState>,
    Writer(who): Writer,
    TaskPath(id): TaskPath,
    Lang(lang): Lang,
    OptionalBody(fields): OptionalBody,
) -> Result<Response, ApiError> {
    let reason = take_reason(fields)?;
    let task = state.task(&who, id).await?;
    act(&state, &who, &lang, &task, Ask::Pause, reason, Code::NotPausable).await
}

/// Goes on from the checkpoint: a paused, failed or cancelled task.
///
/// For one that has ended, the action has to be the caller's to click.
#[utoipa::path(post, path = "/tasks/{id}/resume", operation_id = "resumeTask", tag = "tasks", params(("id" = TaskId, Path, description = "The task.")), request_body = Option<asked::ReasonBody>, responses((status = 202, body = TaskDetail, description = "The task as it is now.")), extensions(("x-codes" = json!(["not-resumable", "parent-stopped", "superseded", "unknown-action"]))))]
pub async fn resume(
    State(state): State<AppState>,
    Writer(who): Writer,
    TaskPath(id): TaskPath,
    Lang(lang): Lang,
    OptionalBody(fields): OptionalBody,
) -> Result<Response, ApiError> {
    let reason = take_reason(fields)?;
    let task = state.task(&who, id).await?;
    if task.state.is_final() {
        state.resolver.clickable(&who, &task.action)?;
    }
    act(&state, &who, &lang, &task, Ask::Resume, reason, Code::NotResumable).await
}

async fn act(
    state: &AppState,
    who: &Principal,
    lang: &str,
    task: &Task,
    ask: Ask,
    reason: Option<String>,
    refusal: Code,
) -> Result<Response, ApiError> {
    match state.commands.ask(who, task.id, ask, reason).await? {
        Asked::Done { task, .. } => {
            Ok(super::tasks::answer(StatusCode::ACCEPTED, &state.stored_detail(who, lang, &task).await?))
        }
        Asked::Refused(refused) => Err(ApiError::new(refusal).with("state", refused.state.as_str())),
        Asked::ParentStopped => Err(ApiError::new(Code::ParentStopped)),
        Asked::Superseded => Err(ApiError::new(Code::Superseded)),
        // It was there a moment ago, in words of a newer version: nothing is done to it here.
        Asked::NotFound if task.state == TaskState::Unknown => {
            Err(ApiError::new(refusal).with("state", task.state.as_str()))
        }
        Asked::NotFound => Err(ApiError::new(Code::NotFound)),
    }
}

fn take_reason(mut fields: Fields) -> Result<Option<String>, ApiError> {
    let reason = fields.text("reason");
    if reason.as_ref().is_some_and(|r| r.chars().count() > limits::REASON_CHARS) {
        fields.fault("reason", format!("may have at most {} characters", limits::REASON_CHARS));
    }
    fields.finish()?;
    Ok(reason)
}
