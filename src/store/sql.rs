//! The catalogue: every statement by name, as static text with `$n` placeholders.
//!
//! The texts stand in `sql/common/` where all databases take the same one, and in `sql/<db>/` where a database needs more of
//! its own than the words of its [`Dialect`]. Marks that begin with `@` are filled from that, from the one list of columns
//! ([`super::row::COLUMNS`]) and from enums, never from a request. A test prepares every statement on its database.

mod batched;

use super::row::{COLUMNS, DERIVED, EVENT_COLUMNS, FIXED, OFTEN, POINT_COLUMNS, given, kept};
use super::value::Kind;
use super::{ListParams, Reach, SortBy};
pub use batched::Batched;
pub(super) use batched::{Beside, KNOWN, plainly, together};
use std::sync::LazyLock;

/// The text of a statement: `common` for all databases, `own` for the one.
macro_rules! text {
    (common $db:literal $name:ident) => {
        include_str!(concat!("sql/common/", stringify!($name), ".sql"))
    };
    (own $db:literal $name:ident) => {
        include_str!(concat!("sql/", $db, "/", stringify!($name), ".sql"))
    };
}

macro_rules! catalogue {
    (
        single { $($name:ident: $folder:ident,)* }
        by reach { $($wide:ident: $wide_folder:ident,)* }
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

        macro_rules! of {
            ($db:tt, $dialect:ident, $rows:expr) => {
                LazyLock::new(|| Statements {
                    $($name: $dialect.fill(text!($folder $db $name)),)*
                    $($wide: ByReach::of(&$dialect.fill(text!($wide_folder $db $wide))),)*
                    $($batched: $rows(&$dialect.fill(text!(own $db $batched)), &$columns),)*
                    lists: lists(&$dialect, text!(common $db list)),
                })
            };
        }

        /// SQLite's.
        pub static SQLITE: LazyLock<Statements> = of!("sqlite", IN_SQLITE, Batched::of_values);
        /// PostgreSQL's.
        pub static POSTGRES: LazyLock<Statements> = of!("postgres", IN_POSTGRES, Batched::of_arrays);

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
        add_user: common,
        aged: common,
        ancestors: common,
        api_keys: common,
        artifacts: common,
        bump_heads: own,
        busy_packs: common,
        candidates: common,
        center_active: common,
        center_newest: common,
        center_unseen: common,
        change_user: common,
        changed: own,
        children: common,
        delete_api_key: common,
        delete_files: common,
        delete_session: common,
        documents: common,
        done_of_children: common,
        epoch: common,
        events: common,
        expire_artifacts: common,
        expired_files: common,
        expired_sessions: common,
        fallen_below: common,
        fallen_children: common,
        family_counts: common,
        file: common,
        forsaken: common,
        forsaken_of: common,
        give_keys: own,
        head: common,
        heads: own,
        held_credentials: common,
        keep_uploads: common,
        key_holders: common,
        key_rows: own,
        key_use: common,
        key_waiters: common,
        known_api_keys: common,
        last_asks: common,
        lock_free_tasks: common,
        lock_marks: common,
        lock_tasks: common,
        markable_by_id: own,
        markable_count: common,
        markable_unseen: common,
        markable_up_to: common,
        next_due: common,
        nodes: common,
        note_asks: own,
        now: own,
        open_children: common,
        overdue: common,
        pack_strays: common,
        pack_waiting: common,
        packs: common,
        pass_keys: own,
        points: common,
        positions: common,
        prune_nodes: common,
        put_api_key: common,
        put_file: common,
        put_node: common,
        put_pack: common,
        put_session: common,
        remove_documents: common,
        remove_events: common,
        remove_keys: common,
        remove_node: common,
        remove_points: common,
        remove_tasks: common,
        remove_user: common,
        renew: own,
        renew_lent: own,
        revisions: common,
        serial_packs: common,
        session: common,
        shared_packs: common,
        tasks_by_id: common,
        touch_session: common,
        user: common,
        users: common,
        usual: common,
        waited_keys: common,
        waiting_in_vain: common,
        waiting_tenants: common,
    }
    by reach {
        counts_active: common,
        counts_all: common,
        counts_marks: common,
    }
    batched {
        advance_tasks: [&COLUMNS[..1], &COLUMNS[COLUMNS.len() - OFTEN..], DERIVED].concat(),
        append_events: EVENT_COLUMNS.to_vec(),
        insert_tasks: [COLUMNS, DERIVED].concat(),
        put_documents: [("task_id", Kind::Text), ("kind", Kind::Text), ("body", Kind::Text)],
        put_points: POINT_COLUMNS.to_vec(),
        update_tasks: [&COLUMNS[..1], &COLUMNS[FIXED..], DERIVED].concat(),
    }
}

