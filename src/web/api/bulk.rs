//! One act on all tasks that a filter names, for operators: cancel, resume, retry, delete.
//!
//! The tasks are found first, within a limit, and then acted on in batches; a task that has changed meanwhile is passed
//! over, as it would be by hand. `dryRun` counts the same tasks and touches none.

use super::submit::accept;
use super::tasks::forget_logs;
use crate::core::ids::TaskId;
use crate::core::lifecycle::Ask;
use crate::core::principal::Principal;
use crate::core::task::{RecordRef, State as TaskState, Task};
use crate::core::view::can;
use crate::store::{AskParams, Asked, ListParams, Reach};
use crate::web::body::JsonBody;
use crate::web::error::{ApiError, Code};
use crate::web::extract::{Lang, Writer};
use crate::web::fields::Fields;
use crate::web::openapi::asked;
use crate::web::query::SEARCH_CHARS;
use crate::web::state::AppState;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// The most tasks that one request acts on; what is left over is a matter of asking again.
const MAX_TASKS: usize = 10_000;
/// Tasks read or changed at once.
const BATCH: usize = 200;

/// How many tasks fit, and how many were acted on.
#[derive(Debug, Serialize, ToSchema)]
pub struct BulkAnswer {
    /// Tasks that fit the filter and can be acted on.
    pub count: usize,
    /// Tasks that were; absent in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    Cancel,
    Resume,
    Retry,
    Delete,
}

impl Act {
    const ALL: [Self; 4] = [Self::Cancel, Self::Resume, Self::Retry, Self::Delete];

    fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Resume => "resume",
            Self::Retry => "retry",
            Self::Delete => "delete",
        }
    }
}

/// One act on all tasks that a filter names; for operators.
///
/// At most 10,000 at a time. A task that has changed in between is passed over. With `dryRun` they are only counted.
#[utoipa::path(post, path = "/tasks/bulk", operation_id = "actOnTasks", tag = "tasks", request_body = asked::BulkBody, responses((status = 200, body = BulkAnswer, description = "How many fit, and how many were acted on.")))]
pub async fn act(
    State(state): State<AppState>,
    Writer(who): Writer,
    Lang(lang): Lang,
    JsonBody(fields): JsonBody,
) -> Result<Json<BulkAnswer>, ApiError> {
    if !who.is_operator() {
        return Err(ApiError::new(Code::Forbidden).detail("Only operators act on many tasks at once."));
    }
    let (act, params, dry_run) = read(&who, fields)?;
    let tasks = find(&state, &who, act, params).await?;
    let count = tasks.len();
    if dry_run {
        return Ok(Json(BulkAnswer { count, done: None }));
    }
    let mut done = 0;
    for batch in tasks.chunks(BATCH) {
        done += run(&state, &who, &lang, act, batch).await?;
    }
    Ok(Json(BulkAnswer { count, done: Some(done) }))
}

fn read(who: &Principal, mut fields: Fields) -> Result<(Act, ListParams, bool), ApiError> {
    let word = fields.required_text("do");
    let act = word.as_ref().and_then(|w| Act::ALL.into_iter().find(|a| a.as_str() == w));
    if word.is_some() && act.is_none() {
        fields.fault("do", "must be cancel, resume, retry or delete");
    }
    let dry_run = fields.flag("dryRun");
    let mut params = ListParams { reach: Reach::of(who), archived: true, limit: BATCH, ..ListParams::default() };
    let given = fields.has("filter");
    match fields.object("filter") {
        Some(mut filter) => {
            read_filter(&mut filter, &mut params);
            fields.absorb(filter);
        }
        None if given => {}
        None => fields.fault("filter", "is missing; {} names all tasks"),
    }
    fields.finish()?;
    Ok((act.expect("a missing word is a fault"), params, dry_run))
}

/// The filters of the list, as fields: `state` is a text or a list.
fn read_filter(filter: &mut Fields, params: &mut ListParams) {
    for word in filter.text_or_texts("state", TaskState::ALL.len()) {
        match TaskState::named(&word) {
            Some(state) => params.states.push(state),
            None => filter.fault("state", "must name states"),
        }
    }
    params.action = filter.text("action");
    params.owner = filter.text("owner");
    if let Some(text) = filter.text("record") {
        match text.split_once(':') {
            Some((kind, id)) => params.record = Some(RecordRef { kind: kind.to_owned(), id: id.to_owned() }),
            None => filter.fault("record", "must be type:id"),
        }
    }
    params.text = filter.text("q");
    if params.text.as_ref().is_some_and(|q| q.chars().count() > SEARCH_CHARS) {
        filter.fault("q", format!("may have at most {SEARCH_CHARS} characters"));
    }
    (params.from, params.to) = (filter.instant("from"), filter.instant("to"));
}

async fn find(state: &AppState, who: &Principal, act: Act, mut params: ListParams) -> Result<Vec<Task>, ApiError> {
    let mut found = Vec::new();
    loop {
        let page = state.store.list(params.clone()).await?;
        let fits = |task: &Task| {
            let action = state.catalogue.actions.get(&task.action);
            can(task, who, action.as_deref()).contains(&act.as_str())
        };
        found.extend(page.items.into_iter().filter(fits));
        if found.len() >= MAX_TASKS || page.next.is_none() {
            found.truncate(MAX_TASKS);
            return Ok(found);
        }
        params.after = page.next;
    }
}

/// Acts on a batch; how many tasks it changed.
async fn run(state: &AppState, who: &Principal, lang: &str, act: Act, batch: &[Task]) -> Result<usize, ApiError> {
    let ids: Vec<TaskId> = batch.iter().map(|t| t.id).collect();
    let ask = match act {
        Act::Retry => return retry(state, who, lang, batch).await,
        Act::Delete => {
            let gone = state.commands.delete_all(who, ids.clone()).await?;
            let gone: Vec<TaskId> =
                ids.into_iter().zip(gone).filter(|(_, g)| *g == Some(true)).map(|(id, _)| id).collect();
            forget_logs(state, &gone).await;
            return Ok(gone.len());
        }
        Act::Cancel => Ask::Cancel,
        Act::Resume => Ask::Resume,
    };
    let params = ids.into_iter().map(|task| AskParams { caller: who.clone(), task, ask, reason: None });
    let asked = state.commands.ask_all(params.collect()).await?;
    Ok(asked.iter().filter(|a| matches!(a, Asked::Done { .. })).count())
}

async fn retry(state: &AppState, who: &Principal, lang: &str, batch: &[Task]) -> Result<usize, ApiError> {
    let mut clicks = Vec::new();
    for task in batch {
        let params = state.store.documents(task.id).await?.params;
        // Params that do not fit the action any more are the caller's to mend, one by one.
        clicks.extend(state.resolver.again(who, task, params).ok());
    }
    let answers = futures_util::future::join_all(clicks.into_iter().map(|click| accept(state, who, lang, click))).await;
    Ok(answers.iter().filter(|a| a.is_ok()).count())
}
