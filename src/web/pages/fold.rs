//! Batches: many like tasks in one row, as static/batch.js folds them.
//!
//! Like are tasks of one action that were made in one go: each within ten minutes of the next one. More than five of them
//! fold. A batch stands in the group of its member that comes first in the order of the groups, so nothing that needs a
//! person is hidden under "earlier".

use super::row::{Group, Row};
use super::words::Words;
use crate::core::task::State;
use crate::core::view::TaskSummary;
use std::collections::HashMap;

const FOLD_FROM: usize = 6;
const APART_MS: i64 = 600_000;

/// What stands in a group: a row, or many in one.
pub enum Entry<'a> {
    /// One task.
    One(Box<Row<'a>>),
    /// Like tasks.
    Many(Batch<'a>),
}

/// Like tasks, newest first.
pub struct Batch<'a> {
    /// Names it for the script: the action and its oldest task.
    pub key: String,
    /// "Import customers × 8".
    pub title: String,
    /// "5 done, 1 failed, 2 running".
    pub parts: String,
    /// Whether one of them has ended and was not opened.
    pub unread: bool,
    /// How many of a hundred have ended; nothing when all have.
    pub ended: Option<usize>,
    /// Its rows.
    pub rows: Vec<Row<'a>>,
}

/// Tasks in goes, each with the place of its newest member; in the order of these.
pub fn goes(tasks: &[TaskSummary]) -> Vec<Vec<&TaskSummary>> {
    let mut goes: Vec<Vec<&TaskSummary>> = Vec::new();
    let mut last: HashMap<&str, usize> = HashMap::new();
    for task in tasks {
        let near = last
            .get(task.action.as_str())
            .copied()
            .filter(|at| goes[*at].last().is_some_and(|newer| newer.created_at.since(task.created_at) <= APART_MS));
        match near {
            Some(at) => goes[at].push(task),
            None => {
                last.insert(&task.action, goes.len());
                goes.push(vec![task]);
            }
        }
    }
    goes
}

/// The rows of some tasks, newest first, with like ones folded; each with its group.
pub fn folded<'a>(tasks: &'a [TaskSummary], row: impl Fn(&'a TaskSummary) -> Row<'a>) -> Vec<(Group, Entry<'a>)> {
    let mut folded = Vec::new();
    let mut go_of = HashMap::new();
    let goes = goes(tasks);
    for go in goes.iter().filter(|go| go.len() >= FOLD_FROM) {
        go_of.extend(go.iter().map(|task| (task.id, go)));
    }
    for task in tasks {
        match go_of.get(&task.id) {
            None => {
                let row = row(task);
                folded.push((row.group(), Entry::One(Box::new(row))));
            }
            Some(go) if go[0].id == task.id => {
                let rows: Vec<Row<'a>> = go.iter().map(|task| row(task)).collect();
                let group = rows.iter().map(Row::group).min().expect("a go has tasks");
                folded.push((group, Entry::Many(batch(rows))));
            }
            Some(_) => {}
        }
    }
    folded
}

fn batch(rows: Vec<Row<'_>>) -> Batch<'_> {
    let (newest, oldest) = (&rows[0], &rows[rows.len() - 1]);
    let n = |n: usize| i64::try_from(n).expect("a page has few rows");
    let ended = rows.iter().filter(|row| row.task.state.is_final()).count();
    Batch {
        key: format!("{} {}", oldest.task.action, oldest.task.id),
        title: newest
            .w
            .fill("batch.title", &[("title", newest.task.title.as_str().into()), ("n", n(rows.len()).into())]),
        parts: parts(newest.w, &rows),
        unread: rows.iter().any(Row::unread),
        ended: (ended < rows.len()).then(|| 100 * ended / rows.len()),
        rows,
    }
}

/// "5 done, 1 failed, 2 running", and what is neither of them.
fn parts(w: Words, rows: &[Row<'_>]) -> String {
    let count = |fits: fn(State) -> bool| {
        i64::try_from(rows.iter().filter(|row| fits(row.task.state)).count()).expect("a page has few rows")
    };
    let running = count(|s| matches!(s, State::Running | State::Pausing | State::Cancelling));
    let (done, failed) = (count(|s| s == State::Succeeded), count(|s| s == State::Failed));
    let three = [("done", done.into()), ("failed", failed.into()), ("running", running.into())];
    let others = [
        ("batch.queued", count(|s| matches!(s, State::Queued | State::Blocked))),
        ("batch.paused", count(|s| s == State::Paused)),
        ("batch.cancelled", count(|s| s == State::Cancelled)),
    ];
    let others = others.into_iter().filter(|(_, n)| *n > 0).map(|(key, n)| w.count(key, n));
    let said: Vec<String> = std::iter::once(w.fill("batch.parts", &three)).chain(others).collect();
    said.join(&w.t("batch.and"))
}
