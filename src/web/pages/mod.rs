//! The pages: what a person sees, written by the server and taken over by the scripts of `static/`. The table of contents.
//!
//! Every page works without a script and without a socket: rows, links for filters and paging, plain forms with a CSRF
//! token. A page is a template filled from a view; the words come from [`words`], times from [`when`], what a row says from
//! [`row`]. Must never decide what a caller may see or do: the view is already cut to the caller's rights, and a form is
//! given to the same function as the API's call.

pub mod ask;
pub mod assets;
pub mod buttons;
pub mod children;
pub mod docs;
pub mod dress;
pub mod error;
pub mod fold;
pub mod form;
mod left;
pub mod login;
pub mod notifications;
pub mod picture;
pub mod plot;
pub mod record;
pub mod row;
mod say;
pub mod settings;
pub mod shell;
pub mod task;
#[cfg(test)]
mod tests;
pub mod timeline;
pub mod visitor;
pub mod when;
pub mod words;

use super::state::AppState;
use askama::Template;
use axum::Router;
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};

/// All pages, their forms and their files.
pub fn routes() -> Router<AppState> {
    Router::new()
        .route("/", get(buttons::show))
        .route("/actions/{key}", post(buttons::start))
        .route("/notifications", get(notifications::show))
        .route("/notifications/read", post(notifications::mark_read))
        .route("/tasks/{id}", get(task::show))
        .route("/tasks/{id}/{act}", post(task::act))
        .route("/records/{type}/{id}", get(record::show))
        .route("/settings", get(settings::show).post(settings::keep))
        .route("/login", get(login::show).post(login::sign_in))
        .route("/logout", post(login::sign_out))
        .route("/lang", post(login::choose_language))
        .route("/api/docs", get(docs::show))
        .route("/static/{*path}", get(assets::serve))
}

/// A filled template as an answer. It may be kept for the way back, and is asked for again everywhere else.
fn html(page: &impl Template) -> Response {
    let text = page.render().expect("the templates write into a string and call nothing that fails");
    ([(header::CACHE_CONTROL, "private, no-cache"), (header::VARY, "Cookie, Accept-Language")], Html(text))
        .into_response()
}

/// A path of ours to go to after a form; anything else leads to the start.
fn way_back(wanted: Option<&String>) -> &str {
    wanted.map(String::as_str).filter(|path| shell::safe_link(path).is_some() && path.starts_with('/')).unwrap_or("/")
}
