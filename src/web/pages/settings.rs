//! `/settings`: the language, the time zone, and what a person wants to be told.
//!
//! Language and zone are cookies of this browser, as the pages read them, and need no script. What is told (toasts, notices of
//! the system, the log read aloud) is a matter of scripts and stays in the browser; the page's script draws those switches.
//! Changes nothing on the server.

use super::html;
use super::shell::{CHOSEN_ZONE_COOKIE, LANG_COOKIE, Shell};
use super::visitor::{SignedForm, Visitor};
use super::when::{When, is_zone, zones};
use super::words::{LANGUAGES, Words};
use askama::Template;
use axum::extract::Query;
use axum::http::{HeaderValue, header};
use axum::response::{AppendHeaders, IntoResponse, Redirect, Response};
use std::collections::HashMap;

/// How long a choice is kept, s: a year.
const KEPT_S: u32 = 31_536_000;

/// The page.
#[derive(Template)]
#[template(path = "pages/settings.html")]
struct SettingsPage<'a> {
    page: &'a Shell,
    /// Tag and own name of each language.
    languages: [(&'static str, &'static str); 2],
    zones: Vec<String>,
    /// The server's now in the viewer's zone, to check a choice by.
    now: When,
    /// Whether the form has just been kept.
    saved: bool,
}

/// `GET /settings`
pub async fn show(visitor: Visitor, Query(query): Query<HashMap<String, String>>) -> Response {
    let page = &visitor.shell;
    let (now, saved) = (page.watch.at(page.watch.now()), query.contains_key("saved"));
    html(&SettingsPage { page, languages: LANGUAGES, zones: zones(), now, saved })
}

/// `POST /settings` with `lang` and `zone`; an empty or unknown zone is the browser's.
pub async fn keep(SignedForm { fields, .. }: SignedForm) -> Response {
    let text = |name: &str| fields.get(name).map_or("", String::as_str);
    let zone = text("zone");
    let cookies = [
        cookie(LANG_COOKIE, Words::of(text("lang")).lang(), KEPT_S),
        if is_zone(zone) { cookie(CHOSEN_ZONE_COOKIE, zone, KEPT_S) } else { cookie(CHOSEN_ZONE_COOKIE, "", 0) },
    ];
    (AppendHeaders(cookies.map(|cookie| (header::SET_COOKIE, cookie))), Redirect::to("/settings?saved")).into_response()
}

fn cookie(name: &str, value: &str, kept_s: u32) -> HeaderValue {
    let text = format!("{name}={value}; Path=/; Max-Age={kept_s}; SameSite=Lax");
    HeaderValue::from_str(&text).expect("names of languages and zones are plain ASCII")
}
