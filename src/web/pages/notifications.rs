//! `/notifications`: the tasks, filtered by the address, in groups, a page at a time.

use super::fold::{Entry, folded};
use super::row::{Group, Row};
use super::shell::{ScriptJson, Shell, script_json};
use super::visitor::{SignedForm, Visitor};
use super::when::When;
use super::words::grouped;
use super::{html, way_back};
use crate::core::ids::Head;
use crate::core::principal::Principal;
use crate::core::retention::Keep;
use crate::core::task::{RecordRef, State as TaskState};
use crate::core::view::TaskSummary;
use crate::store::{ListParams, Mark, MarkFilter, MarkParams, Reach};
use crate::web::api::list::{self, Asked};
use crate::web::cursor;
use crate::web::error::{ApiError, Code};
use crate::web::query::SEARCH_CHARS;
use crate::web::state::AppState;
use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;

/// The filters, as they stand in the address. Unknown keys are let pass: a link may carry more than a page knows.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Filter {
    /// One state.
    pub state: Option<TaskState>,
    /// One action; empty for all.
    pub action: String,
    /// `tenant`: everybody's tasks.
    pub scope: String,
    /// `type:id`; empty for all.
    pub record: String,
    /// First day, yyyy-MM-dd in the viewer's zone.
    pub from: String,
    /// Last day, yyyy-MM-dd in the viewer's zone.
    pub to: String,
    /// A part of the title.
    pub q: String,
    /// Where the page begins.
    pub cursor: String,
}

impl Filter {
    /// Whether anything is left out by it.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.state.is_some() || !self.parts(None).is_empty()
    }

    /// Whether everybody's tasks are wanted.
    #[must_use]
    pub fn tenant(&self) -> bool {
        self.scope == "tenant"
    }

    /// The query of this filter, at another page.
    #[must_use]
    pub fn query(&self, cursor: Option<&str>) -> String {
        self.written(self.state, cursor)
    }

    /// The query of this filter with another state, from the first page on.
    #[must_use]
    pub fn with_state(&self, state: Option<TaskState>) -> String {
        self.written(state, None)
    }

    fn written(&self, state: Option<TaskState>, cursor: Option<&str>) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        if let Some(state) = state {
            query.append_pair("state", state.as_str());
        }
        for (key, value) in self.parts(cursor) {
            query.append_pair(key, value);
        }
        let query = query.finish();
        if query.is_empty() { query } else { format!("?{query}") }
    }

    fn parts<'s>(&'s self, cursor: Option<&'s str>) -> Vec<(&'static str, &'s str)> {
        [
            ("action", self.action.as_str()),
            ("scope", self.scope.as_str()),
            ("record", self.record.as_str()),
            ("from", self.from.as_str()),
            ("to", self.to.as_str()),
            ("q", self.q.as_str()),
            ("cursor", cursor.unwrap_or_default()),
        ]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .collect()
    }
}

/// A state as a link that filters by it.
pub struct Chip {
    /// The state; empty for all.
    pub state: &'static str,
    /// Its name.
    pub label: String,
    /// How many tasks are in it, unfiltered; empty for all states together.
    pub count: String,
    /// The address of the filtered list.
    pub query: String,
    /// Whether it is the filter in force.
    pub current: bool,
}

/// All, and each state that has tasks, in the order of the states.
#[must_use]
pub fn chips(page: &Shell, filter: &Filter, by_state: &BTreeMap<TaskState, i64>) -> Vec<Chip> {
    let all = Chip {
        state: "",
        label: page.t("filter.all").into_owned(),
        count: String::new(),
        query: filter.with_state(None),
        current: filter.state.is_none(),
    };
    let states = TaskState::ALL.into_iter().chain([TaskState::Unknown]).filter_map(|state| {
        let count = by_state.get(&state).copied().unwrap_or(0);
        let current = filter.state == Some(state);
        (count > 0 || current).then(|| Chip {
            state: state.as_str(),
            label: page.t(&format!("state.{}", state.as_str())).into_owned(),
            count: grouped(count),
            query: filter.with_state(Some(state)),
            current,
        })
    });
    std::iter::once(all).chain(states).collect()
}

/// The rows under one heading.
pub struct RowGroup<'a> {
    /// The heading.
    pub group: Group,
    /// How many tasks stand there; with a plus where older pages have more of them.
    pub count: String,
    /// Newest first.
    pub entries: Vec<Entry<'a>>,
}

/// What the button "Mark 12 read" is about.
#[derive(Debug, Default)]
pub struct Unread {
    /// How many ends of the viewer's own fit the filter and were not read.
    pub count: usize,
    /// How many of them are not on this page.
    pub beyond: usize,
    /// The head that they were counted at.
    pub up_to: i64,
    /// The filter as the API takes it, JSON.
    pub filter: String,
}

