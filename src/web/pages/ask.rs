//! The question before an act that loses or repeats something, for those who have no script: a page that names the task,
//! tells what stays, and leads back or on.
//!
//! The same questions by the same catalogue as static/acts.js. A pause asks nothing: it can be taken back. Must never do
//! anything itself: its form is the one of the row, without the field that asks.

use super::row::Row;
use super::shell::Shell;
use crate::core::view::TaskSummary;
use askama::Template;

/// The field by which the form of a row asks for the question.
pub const FIELD: &str = "ask";

/// The page.
#[derive(Template)]
#[template(path = "pages/ask.html")]
pub struct AskPage<'a> {
    page: &'a Shell,
    row: Row<'a>,
    act: &'a str,
    title: String,
    text: String,
    no: &'static str,
}

impl<'a> AskPage<'a> {
    /// The question before an act; none where there is nothing to ask.
    #[must_use]
    pub fn new(page: &'a Shell, task: &'a TaskSummary, act: &'a str) -> Option<Self> {
        let row = Row::new(task, page.w, &page.watch, &page.csrf);
        let text = match act {
            "cancel" => counted(&row, "ask.cancel.kept", "ask.cancel.none", "ask.cancel.some"),
            "resume" => counted(&row, "ask.resume.from", "ask.resume.start", "ask.resume.start"),
            "retry" => counted(&row, "ask.retry.risk", "ask.retry.clean", "ask.retry.some"),
            "delete" => page.t("ask.delete.text").into_owned(),
            _ => return None,
        };
        let title = page.w.with(&format!("ask.{act}.title"), "title", &task.title);
        let no = if act == "cancel" { "ask.cancel.no" } else { "ask.no" };
        Some(Self { page, row, act, title, text, no })
    }

    fn yes(&self) -> String {
        self.page.t(&format!("ask.{}.yes", self.act)).into_owned()
    }

    fn look(&self) -> &'static str {
        if matches!(self.act, "cancel" | "delete") { "danger" } else { "primary" }
    }
}

/// The sentence with a count, that for nothing done, or that for work that is not counted in things.
fn counted(row: &Row<'_>, some: &str, none: &str, uncounted: &str) -> String {
    let progress = &row.task.progress;
    match progress.unit.as_deref() {
        _ if progress.current <= 0 => row.w.t(none).into_owned(),
        Some("percent") => row.w.t(uncounted).into_owned(),
        _ => row.w.with(some, "count", &row.amount()),
    }
}
