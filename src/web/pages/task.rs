//! `/tasks/{id}`: one task with its bar, facts, picture, log, timeline and details.

use super::ask::{self, AskPage};
use super::children::{self, Children, Newest};
use super::html;
use super::picture::Picture;
use super::row::Row;
use super::shell::{ScriptJson, Shell, safe_link, script_json};
use super::timeline::{self, Attempt, Line as TimelineLine};
use super::visitor::{SignedForm, Visitor};
use super::when::When;
use crate::core::eta::{Basis, Confidence, EtaState};
use crate::core::ids::TaskId;
use crate::core::picture::Point;
use crate::core::principal::{Principal, Scope};
use crate::core::task::{State as TaskState, TimelineEvent, WaitReason};
use crate::core::view::TaskDetail;
use crate::store::logs::{Level, LogLine, LogParams};
use crate::web::api::{control, submit, tasks};
use crate::web::body::OptionalBody;
use crate::web::error::{ApiError, Code};
use crate::web::extract::{Lang, TaskPath, Writer};
use crate::web::fields::Fields;
use crate::web::state::AppState;
use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde_json::{Value, json};

/// One line of the log.
pub struct Line {
    /// When.
    pub at: When,
    /// The level in a word.
    pub level: &'static str,
    /// Its letter.
    pub letter: char,
    /// The text, without control codes.
    pub text: String,
}

/// What the page needs beside the task.
pub struct Beside {
    /// The newest lines of the log, oldest first; none when the log store does not answer.
    pub log: Option<Vec<LogLine>>,
    /// The end of the timeline, oldest first.
    pub timeline: Vec<TimelineEvent>,
    /// How many lines stand before it.
    pub earlier: i64,
    /// The points of the picture.
    pub points: Vec<Point>,
    /// Its newest subtasks.
    pub children: Newest,
    /// A sentence on what a click did not do.
    pub note: String,
}

/// The page.
#[derive(Template)]
#[template(path = "pages/task.html")]
pub struct TaskPage<'a> {
    page: &'a Shell,
    row: Row<'a>,
    task_json: ScriptJson,
    back_link: Option<String>,
    note: String,
    shows_error: bool,
    big: String,
    message: String,
    rate: String,
    elapsed: String,
    confidence: String,
    started: Option<When>,
    result: String,
    params: String,
    checkpoint: String,
    log: Vec<Line>,
    log_failed: bool,
    picture: Option<Picture>,
    children: Children<'a>,
    timeline: Vec<TimelineLine>,
    attempts: Vec<Attempt>,
    earlier: i64,
    course_json: ScriptJson,
}

impl<'a> TaskPage<'a> {
    /// The page of a task that the viewer may see.
    #[must_use]
    pub fn new(page: &'a Shell, task: &'a TaskDetail, beside: &'a Beside) -> Self {
        let summary = &task.summary;
        let row = Row::new(summary, page.w, &page.watch, &page.csrf);
        let retrying = summary.waiting.as_ref().is_some_and(|w| w.reason == WaitReason::Retry);
        let url = summary.record.as_ref().and_then(|record| record.url.as_deref());
        Self {
            page,
            task_json: script_json(task),
            back_link: url.and_then(safe_link).map(str::to_owned),
            note: beside.note.clone(),
            shows_error: summary.error.is_some() && (summary.state == TaskState::Failed || retrying),
            big: big(&row),
            message: message(&row),
            rate: rate(page, &row),
            elapsed: elapsed(page, &row),
            confidence: confidence(page, &row),
            started: summary.started_at.map(|at| page.watch.at(at)),
            result: task.result.as_ref().map(pretty).unwrap_or_default(),
            params: Some(&task.params)
                .filter(|p| p.as_object().is_some_and(|o| !o.is_empty()))
                .map(pretty)
                .unwrap_or_default(),
            checkpoint: task.checkpoint.as_ref().map(pretty).unwrap_or_default(),
            log_failed: beside.log.is_none(),
            log: beside.log.iter().flatten().map(|line| log_line(page, line)).collect(),
            picture: Picture::new(page, &row, &beside.points, &beside.timeline),
            children: Children::new(page, &beside.children),
            timeline: timeline::lines(page, summary, &beside.timeline),
            attempts: timeline::attempts(page, summary, &beside.timeline),
            earlier: beside.earlier,
            course_json: script_json(
                &json!({"points": beside.points, "events": beside.timeline, "earlier": beside.earlier}),
            ),
            row,
        }
    }
}