/// The page.
#[derive(Template)]
#[template(path = "pages/notifications.html")]
pub struct NotificationsPage<'a> {
    /// The frame.
    pub page: &'a Shell,
    /// The filter in force.
    pub filter: Filter,
    /// The states that have tasks.
    pub chips: Vec<Chip>,
    /// The actions to choose from: key and title.
    pub actions: Vec<(String, String)>,
    /// Whether the viewer may see everybody's.
    pub may_see_all: bool,
    /// The rows.
    pub groups: Vec<RowGroup<'a>>,
    /// Whether this is the first page.
    pub first: bool,
    /// Where the next page begins.
    pub next: Option<String>,
    /// What can be marked as read.
    pub unread: Unread,
    /// "Mark 3 read".
    pub mark_read: String,
    /// The tasks of the page, for its script.
    pub list_json: ScriptJson,
    /// When the page was read.
    pub updated: When,
    /// How long ended tasks stay.
    pub kept: String,
}

/// How long ended tasks stay in the list, by their outcome.
#[must_use]
pub fn kept(page: &Shell, keep: &Keep) -> String {
    let for_ms = |ms| page.watch.days(ms).into();
    let args = [
        ("succeeded", for_ms(keep.succeeded_ms)),
        ("failed", for_ms(keep.failed_ms)),
        ("cancelled", for_ms(keep.cancelled_ms)),
    ];
    page.w.fill("list.kept", &args)
}

/// The rows of some tasks, newest first, in their groups and folded; `more` = older pages go on.
#[must_use]
pub fn in_groups<'a>(page: &'a Shell, tasks: &'a [TaskSummary], more: bool) -> Vec<RowGroup<'a>> {
    let mut groups: BTreeMap<Group, Vec<Entry<'a>>> = BTreeMap::new();
    for (group, entry) in folded(tasks, |task| Row::new(task, page.w, &page.watch, &page.csrf)) {
        groups.entry(group).or_default().push(entry);
    }
    let count = |group: Group, entries: &[Entry<'_>]| {
        let rows = |entry: &Entry<'_>| if let Entry::Many(batch) = entry { batch.rows.len() } else { 1 };
        let n = i64::try_from(entries.iter().map(rows).sum::<usize>()).expect("a page has few rows");
        let open = more && matches!(group, Group::Today | Group::Earlier);
        if open { page.w.count("group.more", n) } else { grouped(n) }
    };
    groups.into_iter().map(|(group, entries)| RowGroup { group, count: count(group, &entries), entries }).collect()
}

/// How many rows a page has, the unfinished on top of the first one apart.
const PAGE_ROWS: usize = 50;

/// `GET /notifications`
///
/// # Errors
/// 400 for a filter that cannot be read, 403 for the tasks of others; those of the store.
pub async fn show(
    State(state): State<AppState>,
    Visitor { who, shell }: Visitor,
    filter: Result<Query<Filter>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(filter) = filter.map_err(|_| ApiError::new(Code::BadRequest))?;
    let asked = asked(&who, &shell, &filter)?;
    let (reach, marks) = (asked.params.reach.clone(), mark_filter(&asked.params));
    let (nothing, first) = (asked.nothing, filter.cursor.is_empty());
    let counts = state.store.counts(&reach, true).await?;
    let mut tasks = list::fill(&state, &who, shell.w.lang(), asked).await?;
    if first && !filter.is_set() {
        add_unfinished(&state, &who, &shell, &mut tasks.items).await?;
    }
    let unread = if nothing { Unread::default() } else { unread(&state, &who, marks, &tasks.items).await? };
    let titles = state.catalogue.actions.iter().map(|a| (a.key.clone(), a.title.get(shell.w.lang()).to_owned()));
    let page = NotificationsPage {
        page: &shell,
        chips: chips(&shell, &filter, &counts.by_state),
        actions: titles.collect(),
        may_see_all: who.is_operator(),
        first,
        mark_read: shell.w.count("list.mark_read", i64::try_from(unread.count).expect("a mark touches few")),
        unread,
        updated: shell.watch.at(shell.watch.now()),
        kept: kept(&shell, &state.settings.keep),
        groups: in_groups(&shell, &tasks.items, tasks.next.is_some()),
        list_json: script_json(&json!({"items": tasks.items, "more": tasks.next.is_some()})),
        next: tasks.next,
        filter,
    };
    Ok(html(&page))
}

/// The first page begins with all that is under way or waits, however old it is.
async fn add_unfinished(
    state: &AppState,
    who: &Principal,
    shell: &Shell,
    items: &mut Vec<TaskSummary>,
) -> Result<(), ApiError> {
    let states = TaskState::ALL.into_iter().chain([TaskState::Unknown]).filter(|s| !s.is_final()).collect();
    let params =
        ListParams { reach: Reach::own(who), states, descending: true, limit: PAGE_ROWS, ..ListParams::default() };
    let asked = Asked { bound_to: String::new(), params, nothing: false };
    let unfinished = list::fill(state, who, shell.w.lang(), asked).await?;
    let older = |task: &TaskSummary| items.iter().all(|known| known.id != task.id);
    let older: Vec<TaskSummary> = unfinished.items.into_iter().filter(older).collect();
    items.extend(older);
    Ok(())
}

