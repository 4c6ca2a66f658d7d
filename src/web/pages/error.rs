//! The page for a request that cannot be answered: what happened and what to do next, and never why inside.

use super::shell::Shell;
use askama::Template;

/// The page.
#[derive(Template)]
#[template(path = "pages/error.html")]
pub struct ErrorPage<'a> {
    page: &'a Shell,
    title: String,
    text: String,
    request_id: Option<String>,
}

impl<'a> ErrorPage<'a> {
    /// The page for an HTTP status. `detail` is a sentence that is safe to show; where there is none, ours is shown.
    #[must_use]
    pub fn new(page: &'a Shell, status: u16, detail: Option<&str>, request_id: Option<String>) -> Self {
        let key = format!("error.page.{status}");
        let title = if page.w.has(&key) { page.t(&key) } else { page.t("error.page.500") }.into_owned();
        let text = match (status, detail) {
            (404, _) => page.t("error.page.404.text").into_owned(),
            (_, Some(detail)) => detail.to_owned(),
            _ => page.t("error.page.again").into_owned(),
        };
        Self { page, title, text, request_id }
    }
}