/// The large figure: the percent, else the count, else nothing.
fn big(row: &Row<'_>) -> String {
    let progress = &row.task.progress;
    match row.percent() {
        percent if !percent.is_empty() => percent,
        _ if progress.current > 0 || progress.total == Some(0) => row.amount(),
        _ => String::new(),
    }
}

/// The sentence that the state template of the row chooses; a failure has a place of its own.
fn message(row: &Row<'_>) -> String {
    match (row.kind_word(), row.task.state) {
        ("retrying", _) => row.attempt(),
        ("no-signal", _) => row.silence(),
        ("partial", _) => row.caveat(),
        (_, TaskState::Queued) => row.queue(),
        (_, TaskState::Blocked) => row.ahead(),
        (_, TaskState::Running) => row.doing(),
        (_, TaskState::Pausing) => row.w.t("say.pausing").into_owned(),
        (_, TaskState::Cancelling) => row.cancelling(),
        (_, TaskState::Paused | TaskState::Cancelled) => row.stopped(),
        (_, TaskState::Failed) => String::new(),
        (_, TaskState::Succeeded) => row.done(),
        (_, TaskState::Unknown) => row.w.t("say.unknown").into_owned(),
    }
}

fn rate(page: &Shell, row: &Row<'_>) -> String {
    let progress = &row.task.progress;
    match progress.rate_per_second.filter(|rate| *rate > 0.0 && !row.task.state.is_final()) {
        Some(rate) => {
            let rounded = if rate >= 10.0 { rate.round() } else { rate };
            let unit = page.w.unit(progress.unit.as_deref(), 2);
            page.w.fill("task.rate.value", &[("n", rounded.into()), ("unit", unit.into())])
        }
        None => "–".to_owned(),
    }
}

fn elapsed(page: &Shell, row: &Row<'_>) -> String {
    let until = row.task.finished_at.unwrap_or(page.watch.now());
    row.task.started_at.map_or_else(|| "–".to_owned(), |from| page.watch.span(until.since(from)))
}

fn confidence(page: &Shell, row: &Row<'_>) -> String {
    let eta = &row.task.progress.eta;
    if eta.state != EtaState::Estimated || row.seconds_left().is_none() {
        return String::new();
    }
    let confidence = eta.confidence.map(|c| match c {
        Confidence::Low => "eta.confidence.low",
        Confidence::Medium => "eta.confidence.medium",
        Confidence::High => "eta.confidence.high",
    });
    let basis = eta.basis.map(|b| match b {
        Basis::Measured => "eta.basis.measured",
        Basis::History => "eta.basis.history",
    });
    confidence.into_iter().chain(basis).map(|key| page.t(key)).collect::<Vec<_>>().join(" · ")
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("a JSON value is always written")
}

fn log_line(page: &Shell, line: &LogLine) -> Line {
    let (level, letter) = match line.level {
        Level::Debug => ("debug", 'D'),
        Level::Info => ("info", 'I'),
        Level::Warn => ("warn", 'W'),
        Level::Error => ("error", 'E'),
    };
    let text = line.message.chars().filter(|c| matches!(c, '\n' | '\t') || !(c.is_control() || turns(*c))).collect();
    Line { at: page.watch.at(line.at), level, letter, text }
}

