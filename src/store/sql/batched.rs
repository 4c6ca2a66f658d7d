//! Statements over batches of rows: values bound one by one, or an array a column, and several of these as one statement.
//!
//! A statement over arrays names what is bound by `v.column1` and so on, and heads by `@head(…)`. What a server does for each
//! array before the first row, it does for each column of the table: so new tasks of which most columns hold what they always
//! do are written by a statement that names the others only ([`plainly`]).

use super::super::row::{COLUMNS, DERIVED, given, usual};
use super::super::value::Kind;
use super::super::value::{Batch, Column};
use super::{IN_POSTGRES, POSTGRES};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The most rows that one text of a statement over values takes, as a power of two; 64 tasks are 4,096 values of the 32,766
/// that SQLite takes.
const LARGEST_PART: u32 = 6;

/// A statement over a batch of rows.
#[derive(Debug)]
pub struct Batched {
    pub(super) texts: Vec<String>,
    /// Its text without the rows, and what their columns hold.
    frame: String,
    columns: Vec<Kind>,
}

impl Batched {
    /// Values bound one by one: a text for each power of two, so that a few texts serve batches of any size and stay
    /// prepared.
    pub(super) fn of_values(text: &str, columns: &[(&str, Kind)]) -> Self {
        let row = format!("({})", vec!["?"; columns.len()].join(", "));
        let rows = |count: usize| vec![row.as_str(); count].join(", ");
        let text = heads_by(text, "");
        let texts = (0..=LARGEST_PART).map(|power| text.replace("@rows", &rows(1 << power))).collect();
        Self { texts, frame: text, columns: columns.iter().map(|(_, kind)| *kind).collect() }
    }

    /// An array a column: one text for all sizes.
    pub(super) fn of_arrays(text: &str, columns: &[(&str, Kind)]) -> Self {
        let columns = columns.iter().map(|(_, kind)| *kind).collect();
        let mut batched = Self { texts: Vec::new(), frame: text.to_owned(), columns };
        batched.texts = vec![heads_by(&batched.over_arrays(1, None), "")];
        batched
    }

    /// The text over arrays whose first one is the `$first` value of a statement, for as long as something holds.
    fn over_arrays(&self, first: usize, only_if: Option<&str>) -> String {
        let array = |(kind, n): (&Kind, usize)| match kind {
            Kind::Text => format!("CAST(${n} AS TEXT[])"),
            Kind::Int => format!("CAST(${n} AS BIGINT[])"),
        };
        let arrays = self.columns.iter().zip(first..).map(array).collect::<Vec<_>>().join(", ");
        let names = (1..=self.columns.len()).map(|n| format!("column{n}")).collect::<Vec<_>>().join(", ");
        let rows = format!("UNNEST({arrays}) AS v ({names})");
        self.frame.replace(
            "@rows",
            &match only_if {
                None => rows,
                Some(holds) => format!("(SELECT v.* FROM {rows} WHERE {holds}) AS v"),
            },
        )
    }

    /// The texts over values that take so many rows together, each with the number that it takes, the largest first.
    pub fn parts(&self, rows: usize) -> impl Iterator<Item = (usize, &str)> {
        let mut left = rows;
        std::iter::from_fn(move || {
            let power = left.checked_ilog2()?.min(LARGEST_PART);
            left -= 1 << power;
            Some((1 << power, self.texts[power as usize].as_str()))
        })
    }

    /// The text over arrays.
    pub fn whole(&self) -> &str {
        &self.texts[0]
    }
}

/// A text with each `@head(place)` as `heads[place]`, or as the place itself where no heads are named: it is the head then.
fn heads_by(text: &str, heads: &str) -> String {
    let mut parts = text.split("@head(");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (place, rest) = part.split_once(')').expect("a mark of a catalogue's text is whole");
        filled += &if heads.is_empty() { place.to_owned() } else { format!("{heads}[{place}]") };
        filled += rest;
    }
    filled
}

