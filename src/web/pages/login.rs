//! `/login`, `/logout` and `/lang`: who looks, and in which language.
//!
//! The form posts a name and a password and nothing else. It needs no token: a browser says where a form comes from, and one
//! that comes from elsewhere, from a listed page too, is refused. A sign-in makes a new session each time and ends the one
//! that the browser had. A wrong password and a name that nobody has get the same sentence after the same work. In the demo
//! a user is chosen without a password; the demo answers only under names of this machine.

use super::shell::{LANG_COOKIE, Shell};
use super::visitor::{Anybody, OpenForm, SignedForm};
use super::words::Words;
use super::{html, way_back};
use crate::core::account::check_name;
use crate::web::auth::{self, SignIn};
use crate::web::client::Client;
use crate::web::error::{ApiError, Code};
use crate::web::origin;
use crate::web::state::AppState;
use askama::Template;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
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
    /// The name that was given, so that it need not be typed again.
    pub user: &'a str,
    /// Where to go after it: a path of ours.
    pub next: &'a str,
}

/// Why somebody is not signed in.
enum Refused {
    /// The name or the password is not right; which of them is not told.
    Wrong,
    /// The password would travel for everybody to read.
    Insecure,
    /// Too many have failed; how long to wait, ms.
    SlowedDown(u64),
}

/// `GET /login`
pub async fn show(Anybody(shell): Anybody, Query(query): Query<HashMap<String, String>>) -> Response {
    html(&LoginPage { page: &shell, refused: None, user: "", next: way_back(query.get("next")) })
}

/// `POST /login` with `user` and `password`.
///
/// # Errors
/// 403 for a form of another page; 503 when too many sign in at once; those of the store.
pub async fn sign_in(
    State(state): State<AppState>,
    Anybody(shell): Anybody,
    client: Client,
    headers: HeaderMap,
    OpenForm(form): OpenForm,
) -> Result<Response, ApiError> {
    if !is_own_form(&state, &headers) {
        return Err(ApiError::new(Code::OriginRefused));
    }
    let text = |name: &str| form.get(name).map_or("", String::as_str);
    let (user, next) = (text("user"), way_back(form.get("next")));
    let who = match prove(&state, client, user, text("password")).await? {
        Ok(who) => who,
        Err(refused) => return Ok(refuse(&shell, &refused, user, next)),
    };
    // Who has the cookie of before has not got this session.
    if let Some(before) = auth::cookie(&headers, state.settings.insecure_http) {
        state.hub.revoke(&auth::sign_out(state.store.as_ref(), &before).await?);
    }
    let secret = auth::sign_in(state.store.as_ref(), who, state.clock.now()).await?;
    let cookie = auth::session_cookie(&secret, plain(&state, client));
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(next)).into_response())
}

/// `POST /logout`
///
/// # Errors
/// Those of the store.
pub async fn sign_out(State(state): State<AppState>, client: Client, form: SignedForm) -> Result<Response, ApiError> {
    state.hub.revoke(&auth::sign_out(state.store.as_ref(), &form.secret).await?);
    let cookie = auth::ended_cookie(plain(&state, client));
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to("/login")).into_response())
}

/// `POST /lang`: keeps the language and goes back. Changes nothing but how the pages of this browser read.
pub async fn choose_language(OpenForm(form): OpenForm) -> Response {
    let lang = Words::of(form.get("lang").map_or("", String::as_str)).lang();
    let cookie = format!("{LANG_COOKIE}={lang}; Path=/; Max-Age=31536000; SameSite=Lax");
    ([(header::SET_COOKIE, cookie)], Redirect::to(way_back(form.get("back")))).into_response()
}

/// Whether a form comes from a page of ours, or from no browser at all. A foreign Origin is refused before it gets here.
fn is_own_form(state: &AppState, headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let own_site = site.is_none_or(|site| site == b"same-origin" || site == b"none");
    own_site && origin::of(headers, &state.settings) != origin::From::Listed
}

/// Whom a name and a password prove.
async fn prove(
    state: &AppState,
    client: Client,
    name: &str,
    password: &str,
) -> Result<Result<SignIn, Refused>, ApiError> {
    if !(client.loopback || client.https || state.settings.insecure_http) {
        return Ok(Err(Refused::Insecure));
    }
    if let Some(demo) = &state.demo {
        return Ok(demo.get(name).cloned().map(SignIn::of_demo).ok_or(Refused::Wrong));
    }
    // Nobody can have such a name, and not every database takes it as a text.
    if check_name(name).is_err() {
        return Ok(Err(Refused::Wrong));
    }
    let guard = &state.guard;
    if let Err(wait_ms) = guard.slow_down.charge(name, client.address, state.clock.mono()) {
        return Ok(Err(Refused::SlowedDown(wait_ms)));
    }
    let user = state.store.user(name).await?;
    let hash = user.as_ref().map(|u| u.password.clone());
    let right = guard.passwords.prove(password.to_owned(), hash).await?;
    let Some(user) = user.filter(|_| right) else { return Ok(Err(Refused::Wrong)) };
    guard.slow_down.forgive(name, client.address);
    Ok(Ok(SignIn::of_user(&user)))
}

/// The page again, with the reason.
fn refuse(shell: &Shell, why: &Refused, user: &str, next: &str) -> Response {
    let (status, sentence) = match why {
        Refused::Wrong => (StatusCode::UNAUTHORIZED, shell.t("login.failed").into_owned()),
        Refused::Insecure => (StatusCode::FORBIDDEN, shell.t("login.insecure").into_owned()),
        Refused::SlowedDown(ms) => {
            let seconds = ms.div_ceil(1_000).cast_signed();
            (StatusCode::TOO_MANY_REQUESTS, shell.w.count("login.slow", seconds))
        }
    };
    let page = html(&LoginPage { page: shell, refused: Some(sentence), user, next });
    let mut response = (status, page).into_response();
    if let Refused::SlowedDown(ms) = why {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(ms.div_ceil(1_000)));
    }
    response
}

/// Whether the cookie has to do without `Secure`.
fn plain(state: &AppState, client: Client) -> bool {
    state.settings.insecure_http && !client.loopback && !client.https
}
