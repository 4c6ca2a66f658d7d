//! Lists of tasks: filters, sort and keyset pages, as the address tells them.

use crate::core::ids::TaskId;
use crate::core::principal::Principal;
use crate::core::task::{RecordRef, State as TaskState};
use crate::core::view::TaskSummary;
use crate::store::{ListParams, Reach, SortBy};
use crate::web::cursor;
use crate::web::error::{ApiError, Code};
use crate::web::extract::{Lang, Reader};
use crate::web::openapi::asked;
use crate::web::query::{Query, SEARCH_CHARS};
use crate::web::state::AppState;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The largest page.
pub const MAX_PAGE: i64 = 200;
/// A page when nothing is said.
const PAGE: i64 = 50;

/// A page of tasks.
#[derive(Debug, Serialize, ToSchema)]
pub struct TaskPage {
    /// The tasks.
    pub items: Vec<TaskSummary>,
    /// The cursor of the next page; null at the end.
    pub next: Option<String>,
    /// How many tasks there are in each state, whatever the filters say.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::HashMap<String, i64>>)]
    pub counts: Option<BTreeMap<&'static str, i64>>,
}

/// A page of tasks.
///
/// Own tasks, or those of the tenant with `scope=tenant` for operators. The cursor belongs to one caller, one set of filters and
/// one sort; `counts` counts all tasks of the scope, whatever the filters say.
#[utoipa::path(get, path = "/tasks", operation_id = "listTasks", tag = "tasks", params(asked::ListQuery), responses((status = 200, body = TaskPage, description = "The page.")), extensions(("x-codes" = json!(["bad-cursor"]))))]
pub async fn list(
    State(state): State<AppState>,
    Reader(who): Reader,
    Lang(lang): Lang,
    mut query: Query,
) -> Result<Json<TaskPage>, ApiError> {
    let asked = Asked::read(&mut query, &who)?;
    query.finish()?;
    let counts = state.store.counts(&asked.params.reach, true).await?;
    let mut page = fill(&state, &who, &lang, asked).await?;
    let none = TaskState::ALL.into_iter().map(|s| (s.as_str(), 0));
    page.counts = Some(none.chain(counts.by_state.iter().map(|(s, n)| (s.as_str(), *n))).collect());
    Ok(Json(page))
}

/// What a list was asked for.
#[derive(Debug)]
pub struct Asked {
    /// For the store.
    pub params: ListParams,
    /// The list in full, as cursors are bound to it.
    pub bound_to: String,
    /// A filter that no task of this version fits.
    pub nothing: bool,
}

impl Asked {
    /// Reads filters, sort and cursor. Faults of single keys stay in the query until it is finished.
    ///
    /// # Errors
    /// 403 for a scope that is not the caller's, 400 for a cursor of another list.
    pub fn read(query: &mut Query, who: &Principal) -> Result<Self, ApiError> {
        let reach = read_reach(query, who)?;
        let (sort, descending) = read_sort(query);
        let schedules = query.text("schedule", SEARCH_CHARS);
        let params = ListParams {
            reach,
            states: read_states(query),
            action: query.text("action", SEARCH_CHARS),
            pack: query.text("pack", SEARCH_CHARS),
            owner: query.text("owner", 255),
            record: read_record(query),
            parent: read_parent(query),
            text: query.text("q", SEARCH_CHARS),
            from: query.instant("from"),
            to: query.instant("to"),
            archived: true,
            sort,
            descending,
            ..ListParams::default()
        };
        let nothing = schedules.is_some();
        Self { bound_to: bound_to(who, &params, nothing), params, nothing }.page(query)
    }

    /// Reads limit and cursor.
    ///
    /// # Errors
    /// 400 for a cursor of another list.
    pub fn page(mut self, query: &mut Query) -> Result<Self, ApiError> {
        let limit = query.whole("limit", 1..=MAX_PAGE).unwrap_or(PAGE);
        self.params.limit = usize::try_from(limit).expect("1…200 was checked");
        if let Some(text) = query.text("cursor", 10_000) {
            self.params.after = Some(cursor::read(&self.bound_to, &text)?);
        }
        Ok(self)
    }
}

/// Who looks and at what: all that a cursor must not outlive.
pub fn bound_to(who: &Principal, params: &ListParams, nothing: bool) -> String {
    let facts = ListParams { limit: 0, after: None, ..params.clone() };
    format!("{}\0{}\0{nothing}\0{facts:?}", who.tenant, who.user)
}

/// Reads the page.
///
/// # Errors
/// Those of the store.
pub async fn fill(state: &AppState, who: &Principal, lang: &str, asked: Asked) -> Result<TaskPage, ApiError> {
    if asked.nothing {
        return Ok(TaskPage { items: Vec::new(), next: None, counts: None });
    }
    let page = state.store.list(asked.params).await?;
    let next = page.next.map(|place: (i64, TaskId)| cursor::write(&asked.bound_to, place));
    Ok(TaskPage { items: state.summaries(who, lang, &page.items).await?, next, counts: None })
}

fn read_reach(query: &mut Query, who: &Principal) -> Result<Reach, ApiError> {
    let words = ["own", "tenant"];
    let scope = query.choice("scope", |w| words.contains(&w).then(|| w.to_owned()), "own, tenant");
    match scope.as_deref() {
        Some("tenant") if who.is_operator() => Ok(Reach::of(who)),
        Some("tenant") => Err(ApiError::new(Code::Forbidden).detail("Only operators see the tasks of others.")),
        _ => Ok(Reach::own(who)),
    }
}

fn read_states(query: &mut Query) -> Vec<TaskState> {
    let mut states = Vec::new();
    for word in query.words("state") {
        match TaskState::named(&word) {
            Some(state) => states.push(state),
            None => {
                let known: Vec<&str> = TaskState::ALL.iter().map(|s| s.as_str()).collect();
                query.fault("state", format!("must be one of {}", known.join(", ")));
                break;
            }
        }
    }
    states
}

fn read_record(query: &mut Query) -> Option<RecordRef> {
    let text = query.text("record", 600)?;
    match text.split_once(':') {
        Some((kind, id)) if !kind.is_empty() && !id.is_empty() => {
            Some(RecordRef { kind: kind.to_owned(), id: id.to_owned() })
        }
        _ => {
            query.fault("record", "must be type:id");
            None
        }
    }
}

fn read_parent(query: &mut Query) -> Option<TaskId> {
    let id = query.text("parent", SEARCH_CHARS)?.parse().ok();
    if id.is_none() {
        query.fault("parent", "must be the id of a task");
    }
    id
}

fn read_sort(query: &mut Query) -> (SortBy, bool) {
    let read = |word: &str| {
        let (name, descending) = word.strip_prefix('-').map_or((word, false), |name| (name, true));
        let by = match name {
            "createdAt" => SortBy::CreatedAt,
            "updatedAt" => SortBy::UpdatedAt,
            "finishedAt" => SortBy::FinishedAt,
            "priority" => SortBy::Priority,
            _ => return None,
        };
        Some((by, descending))
    };
    let words = "createdAt, updatedAt, finishedAt, priority, each also with - in front";
    query.choice("sort", read, words).unwrap_or((SortBy::CreatedAt, true))
}