/// The statements that only PostgreSQL has: they lock what has no row, take locks away, and look after its plans.
#[derive(Debug)]
pub struct OwnStatements {
    /// Waits for the idempotency keys that tasks hold.
    pub lock_keys_of: String,
    /// Waits for concurrency keys.
    pub lock_slots: String,
    /// Takes those that are free and answers the others.
    pub locked_elsewhere: String,
    /// Waits for the turn to write logs.
    pub begin_logs: String,
    /// Ends the transactions of nodes that stand still.
    pub end_still: String,
    /// Which tables the server believes to be much smaller than they are.
    pub grown_tables: String,
}

/// PostgreSQL's own.
pub static POSTGRES_OWN: LazyLock<OwnStatements> = LazyLock::new(|| OwnStatements {
    lock_keys_of: IN_POSTGRES.fill(text!(own "postgres" lock_keys_of)),
    lock_slots: IN_POSTGRES.fill(text!(own "postgres" lock_slots)),
    locked_elsewhere: IN_POSTGRES.fill(text!(own "postgres" locked_elsewhere)),
    begin_logs: IN_POSTGRES.fill(include_str!("sql/logs/postgres/begin.sql")),
    end_still: IN_POSTGRES.fill(text!(own "postgres" end_still)),
    grown_tables: IN_POSTGRES.fill(text!(own "postgres" grown_tables)),
});

/// A statement once for each kind of reach. `$1 IS NULL OR tenant = $1` would keep a database from taking an index, so the
/// condition is written for what is given; `$1` is the tenant and `$2` the owner in all of them.
#[derive(Debug)]
pub struct ByReach(Vec<String>);

impl ByReach {
    fn of(text: &str) -> Self {
        Self(REACHES.iter().map(|reach| text.replace("@reach", reach)).collect())
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
    /// The statement of a page: by what is given of reach, record, parent and place to go on after, by whether only unfinished tasks
    /// are wanted, and by the sort order. `owner` is the owner of the reach or the one that is filtered by.
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
        let unfinished = !params.states.is_empty() && params.states.iter().all(|state| !state.is_final());
        let parent = usize::from(params.parent.is_some());
        let start = (((reach * 2 + record) * 2 + parent) * 2 + after) * 2 + usize::from(unfinished);
        &self.lists[(start * SORTS.len() + column) * 2 + usize::from(params.descending)]
    }
}

/// What a common text leaves to the database.
pub struct Dialect {
    /// `@lock`: rows are locked until the end of the transaction.
    lock: &'static str,
    /// `@share`: rows are locked against changes, and not against others that lock them so.
    share: &'static str,
    /// `@skip_locked`: the same, without those that somebody else has locked.
    skip_locked: &'static str,
    /// `@bytes`: a text that is compared by its bytes, as columns are.
    bytes: &'static str,
    /// `@in($n)`: is one of a list that is bound as one value, written as `$$`.
    in_list: &'static str,
    /// `@empty($n)`: the list is empty.
    empty_list: &'static str,
    /// `@by_active` and its like: by this index of the tasks, whatever the planner thinks.
    names_indexes: bool,
}

/// The writer connection is the lock; a list is a JSON array. Of an index the planner knows at most how many rows each owner in it
/// has on average, and mostly nothing: it may take all unfinished tasks for few, and read a hundred thousand that wait to find
/// none with a pack.
pub(super) const IN_SQLITE: Dialect = Dialect {
    lock: "",
    share: "",
    skip_locked: "",
    bytes: "",
    in_list: "IN (SELECT j.value FROM json_each($$) j)",
    empty_list: "$$ = '[]'",
    names_indexes: true,
};

/// A list is an array.
pub(super) const IN_POSTGRES: Dialect = Dialect {
    lock: "FOR UPDATE",
    share: "FOR SHARE",
    skip_locked: "FOR UPDATE SKIP LOCKED",
    bytes: "COLLATE \"C\"",
    in_list: "= ANY(CAST($$ AS TEXT[]))",
    empty_list: "cardinality(CAST($$ AS TEXT[])) = 0",
    names_indexes: false,
};

