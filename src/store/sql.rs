//! The catalogue: every statement by name, as static text with `$n` placeholders.
//!
//! The texts stand in `sql/common/` where all databases take the same one, and in `sql/<db>/` where a dialect must differ.
//! Marks that begin with `@` are filled from the one list of columns ([`super::row::COLUMNS`]) and from enums, never from a
//! request. A test prepares every statement on its database.

use super::row::{COLUMNS, DERIVED, EVENT_COLUMNS, FIXED};
use super::{ListParams, Reach, SortBy, StoreError};
use std::sync::LazyLock;

macro_rules! catalogue {
    (
        single { $($name:ident: $folder:literal,)* }
        by reach { $($wide:ident: $wide_folder:literal,)* }
        batched { $($batched:ident: $columns:expr,)* }
    ) => {
        /// The statements of one database.
        #[allow(missing_docs, reason = "each statement opens with its own purpose")]
        #[derive(Debug)]
        pub struct Statements {
            $(pub $name: String,)*
            $(pub $wide: ByReach,)*
            $(pub $batched: Batched,)*
            lists: Vec<String>,
        }

        /// SQLite's.
        pub static SQLITE: LazyLock<Statements> = LazyLock::new(|| Statements {
            $($name: filled(include_str!(concat!("sql/", $folder, "/", stringify!($name), ".sql"))),)*
            $($wide: ByReach::of(include_str!(concat!("sql/", $wide_folder, "/", stringify!($wide), ".sql"))),)*
            $($batched: Batched::new(include_str!(concat!("sql/sqlite/", stringify!($batched), ".sql")), $columns),)*
            lists: lists(include_str!("sql/sqlite/list.sql")),
        });

        impl Statements {
            /// All of them with their names, for the test that prepares each.
            #[must_use]
            pub fn all(&self) -> Vec<(&'static str, &str)> {
                let mut all = vec![$((stringify!($name), self.$name.as_str()),)*];
                $(all.extend(self.$wide.0.iter().map(|text| (stringify!($wide), text.as_str())));)*
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
        keep_uploads: "sqlite",
        key_holders: "common",
        key_rows: "sqlite",
        key_use: "common",
        key_waiters: "common",
        markable_by_id: "sqlite",
        markable_unseen: "sqlite",
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
    by reach {
        counts_active: "common",
        counts_all: "common",
        counts_marks: "common",
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

/// A statement once for each kind of reach. `$1 IS NULL OR tenant = $1` would keep a database from taking an index, so the
/// condition is written for what is given; `$1` is the tenant and `$2` the owner in all of them.
#[derive(Debug)]
pub struct ByReach(Vec<String>);

impl ByReach {
    fn of(text: &str) -> Self {
        Self(REACHES.iter().map(|reach| filled(text).replace("@reach", reach)).collect())
    }

    /// The one for a reach.
    #[must_use]
    pub fn within(&self, reach: &Reach) -> &str {
        &self.0[reach_index(reach.tenant.is_some(), reach.owner.is_some())]
    }
}

/// Neither, an owner, a tenant, both.
const REACHES: [&str; 4] = [
    "CAST($1 AS TEXT) IS NULL AND CAST($2 AS TEXT) IS NULL",
    "CAST($1 AS TEXT) IS NULL AND t.owner = $2",
    "t.tenant = $1 AND CAST($2 AS TEXT) IS NULL",
    "t.tenant = $1 AND t.owner = $2",
];

fn reach_index(tenant: bool, owner: bool) -> usize {
    usize::from(tenant) * 2 + usize::from(owner)
}

const SORTS: [&str; 4] = ["t.created_at", "t.updated_at", "coalesce(t.finished_at, 0)", "t.priority"];

impl Statements {
    /// The statement of a page: by what is given of reach, record and place to go on after, and by the sort order.
    /// `owner` is the owner of the reach or the one that is filtered by.
    #[must_use]
    pub fn list(&self, params: &ListParams, owner: Option<&String>) -> &str {
        let column = match params.sort {
            SortBy::CreatedAt => 0,
            SortBy::UpdatedAt => 1,
            SortBy::FinishedAt => 2,
            SortBy::Priority => 3,
        };
        let reach = reach_index(params.reach.tenant.is_some(), owner.is_some());
        let (record, after) = (usize::from(params.record.is_some()), usize::from(params.after.is_some()));
        let start = (reach * 2 + record) * 2 + after;
        &self.lists[(start * SORTS.len() + column) * 2 + usize::from(params.descending)]
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

/// In the order of [`Statements::list`].
fn lists(text: &str) -> Vec<String> {
    const RECORDS: [&str; 2] =
        ["CAST($5 AS TEXT) IS NULL AND CAST($6 AS TEXT) IS NULL", "t.record_type = $5 AND t.record_id = $6"];
    const AFTERS: [&str; 2] =
        ["CAST($11 AS BIGINT) IS NULL AND CAST($12 AS TEXT) IS NULL", "(@sort, t.id) @beyond ($11, $12)"];
    let mut texts = vec![filled(text)];
    let mut each = |mark: &str, choices: &[&str]| {
        texts = texts.iter().flat_map(|text| choices.iter().map(|choice| text.replace(mark, choice))).collect();
    };
    each("@reach", &REACHES);
    each("@record", &RECORDS);
    each("@after", &AFTERS);
    each("@sort", &SORTS);
    let directions = [("ASC", ">"), ("DESC", "<")];
    let directed = |text: &String| directions.map(|(d, b)| text.replace("@direction", d).replace("@beyond", b));
    texts.iter().flat_map(directed).collect()
}

/// A literal search text as a LIKE pattern: its own wildcards escaped by `!`. The statement makes both sides lower case,
/// so that the database's own idea of it, whatever letters it knows, is the same for both.
pub(crate) fn like(text: &str) -> Result<String, StoreError> {
    if text.chars().count() > super::TEXT_CHARS {
        return Err(StoreError::Limit(format!("a search text may have {} characters", super::TEXT_CHARS)));
    }
    let mut pattern = String::from("%");
    for c in text.chars() {
        if matches!(c, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(c);
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
