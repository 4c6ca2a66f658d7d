//! What people ask of a task: cancel, pause, resume. Asking again for what is already asked is a 202 without effect.

use crate::core::lifecycle::Ask;
use crate::core::principal::Principal;
use crate::core::task::{Task, limits};
use crate::core::view::may_cancel;
use crate::store::Asked;
use crate::web::body::OptionalBody;
use crate::web::error::{ApiError, Code};
use crate::web::extract::{Lang, TaskPath, Writer};
use crate::web::fields::Fields;
use crate::web::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

/// `POST /tasks/{id}/cancel`; `force` does not wait for the chunk under way and is for operators.
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
    if !force && !task.state.is_final() && !may_cancel(&who, action.map(AsRef::as_ref)) {
        return Err(ApiError::new(Code::Forbidden).detail("Tasks of this action are not yours to cancel."));
    }
    let ask = if force { Ask::ForceCancel } else { Ask::Cancel };
    act(&state, &who, &lang, &task, ask, reason, Code::NotCancellable).await
}

/// `POST /tasks/{id}/pause`
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

/// `POST /tasks/{id}/resume`: from the checkpoint, if the action is still the caller's to click.
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
        Asked::Superseded => Err(ApiError::new(Code::Superseded)),
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
