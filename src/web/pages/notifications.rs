//! `/notifications`: the tasks, filtered by the address, in groups, a page at a time.

use super::row::{Group, Row};
use super::shell::Shell;
use super::when::When;
use super::words::grouped;
use crate::core::task::State;
use crate::core::view::TaskSummary;
use askama::Template;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The filters, as they stand in the address. Unknown keys are let pass: a link may carry more than a page knows.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Filter {
    /// One state.
    pub state: Option<State>,
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
    pub fn with_state(&self, state: Option<State>) -> String {
        self.written(state, None)
    }

    fn written(&self, state: Option<State>, cursor: Option<&str>) -> String {
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
pub fn chips(page: &Shell, filter: &Filter, by_state: &BTreeMap<State, i64>) -> Vec<Chip> {
    let all = Chip {
        label: page.t("filter.all").into_owned(),
        count: String::new(),
        query: filter.with_state(None),
        current: filter.state.is_none(),
    };
    let states = State::ALL.into_iter().filter_map(|state| {
        let count = by_state.get(&state).copied().unwrap_or(0);
        let current = filter.state == Some(state);
        (count > 0 || current).then(|| Chip {
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
    /// Unread ends among the rows.
    pub unread: i64,
    /// "Mark 3 read".
    pub mark_read: String,
    /// The owner's head when the page was read.
    pub head: i64,
    /// How long ended tasks are kept, in words.
    pub kept: String,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_live_in_the_address_and_a_chip_keeps_the_others() {
        let filter =
            Filter { q: "50% & more".into(), action: "import".into(), state: Some(State::Failed), ..Filter::default() };
        assert!(filter.is_set());
        assert_eq!(filter.query(Some("c1")), "?state=failed&action=import&q=50%25+%26+more&cursor=c1");
        assert_eq!(filter.with_state(Some(State::Queued)), "?state=queued&action=import&q=50%25+%26+more");
        assert_eq!(Filter::default().query(None), "");
        assert!(!Filter { cursor: "c1".into(), ..Filter::default() }.is_set());
    }
}
