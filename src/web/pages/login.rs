//! `/login`, `/logout` and `/lang`: who looks, and in which language.

use super::shell::Shell;
use askama::Template;

/// The sign-in page: two users to choose from in the demo, a password otherwise.
#[derive(Template)]
#[template(path = "pages/login.html")]
pub struct LoginPage<'a> {
    /// The frame.
    pub page: &'a Shell,
    /// Whether a sign-in has just been refused.
    pub failed: bool,
    /// Where to go after it: a path of ours.
    pub next: String,
}