/// How many of the viewer's own ends fit the filter and were not read, wherever they are in the list.
async fn unread(
    state: &AppState,
    who: &Principal,
    filter: MarkFilter,
    items: &[TaskSummary],
) -> Result<Unread, ApiError> {
    let head = state.store.head(&who.tenant, &who.user).await?;
    let body = json!({"state": filter.states, "action": filter.action, "q": filter.text, "from": filter.from, "to": filter.to,
        "record": filter.record.as_ref().map(|r| format!("{}:{}", r.kind, r.id))});
    let params = read_marks(who, head, filter);
    let count = state.store.markable(&params).await?;
    let here = |task: &&TaskSummary| task.state.is_final() && !task.read && task.owner == who.user;
    let beyond = count.saturating_sub(items.iter().filter(here).count());
    let given: serde_json::Map<_, _> = body
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, v)| !v.is_null())
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    Ok(Unread { count, beyond, up_to: head.0, filter: serde_json::Value::from(given).to_string() })
}

fn read_marks(who: &Principal, up_to: Head, filter: MarkFilter) -> MarkParams {
    let (tenant, owner) = (who.tenant.clone(), who.user.clone());
    MarkParams { tenant, owner, mark: Mark::Read, ids: Vec::new(), up_to: Some(up_to), filter }
}

fn mark_filter(params: &ListParams) -> MarkFilter {
    let ListParams { states, action, record, text, from, to, .. } = params.clone();
    MarkFilter { states, action, record, text, from, to }
}

/// The list that a filter means. Days are the viewer's.
fn asked(who: &Principal, shell: &Shell, filter: &Filter) -> Result<Asked, ApiError> {
    if filter.tenant() && !who.is_operator() {
        return Err(ApiError::new(Code::Forbidden));
    }
    let given = |text: &str| Some(text.to_owned()).filter(|t| !t.is_empty());
    let day = |text: &str| shell.watch.day(text).map(|(from, to)| (Some(from), Some(to))).unwrap_or_default();
    let record = filter.record.split_once(':').filter(|(kind, id)| !kind.is_empty() && !id.is_empty());
    let params = ListParams {
        reach: if filter.tenant() { Reach::of(who) } else { Reach::own(who) },
        states: filter.state.into_iter().collect(),
        action: given(&filter.action),
        record: record.map(|(kind, id)| RecordRef { kind: kind.to_owned(), id: id.to_owned() }),
        text: given(&filter.q).map(|q| q.chars().filter(|c| *c != '\0').take(SEARCH_CHARS).collect()),
        from: day(&filter.from).0,
        to: day(&filter.to).1,
        descending: true,
        limit: PAGE_ROWS,
        ..ListParams::default()
    };
    let nothing = record.is_none() && !filter.record.is_empty();
    let mut asked = Asked { bound_to: list::bound_to(who, &params, nothing), params, nothing };
    if !filter.cursor.is_empty() {
        asked.params.after = Some(cursor::read(&asked.bound_to, &filter.cursor)?);
    }
    Ok(asked)
}

/// `POST /notifications/read`: marks what the button named: all that fits the page's filter, up to the page's head.
///
/// # Errors
/// Those of the store.
pub async fn mark_read(State(state): State<AppState>, form: SignedForm) -> Result<Response, ApiError> {
    let Visitor { who, shell } = form.visitor;
    let back = way_back(form.fields.get("back"));
    let address: Uri = back.parse().map_err(|_| ApiError::new(Code::BadRequest))?;
    let Query(filter) = Query::<Filter>::try_from_uri(&address).map_err(|_| ApiError::new(Code::BadRequest))?;
    let asked = asked(&who, &shell, &Filter { cursor: String::new(), ..filter })?;
    let up_to = form.fields.get("upTo").and_then(|head| head.parse().ok()).map(Head);
    if let (Some(up_to), false) = (up_to, asked.nothing) {
        state.commands.mark(read_marks(&who, up_to, mark_filter(&asked.params))).await?;
    }
    Ok(Redirect::to(back).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_live_in_the_address_and_a_chip_keeps_the_others() {
        let filter = Filter {
            q: "50% & more".into(),
            action: "import".into(),
            state: Some(TaskState::Failed),
            ..Filter::default()
        };
        assert!(filter.is_set());
        assert_eq!(filter.query(Some("c1")), "?state=failed&action=import&q=50%25+%26+more&cursor=c1");
        assert_eq!(filter.with_state(Some(TaskState::Queued)), "?state=queued&action=import&q=50%25+%26+more");
        assert_eq!(Filter::default().query(None), "");
        assert!(!Filter { cursor: "c1".into(), ..Filter::default() }.is_set());
    }
}