/// What batched statements over arrays do beside writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::store) struct Beside {
    /// Moves the heads of owners, whose tenants and names are the first two values: the rows of tasks hold the place of their
    /// owner among these in place of a head.
    pub moves: bool,
    /// Locks tasks by their marks, which are the next values, and writes nothing where one of them is another version or
    /// locked by somebody else.
    pub rests: bool,
}

/// Statements over arrays as one, which answers how many rows each of them touched; before these how many tasks were locked,
/// and first the heads that moved. They are under way at the same time, so none may rest on another.
pub(in crate::store) fn together(beside: Beside, statements: &[&'static Batched]) -> &'static str {
    static TEXTS: LazyLock<Mutex<Texts>> = LazyLock::new(Mutex::default);
    let parts = statements.iter().map(|statement| std::ptr::from_ref(*statement).addr()).collect();
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    texts.entry((beside, parts)).or_insert_with(|| Box::leak(put_together(beside, statements).into_boxed_str()))
}

/// Texts by what they do and the statements in them. There are few of them, so each is put together once.
type Texts = HashMap<(Beside, Vec<usize>), &'static str>;

fn put_together(beside: Beside, statements: &[&Batched]) -> String {
    const HEADS: &str = "(SELECT h.list FROM heads h)";
    let (mut parts, mut answers, mut first) = (Vec::new(), Vec::new(), 1);
    if beside.moves {
        first += OWNER.len();
    }
    let mut only_if = None;
    if beside.rests {
        let known = KNOWN.over_arrays(first, None);
        parts.push(format!("known AS MATERIALIZED ({known})"));
        // In the order of locks: tasks, then heads.
        only_if = Some(format!("(SELECT COUNT(*) FROM known) = cardinality(${first})"));
        answers.push("(SELECT COUNT(*) FROM known)".to_owned());
        first += MARKS.len();
    }
    if beside.moves {
        let moves = MOVES.over_arrays(1, only_if.as_deref());
        parts.push(format!("moved AS ({moves})"));
        parts.push("heads AS (SELECT array_agg(m.head ORDER BY m.tenant, m.owner) AS list FROM moved m)".to_owned());
        answers.insert(0, HEADS.to_owned());
    }
    for (n, statement) in statements.iter().enumerate() {
        let written = statement.over_arrays(first, only_if.as_deref());
        parts.push(format!("w{n} AS ({} RETURNING 1)", heads_by(&written, if beside.moves { HEADS } else { "" })));
        answers.push(format!("(SELECT COUNT(*) FROM w{n})"));
        first += statement.columns.len();
    }
    format!("WITH {} SELECT {}", parts.join(", "), answers.join(", "))
}

const OWNER: [(&str, Kind); 2] = [("tenant", Kind::Text), ("owner", Kind::Text)];
const MARKS: [(&str, Kind); 6] = [
    ("id", Kind::Text),
    ("state", Kind::Text),
    ("revision", Kind::Int),
    ("head", Kind::Int),
    ("fencing_token", Kind::Int),
    ("updated_at", Kind::Int),
];

/// Moves heads, as part of another statement.
static MOVES: LazyLock<Batched> =
    LazyLock::new(|| Batched::of_arrays(&IN_POSTGRES.fill(include_str!("postgres/move_heads.sql")), &OWNER));
/// Locks tasks by their marks.
pub(in crate::store) static KNOWN: LazyLock<Batched> =
    LazyLock::new(|| Batched::of_arrays(&IN_POSTGRES.fill(include_str!("postgres/lock_known.sql")), &MARKS));

/// The columns of a new task that have to be named.
static PLAIN: LazyLock<Vec<(&str, Kind)>> =
    LazyLock::new(|| COLUMNS.iter().chain(DERIVED).filter(|(name, _)| usual(name).is_none()).copied().collect());
/// New tasks that have in all other columns what is usual.
static INSERT_PLAIN: LazyLock<Batched> = LazyLock::new(|| {
    let mut n = 0;
    let values = COLUMNS.iter().chain(DERIVED).map(|(name, _)| {
        usual(name).map_or_else(
            || {
                n += 1;
                given(name, n)
            },
            str::to_owned,
        )
    });
    let text = include_str!("postgres/insert_tasks.sql").replace("@given", &values.collect::<Vec<_>>().join(", "));
    Batched::of_arrays(&IN_POSTGRES.fill(&text), &PLAIN)
});

/// A statement with fewer columns that does the same, where there is one for these rows.
pub(in crate::store) fn plainly(statement: &'static Batched, batch: Batch) -> (&'static Batched, Batch) {
    if !std::ptr::eq(statement, &POSTGRES.insert_tasks) {
        return (statement, batch);
    }
    let usual: Vec<_> = COLUMNS.iter().chain(DERIVED).map(|(name, _)| usual(name)).collect();
    match batch.without(|n, column| usual[n].map(|value| holds(column, value))) {
        Ok(plain) => (&INSERT_PLAIN, plain),
        Err(batch) => (statement, batch),
    }
}

/// Whether a column holds a value in all rows, which is given as SQL.
fn holds(column: &Column, value: &str) -> bool {
    match column {
        Column::Text(texts) => texts.iter().all(|text| match text {
            None => value == "NULL",
            Some(text) => value == format!("'{text}'"),
        }),
        Column::Int(numbers) => numbers.iter().all(|number| match number {
            None => value == "NULL",
            Some(number) => value.parse() == Ok(*number),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::row::EVENT_COLUMNS;
    use super::super::SQLITE;
    use super::*;

    #[test]
    fn the_parts_of_a_batch_take_each_of_its_rows_once() {
        for rows in 0..=300 {
            let parts: Vec<(usize, &str)> = SQLITE.append_events.parts(rows).collect();
            assert_eq!(parts.iter().map(|(count, _)| count).sum::<usize>(), rows);
            for (count, text) in parts {
                assert_eq!(text.matches('?').count(), count * EVENT_COLUMNS.len());
            }
        }
    }

    /// New tasks, in the second of which one column is another than usual.
    fn tasks(unusual: &str) -> Batch {
        Batch::of([1, 7], |value, to| {
            for (name, kind) in COLUMNS.iter().chain(DERIVED) {
                let usual = usual(name).filter(|_| value == 1 || *name != unusual);
                match (kind, usual) {
                    (_, Some("NULL")) if *kind == Kind::Text => to.text(None),
                    (_, Some("NULL")) => to.int(None),
                    (Kind::Int, Some(number)) => to.int(number.parse().ok()),
                    (Kind::Text, Some(text)) => to.text(Some(text.trim_matches('\''))),
                    (Kind::Int, None) => to.int(Some(value)),
                    (Kind::Text, None) => to.text(Some("x")),
                }
            }
        })
    }

    #[test]
    fn only_tasks_that_are_as_usual_in_all_that_is_left_out_are_written_by_fewer_columns() {
        let (all, whole) = (COLUMNS.len() + DERIVED.len(), &POSTGRES.insert_tasks);
        let (statement, batch) = plainly(whole, tasks(""));
        assert!(std::ptr::eq(statement, &*INSERT_PLAIN));
        assert_eq!((batch.rows(), batch.into_columns().len()), (2, statement.columns.len()));
        assert!(statement.columns.len() < all / 2);
        for (unusual, _) in COLUMNS.iter().chain(DERIVED).filter(|(name, _)| usual(name).is_some()) {
            let (statement, batch) = plainly(whole, tasks(unusual));
            assert!(std::ptr::eq(statement, whole), "{unusual}");
            assert_eq!(batch.into_columns().len(), all, "{unusual}");
        }
    }
}
