//! Who opens a page and what a plain form sent: the extractors of the page handlers.
//!
//! A page needs somebody who is signed in; a form also needs the token of that session. Both refuse with the API's own
//! problems, which [`super::dress`] turns into a page or into the way to the sign-in.

use super::shell::{CHOSEN_ZONE_COOKIE, LANG_COOKIE, Shell, ZONE_COOKIE, language, watch};
use super::when::is_zone;
use crate::core::principal::{Principal, Scope};
use crate::core::task::limits;
use crate::web::auth::{self, Caller, Via};
use crate::web::body::{media_type, read_capped, refuse_encoded};
use crate::web::error::{ApiError, Code};
use crate::web::extract::MaybeCaller;
use crate::web::state::AppState;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri, header};
use std::borrow::Cow;
use std::collections::HashMap;

/// Somebody who is signed in, with the frame of the page.
pub struct Visitor {
    /// Who.
    pub who: Principal,
    /// The frame.
    pub shell: Shell,
}

/// Whoever comes, with the frame of the page.
pub struct Anybody(pub Shell);

/// A plain form of a session, its token checked.
pub struct SignedForm {
    /// Who sent it.
    pub visitor: Visitor,
    /// The secret of the session.
    pub secret: String,
    /// What it holds; of a name that came twice the last.
    pub fields: HashMap<String, String>,
}

/// A plain form that needs no session.
pub struct OpenForm(pub HashMap<String, String>);

impl Shell {
    /// The frame of a request.
    #[must_use]
    pub fn of(state: &AppState, headers: &HeaderMap, uri: &Uri, caller: Option<&Caller>) -> Self {
        let accept = headers.get(header::ACCEPT_LANGUAGE).and_then(|v| v.to_str().ok());
        let w = language(cookie(headers, LANG_COOKIE).as_deref(), accept);
        let csrf = match caller.map(|c| &c.via) {
            Some(Via::Session(secret)) => auth::csrf_token(secret),
            _ => String::new(),
        };
        let chosen_zone = cookie(headers, CHOSEN_ZONE_COOKIE).filter(|zone| is_zone(zone));
        let zone = chosen_zone.clone().or_else(|| cookie(headers, ZONE_COOKIE));
        Self {
            w,
            watch: watch(zone.as_deref(), state.clock.now(), w),
            chosen_zone,
            viewer: caller.map(|c| c.principal.clone()),
            csrf,
            demo: state.demo.is_some(),
            here: uri.path_and_query().map_or("/", |p| p.as_str()).to_owned(),
        }
    }
}

/// A cookie's value, its percent signs undone.
fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let pairs = headers.get_all(header::COOKIE).iter().filter_map(|v| v.to_str().ok()).flat_map(|v| v.split(';'));
    let (_, value) = pairs.filter_map(|pair| pair.trim().split_once('=')).find(|(key, _)| *key == name)?;
    percent_encoding::percent_decode_str(value).decode_utf8().ok().map(Cow::into_owned)
}

impl FromRequestParts<AppState> for Visitor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        if !caller.principal.has(Scope::TasksRead) {
            return Err(ApiError::new(Code::Forbidden));
        }
        let shell = Shell::of(state, &parts.headers, &parts.uri, Some(&caller));
        Ok(Self { who: caller.principal, shell })
    }
}

impl FromRequestParts<AppState> for Anybody {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let MaybeCaller(caller) = MaybeCaller::from_request_parts(parts, state).await?;
        Ok(Self(Shell::of(state, &parts.headers, &parts.uri, caller.as_ref())))
    }
}

impl FromRequest<AppState> for OpenForm {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &AppState) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        if media_type(&parts.headers).is_none_or(|kind| kind != "application/x-www-form-urlencoded") {
            return Err(ApiError::new(Code::UnsupportedMediaType).detail("The body must be an urlencoded form."));
        }
        refuse_encoded(&parts.headers)?;
        let bytes = read_capped(&parts, body, limits::BODY_BYTES).await?;
        Ok(Self(url::form_urlencoded::parse(&bytes).into_owned().collect()))
    }
}

impl FromRequest<AppState> for SignedForm {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let caller = Caller::from_request_parts(&mut parts, state).await?;
        let shell = Shell::of(state, &parts.headers, &parts.uri, Some(&caller));
        let OpenForm(fields) = OpenForm::from_request(Request::from_parts(parts, body), state).await?;
        let Caller { principal: who, via: Via::Session(secret), .. } = caller else {
            return Err(ApiError::new(Code::FormExpired));
        };
        if !auth::csrf_fits(&secret, fields.get("csrf").map_or("", String::as_str)) {
            return Err(ApiError::new(Code::FormExpired));
        }
        Ok(Self { visitor: Visitor { who, shell }, secret, fields })
    }
}