/// Characters that turn the direction of the text around them, and so could make a line read as another one.
fn turns(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// How many lines of the log the page is written with; the script goes on from there.
const LOG_LINES: usize = 200;
/// How many steps of the timeline the page shows.
const STEPS: i64 = 100;

/// `GET /tasks/{id}`
///
/// # Errors
/// 404 for what the visitor may not see; those of the store.
pub async fn show(
    State(state): State<AppState>,
    Visitor { who, shell }: Visitor,
    TaskPath(id): TaskPath,
) -> Result<Response, ApiError> {
    written(&state, &who, &shell, id, String::new()).await
}

async fn written(
    state: &AppState,
    who: &Principal,
    shell: &Shell,
    id: TaskId,
    note: String,
) -> Result<Response, ApiError> {
    let task = state.task(who, id).await?;
    let detail = state.stored_detail(who, shell.w.lang(), &task).await?;
    let newest = LogParams { before: Some(i64::MAX), limit: LOG_LINES, ..LogParams::default() };
    // The log is kept apart, and a page without it is better than none.
    let log = state.logs.part(id, newest).await.ok().map(|part| part.items);
    let earlier = timeline::after(task.event_count, STEPS);
    let mut timeline = state.store.events(id, earlier, usize::MAX >> 1).await?;
    if !who.is_operator() {
        // Where things happened is for operators, as the owner of a lease is.
        timeline.iter_mut().for_each(|event| event.node = None);
    }
    let points = state.store.points(id).await?;
    let children = children::read(state, who, shell.w.lang(), &task).await?;
    let beside = Beside { log, timeline, earlier, points, children, note };
    Ok(html(&TaskPage::new(shell, &detail, &beside)))
}

/// `POST /tasks/{id}/{act}`: what the API does for the same words, after its question where the form asks for it; a refusal is
/// told on the task's page.
///
/// # Errors
/// 404 for an act that there is not, and for what the visitor may not see.
pub async fn act(
    State(state): State<AppState>,
    Path((id, act)): Path<(String, String)>,
    form: SignedForm,
) -> Result<Response, ApiError> {
    let Visitor { who, shell } = form.visitor;
    let id: TaskId = id.parse().map_err(|_| ApiError::new(Code::NotFound))?;
    if form.fields.contains_key(ask::FIELD) {
        let task = state.task(&who, id).await?;
        let detail = state.stored_detail(&who, shell.w.lang(), &task).await?;
        if let Some(page) = AskPage::new(&shell, &detail.summary, &act) {
            return Ok(html(&page));
        }
    }
    match done(&state, &who, shell.w.lang(), id, &act).await {
        Ok(next) => Ok(Redirect::to(&next).into_response()),
        Err(error) if error.code.status() == StatusCode::CONFLICT => {
            let reason = error.detail.as_deref().unwrap_or(error.code.sentence());
            let note = shell.w.with("say.changed", "reason", reason);
            Ok((StatusCode::CONFLICT, written(&state, &who, &shell, id, note).await?).into_response())
        }
        Err(error) => Err(error),
    }
}

/// Does it and tells where to go on.
async fn done(state: &AppState, who: &Principal, lang: &str, id: TaskId, act: &str) -> Result<String, ApiError> {
    let writer = || Writer(who.clone());
    if !who.has(Scope::TasksWrite) {
        return Err(ApiError::new(Code::Forbidden));
    }
    let (on, task, lang, body) =
        (State(state.clone()), TaskPath(id), Lang(lang.to_owned()), OptionalBody(Fields::default()));
    let here = format!("/tasks/{id}");
    match act {
        "cancel" => control::cancel(on, writer(), task, lang, body).await.map(|_| here),
        "pause" => control::pause(on, writer(), task, lang, body).await.map(|_| here),
        "resume" => control::resume(on, writer(), task, lang, body).await.map(|_| here),
        "retry" => submit::start_over(state, who, id, &lang.0)
            .await
            .map(|(_, again)| format!("/tasks/{}", again.task.summary.id)),
        "delete" => tasks::delete(on, writer(), task).await.map(|_| "/notifications".to_owned()),
        _ => Err(ApiError::new(Code::NotFound)),
    }
}
