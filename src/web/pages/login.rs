//! `/login`, `/logout` and `/lang`: who looks, and in which language.
//!
//! A sign-in makes a new session each time. In the demo a user is chosen without a password; the demo answers only under
//! names of this machine, and a form that comes from a page elsewhere is refused before it gets here.

use super::shell::{LANG_COOKIE, Shell};
use super::visitor::{Anybody, OpenForm, SignedForm};
use super::words::Words;
use super::{html, way_back};
use crate::core::principal::Principal;
use crate::web::auth;
use crate::web::error::ApiError;
use crate::web::origin::is_loopback_host;
use crate::web::state::AppState;
use askama::Template;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use std::collections::HashMap;

/// The sign-in page: two users to choose from in the demo, a password otherwise.
#[derive(Template)]
#[template(path = "pages/login.html")]
pub struct LoginPage<'a> {
    /// The frame.
    pub page: &'a Shell,
    /// Why a sign-in has just been refused.
    pub refused: Option<String>,
    /// Where to go after it: a path of ours.
    pub next: String,
}

/// `GET /login`
pub async fn show(Anybody(shell): Anybody, Query(query): Query<HashMap<String, String>>) -> Response {
    let next = way_back(query.get("next")).to_owned();
    html(&LoginPage { page: &shell, refused: None, next })
}

/// `POST /login` with `user` and `password`.
///
/// # Errors
/// Those of the store.
pub async fn sign_in(
    State(state): State<AppState>,
    Anybody(shell): Anybody,
    headers: HeaderMap,
    OpenForm(form): OpenForm,
) -> Result<Response, ApiError> {
    let next = way_back(form.get("next")).to_owned();
    let refuse = |key| {
        let page = LoginPage { page: &shell, refused: Some(shell.t(key).into_owned()), next: next.clone() };
        (StatusCode::UNAUTHORIZED, html(&page)).into_response()
    };
    if !is_private(&state, &headers) {
        return Ok(refuse("login.insecure"));
    }
    let Some(user) = known(&state, &form) else { return Ok(refuse("login.failed")) };
    let secret = auth::sign_in(state.store.as_ref(), user, state.clock.now()).await?;
    let cookie = auth::session_cookie(&secret, plain(&state, &headers));
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(&next)).into_response())
}

/// `POST /logout`
///
/// # Errors
/// Those of the store.
pub async fn sign_out(
    State(state): State<AppState>,
    headers: HeaderMap,
    form: SignedForm,
) -> Result<Response, ApiError> {
    let credential = auth::sign_out(state.store.as_ref(), &form.secret).await?;
    state.hub.revoke(&credential);
    let cookie = auth::ended_cookie(plain(&state, &headers));
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to("/login")).into_response())
}

/// `POST /lang`: keeps the language and goes back. Changes nothing but how the pages of this browser read.
pub async fn choose_language(OpenForm(form): OpenForm) -> Response {
    let lang = Words::of(form.get("lang").map_or("", String::as_str)).lang();
    let cookie = format!("{LANG_COOKIE}={lang}; Path=/; Max-Age=31536000; SameSite=Lax");
    ([(header::SET_COOKIE, cookie)], Redirect::to(way_back(form.get("back")))).into_response()
}

/// Whom a form names, if it proves it. Outside the demo nobody has a password yet.
fn known(state: &AppState, form: &HashMap<String, String>) -> Option<Principal> {
    state.demo.as_ref()?.get(form.get("user")?).cloned()
}

/// Whether nobody can listen: this machine, https (as far as the browser tells), or allowed all the same.
fn is_private(state: &AppState, headers: &HeaderMap) -> bool {
    let plain = headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"http://"));
    state.settings.insecure_http || is_loopback_host(headers) || !plain
}

/// Whether the cookie has to do without `Secure`.
fn plain(state: &AppState, headers: &HeaderMap) -> bool {
    state.settings.insecure_http && !is_loopback_host(headers)
}
