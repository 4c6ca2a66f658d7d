//! The catalogue: every statement by name, as static text with `$n` placeholders.
//!
//! The texts stand in `sql/common/` where all databases take the same one, and in `sql/<db>/` where a dialect must differ.
//! Marks that begin with `@` are filled from the one list of columns ([`super::row::COLUMNS`]) and from enums, never from a
//! request. A test prepares every statement on its database.

use super::row::{COLUMNS, DERIVED, FIXED};
use super::{SortBy, StoreError};
use std::sync::LazyLock;

macro_rules! catalogue {
    ($($(#[$doc:meta])* $name:ident: $folder:literal,)*) => {
        /// The statements of one database.
        #[allow(missing_docs, reason = "each statement opens with its own purpose")]
        #[derive(Debug)]
        pub struct Statements {
            $(pub $name: String,)*
            /// The pages of the list: by sort column, then by direction.
            pub lists: Vec<String>,
        }

        /// SQLite's.
        pub static SQLITE: LazyLock<Statements> = LazyLock::new(|| Statements {
            $($name: filled(include_str!(concat!("sql/", $folder, "/", stringify!($name), ".sql"))),)*
            lists: lists(include_str!("sql/sqlite/list.sql")),
        });

        impl Statements {
            /// All of them with their names, for the test that prepares each.
            #[must_use]
            pub fn all(&self) -> Vec<(&'static str, &str)> {
                let mut all = vec![$((stringify!($name), self.$name.as_str()),)*];
                all.extend(self.lists.iter().map(|text| ("list", text.as_str())));
                all
            }
        }
    };
}

catalogue! {
    api_key: "common",
    append_events: "sqlite",
    artifacts: "sqlite",
    bump_heads: "sqlite",
    candidates: "sqlite",
    center_active: "common",
    center_newest: "common",
    center_unseen: "common",
    counts_active: "common",
    counts_all: "common",
    counts_marks: "common",
    delete_files: "sqlite",
    delete_session: "common",
    documents: "sqlite",
    epoch: "common",
    events: "common",
    expire_artifacts: "sqlite",
    expired_files: "common",
    expired_sessions: "common",
    file: "common",
    head: "common",
    insert_tasks: "sqlite",
    key_holders: "common",
    key_rows: "sqlite",
    key_use: "common",
    key_waiters: "common",
    markable_by_id: "sqlite",
    markable_up_to: "sqlite",
    next_due: "common",
    now: "sqlite",
    overdue: "common",
    positions: "sqlite",
    put_api_key: "common",
    put_documents: "sqlite",
    put_file: "common",
    put_key_rows: "sqlite",
    put_session: "common",
    remove_documents: "sqlite",
    remove_events: "sqlite",
    remove_keys: "sqlite",
    remove_tasks: "sqlite",
    renew: "sqlite",
    session: "common",
    tasks_by_id: "sqlite",
    update_tasks: "sqlite",
    usual: "common",
    waited_keys: "common",
    waiting_tenants: "common",
}

const SORTS: [&str; 4] = ["t.created_at", "t.updated_at", "coalesce(t.finished_at, 0)", "t.priority"];

impl Statements {
    /// The page statement of a sort order.
    #[must_use]
    pub fn list(&self, sort: SortBy, descending: bool) -> &str {
        let column = match sort {
            SortBy::CreatedAt => 0,
            SortBy::UpdatedAt => 1,
            SortBy::FinishedAt => 2,
            SortBy::Priority => 3,
        };
        &self.lists[column * 2 + usize::from(descending)]
    }
}

/// Cuts the opening comment off and fills the marks.
fn filled(text: &str) -> String {
    let statement: Vec<&str> = text.lines().skip_while(|l| l.starts_with("--")).collect();
    let all = || COLUMNS.iter().chain(DERIVED);
    let list = |item: &dyn Fn(&&str) -> String, from: usize| all().skip(from).map(item).collect::<Vec<_>>().join(", ");
    statement
        .join("\n")
        .replace("@columns", &COLUMNS.iter().map(|c| format!("t.{c}")).collect::<Vec<_>>().join(", "))
        .replace("@names", &list(&|c| (*c).to_owned(), 0))
        .replace("@json", &list(&|c| format!("j.value ->> '{c}'"), 0))
        .replace("@set", &list(&|c| format!("{c} = j.value ->> '{c}'"), FIXED))
}

fn lists(text: &str) -> Vec<String> {
    SORTS
        .iter()
        .flat_map(|sort| {
            [("ASC", ">"), ("DESC", "<")].map(|(direction, beyond)| {
                filled(text).replace("@sort", sort).replace("@direction", direction).replace("@beyond", beyond)
            })
        })
        .collect()
}

/// A literal search text as a LIKE pattern: lower case, its own wildcards escaped by `!`.
pub(crate) fn like(text: &str) -> Result<String, StoreError> {
    if text.chars().count() > super::TEXT_CHARS {
        return Err(StoreError::Limit(format!("a search text may have {} characters", super::TEXT_CHARS)));
    }
    let mut pattern = String::from("%");
    for c in text.chars() {
        if matches!(c, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.extend(c.to_lowercase());
    }
    pattern.push('%');
    Ok(pattern)
}