impl Dialect {
    fn by(&self, index: &str) -> String {
        if self.names_indexes { format!("INDEXED BY taskbell_tasks_{index}") } else { String::new() }
    }

    /// Cuts the opening comment off and fills the marks.
    pub(super) fn fill(&self, text: &str) -> String {
        let all = || COLUMNS.iter().chain(DERIVED);
        let names = |columns: &[(&str, Kind)]| columns.iter().map(|c| c.0).collect::<Vec<_>>().join(", ");
        let set = |first: usize| {
            let columns = all().skip(first).zip(2..).map(|((c, _), n)| format!("{c} = {}", kept(c, n)));
            columns.collect::<Vec<_>>().join(", ")
        };
        let statement: Vec<&str> = text.lines().skip_while(|l| l.starts_with("--")).collect();
        let row = || all().zip(1..).map(|((c, _), n)| given(c, n)).collect::<Vec<_>>().join(", ");
        let mut statement = statement
            .join("\n")
            .replace("@given", &row())
            .replace("@columns", &COLUMNS.iter().map(|(c, _)| format!("t.{c}")).collect::<Vec<_>>().join(", "))
            .replace("@names", &names(&[COLUMNS, DERIVED].concat()))
            .replace("@events", &names(EVENT_COLUMNS))
            .replace("@points", &names(POINT_COLUMNS))
            .replace("@set_often", &set(COLUMNS.len() - OFTEN))
            .replace("@set", &set(FIXED))
            .replace("@lock", self.lock)
            .replace("@share", self.share)
            .replace("@skip_locked", self.skip_locked)
            .replace("@bytes", self.bytes);
        for index in ["active", "held", "open_children", "pack"] {
            statement = statement.replace(&format!("@by_{index}"), &self.by(index));
        }
        for n in 1..=9 {
            let value = format!("${n}");
            statement = statement
                .replace(&format!("@in({value})"), &self.in_list.replace("$$", &value))
                .replace(&format!("@empty({value})"), &self.empty_list.replace("$$", &value));
        }
        statement
    }
}

/// In the order of [`Statements::list`].
fn lists(dialect: &Dialect, text: &str) -> Vec<String> {
    const RECORDS: [&str; 2] =
        ["CAST($5 AS TEXT) IS NULL AND CAST($6 AS TEXT) IS NULL", "t.record_type = $5 AND t.record_id = $6"];
    const PARENTS: [&str; 2] = ["CAST($15 AS TEXT) IS NULL", "t.parent = $15"];
    const AFTERS: [&str; 2] =
        ["CAST($11 AS BIGINT) IS NULL AND CAST($12 AS TEXT) IS NULL", "(@sort, t.id) @beyond ($11, $12)"];
    // Said beside the states, so that the index of unfinished tasks can be taken.
    const ACTIVES: [&str; 2] = ["", "AND t.active = 1"];
    let mut texts = vec![dialect.fill(text)];
    let mut each = |mark: &str, choices: &[&str]| {
        texts = texts.iter().flat_map(|text| choices.iter().map(|choice| text.replace(mark, choice))).collect();
    };
    each("@reach", &REACHES);
    each("@record", &RECORDS);
    each("@parent", &PARENTS);
    each("@after", &AFTERS);
    each("@active", &ACTIVES);
    each("@sort", &SORTS);
    let directions = [("ASC", ">"), ("DESC", "<")];
    let of_unfinished = [REACHES[3], RECORDS[0], PARENTS[0], ACTIVES[1]];
    for text in &mut texts {
        let all = of_unfinished.iter().all(|part| text.contains(part));
        *text = text.replace("@through", &if all { dialect.by("active") } else { String::new() });
    }
    let directed = |text: &String| directions.map(|(d, b)| text.replace("@direction", d).replace("@beyond", b));
    texts.iter().flat_map(directed).collect()
}

/// A literal search text as a LIKE pattern: its own wildcards escaped by `!`, letters A to Z small, as the statement makes
/// those of the column. Only here, and not by the database: its idea of a small letter follows its locale for a bound value,
/// and the bytes for a column.
pub(crate) fn like(text: &str) -> String {
    let mut pattern = String::from("%");
    for c in text.to_ascii_lowercase().chars() {
        if matches!(c, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}
