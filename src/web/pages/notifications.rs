//! `/notifications`: the tasks, filtered by the address, in groups, a page at a time.

use super::row::{Group, Row};
use super::shell::Shell;
use super::visitor::{SignedForm, Visitor};
use super::when::When;
use super::words::grouped;
use super::{html, way_back};
use crate::core::ids::TaskId;
use crate::core::principal::Principal;
use crate::core::task::{RecordRef, State as TaskState};
use crate::core::view::TaskSummary;
use crate::store::{ListParams, Mark, MarkParams, Reach};
use crate::web::api::list::{self, Asked};
use crate::web::cursor;
use crate::web::error::{ApiError, Code};
use crate::web::query::SEARCH_CHARS;
use crate::web::state::AppState;
use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
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
    let states = TaskState::ALL.into_iter().filter_map(|state| {
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
    /// Newest first.
    pub rows: Vec<Row<'a>>,
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
    /// The unread ends among the rows, with commas.
    pub unread_ids: String,
    /// "Mark 3 read".
    pub mark_read: String,
    /// When the page was read.
    pub updated: When,
}

/// The rows of some tasks in their groups, in the order of the groups, each newest first.
#[must_use]
pub fn in_groups<'a>(page: &'a Shell, tasks: &'a [TaskSummary]) -> Vec<RowGroup<'a>> {
    let mut groups: Vec<RowGroup<'a>> = Vec::new();
    for task in tasks {
        let row = Row::new(task, page.w, &page.watch, &page.csrf);
        let group = row.group();
        match groups.iter_mut().find(|known| known.group == group) {
            Some(known) => known.rows.push(row),
            None => groups.push(RowGroup { group, rows: vec![row] }),
        }
    }
    groups.sort_by_key(|group| group.group);
    groups
}

/// How many rows a page has.
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
    let counts = state.store.counts(&asked.params.reach, true).await?;
    let tasks = list::fill(&state, &who, shell.w.lang(), asked).await?;
    let groups = in_groups(&shell, &tasks.items);
    let unread: Vec<String> =
        groups.iter().flat_map(|g| &g.rows).filter(|r| r.unread()).map(|r| r.task.id.to_string()).collect();
    let titles = state.catalogue.actions.iter().map(|a| (a.key.clone(), a.title.get(shell.w.lang()).to_owned()));
    let page = NotificationsPage {
        page: &shell,
        chips: chips(&shell, &filter, &counts.by_state),
        actions: titles.collect(),
        may_see_all: who.is_operator(),
        first: filter.cursor.is_empty(),
        next: tasks.next,
        mark_read: shell.w.count("list.mark_read", i64::try_from(unread.len()).expect("a page has 50 rows")),
        unread_ids: unread.join(","),
        updated: shell.watch.at(shell.watch.now()),
        groups,
        filter,
    };
    Ok(html(&page))
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

/// `POST /notifications/read`: marks the rows that the button named.
///
/// # Errors
/// Those of the store.
pub async fn mark_read(State(state): State<AppState>, form: SignedForm) -> Result<Response, ApiError> {
    let Visitor { who, .. } = form.visitor;
    let ids: Vec<TaskId> =
        form.fields.get("ids").map_or("", String::as_str).split(',').filter_map(|id| id.parse().ok()).collect();
    if !ids.is_empty() {
        let (tenant, owner) = (who.tenant, who.user);
        let params = MarkParams { tenant, owner, mark: Mark::Read, ids, up_to: None, states: Vec::new(), action: None };
        state.commands.mark(params).await?;
    }
    Ok(Redirect::to(way_back(form.fields.get("back"))).into_response())
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
