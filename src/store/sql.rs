//! The catalogue: every statement by name, as static text with `$n` placeholders.
//!
//! The texts stand in `sql/common/` where all databases take the same one, and in `sql/<db>/` where a dialect must differ.
//! Marks that begin with `@` are filled from the one list of columns ([`super::row::COLUMNS`]) and from enums, never from a
//! request. A test prepares every statement on its database.

use super::row::{COLUMNS, DERIVED, EVENT_COLUMNS, FIXED};
use super::{SortBy, StoreError};
use std::sync::LazyLock;

macro_rules! catalogue {
    (
        single { $($name:ident: $folder:literal,)* }
        batched { $($batched:ident: $columns:expr,)* }
    ) => {
        /// The statements of one database.
        #[allow(missing_docs, reason = "each statement opens with its own purpose")]
        #[derive(Debug)]
        pub struct Statements {
            $(pub $name: String,)*
            $(pub $batched: Batched,)*
            /// The pages of the list: by sort column, then by direction.
            pub lists: Vec<String>,
        }

        /// SQLite's.
        pub static SQLITE: LazyLock<Statements> = LazyLock::new(|| Statements {
            $($name: filled(include_str!(concat!("sql/", $folder, "/", stringify!($name), ".sql"))),)*
            $($batched: Batched::new(include_str!(concat!("sql/sqlite/", stringify!($batched), ".sql")), $columns),)*
            lists: lists(include_str!("sql/sqlite/list.sql")),
        });

        impl Statements {
            /// All of them with their names, for the test that prepares each.
            #[must_use]
            pub fn all(&self) -> Vec<(&'static str, &str)> {
                let mut all = vec![$((stringify!($name), self.$name.as_str()),)*];
                $(all.extend(self.$batched.texts.iter().map(|text| (stringify!($batched), text.as_str())));)*
                all.extend(self.lists.iter().map(|text| ("list", text.as_str())));
                all
            }
        }
    };
}

catalogue! {
    single {
        api_key: "common",
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
        usual: "common",
        waited_keys: "common",
        waiting_tenants: "common",
    }
    batched {
        append_events: EVENT_COLUMNS,
        insert_tasks: COLUMNS.len() + DERIVED.len(),
        put_documents: 3,
        update_tasks: 1 + COLUMNS.len() - FIXED + DERIVED.len(),
    }
}

/// The most rows that one text of a batched statement takes, as a power of two; 64 tasks are 4,096 values of the 32,766 that
/// SQLite takes.
const LARGEST_PART: u32 = 6;

/// A statement over a batch of rows whose values are bound one by one. There is a text for each power of two, so that a few
/// texts serve batches of any size and stay prepared.
#[derive(Debug)]
pub struct Batched {
    texts: Vec<String>,
}

impl Batched {
    fn new(text: &str, columns: usize) -> Self {
        let row = format!("({})", vec!["?"; columns].join(", "));
        let rows = |count: usize| vec![row.as_str(); count].join(", ");
        Self { texts: (0..=LARGEST_PART).map(|power| filled(text).replace("@rows", &rows(1 << power))).collect() }
    }

    /// The texts that take so many rows together, each with the number that it takes, the largest first.
    pub fn parts(&self, rows: usize) -> impl Iterator<Item = (usize, &str)> {
        let mut left = rows;
        std::iter::from_fn(move || {
            let power = left.checked_ilog2()?.min(LARGEST_PART);
            left -= 1 << power;
            Some((1 << power, self.texts[power as usize].as_str()))
        })
    }
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
    let changing = all().skip(FIXED).enumerate();
    let set = changing.map(|(i, c)| format!("{c} = v.column{}", i + 2)).collect::<Vec<_>>().join(", ");
    statement
        .join("\n")
        .replace("@columns", &COLUMNS.iter().map(|c| format!("t.{c}")).collect::<Vec<_>>().join(", "))
        .replace("@names", &all().copied().collect::<Vec<_>>().join(", "))
        .replace("@set", &set)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_batch_take_each_of_its_rows_once() {
        for rows in 0..=300 {
            let parts: Vec<(usize, &str)> = SQLITE.append_events.parts(rows).collect();
            assert_eq!(parts.iter().map(|(count, _)| count).sum::<usize>(), rows);
            for (count, text) in parts {
                assert_eq!(text.matches('?').count(), count * EVENT_COLUMNS);
            }
        }
    }
}
